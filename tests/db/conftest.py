"""A fresh, migrated database for each test, on both engines: migrated once, then copied.

Each test that takes `url`, `engine` or `empty_url` runs on SQLite and on PostgreSQL; `only` of `tests.db.engines`
limits it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db import migrate
from db.engine import make_engine
from tests.postgresql import Server


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "blockwright.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which engine the test runs on."""
    found: str = request.param
    return found


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if kind == "sqlite":
        shutil.copy(request.getfixturevalue("migrated"), tmp_path / "blockwright.db")
        yield f"sqlite:///{tmp_path / 'blockwright.db'}"
        return
    server: Server = request.getfixturevalue("postgresql")
    with server.database() as found:
        yield found


@pytest.fixture
def empty_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that was never migrated."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: Server = request.getfixturevalue("postgresql")
    with server.database(migrated=False) as found:
        yield found


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = make_engine(url)
    yield engine
    engine.dispose()
