"""A fresh, migrated SQLite file for each test: migrated once, then copied."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db import migrate
from db.engine import make_engine


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "blockwright.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def url(migrated: Path, tmp_path: Path) -> str:
    shutil.copy(migrated, tmp_path / "blockwright.db")
    return f"sqlite:///{tmp_path / 'blockwright.db'}"


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = make_engine(url)
    yield engine
    engine.dispose()
