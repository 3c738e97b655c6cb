"""Fixtures of the api's tests; see `tests.api.running`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.settings import Settings
from db import queue, trials
from db.engine import transaction
from db.migrate import upgrade
from db.reports import NewReport
from db.reports import insert as insert_reports
from tests.api.running import TINY, Claimed, Running, record, running
from tests.postgresql import Server


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with all tables; tests take copies."""
    path = tmp_path_factory.mktemp("migrated") / "blockwright.db"
    upgrade(f"sqlite:///{path}")
    return path


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A file that names DATABASES has its service on each of them: sqlite, postgresql."""
    if "kind" in metafunc.fixturenames and hasattr(metafunc.module, "DATABASES"):
        metafunc.parametrize("kind", metafunc.module.DATABASES)


@pytest.fixture
def kind() -> str:
    """Which database the service stands on."""
    return "sqlite"


@pytest.fixture
def settings(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Settings]:
    if kind == "sqlite":
        shutil.copy(request.getfixturevalue("migrated"), tmp_path / "blockwright.db")
        yield Settings(data_dir=tmp_path, port=0)
        return
    server: Server = request.getfixturevalue("postgresql")
    with server.database() as url:
        yield Settings(data_dir=tmp_path, port=0, database_url=url)


@pytest.fixture
def service(settings: Settings) -> Iterator[Running]:
    with running(settings) as found:
        yield found


@pytest.fixture
def submitted(service: Running) -> dict[str, Any]:
    answer = service.http.post("/api/v1/searches", json=TINY)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture
def claimed(service: Running, submitted: dict[str, Any]) -> Claimed:
    with transaction(service.engine) as connection:
        claim = queue.claim_next(connection, "test", free_cpus=4, free_gpus=0, lease_s=600)
        assert claim is not None
        (trial,) = trials.ensure(connection, claim.lease, [trials.NewTrial("search", 0, 0, n_steps=20, params={})])
        trials.start(connection, claim.lease, trial.id, attempt=1)

    def report(steps: list[int]) -> None:
        rows = [NewReport(trial.id, record(step)) for step in steps]
        with transaction(service.engine) as connection:
            insert_reports(connection, claim.lease, rows)

    return Claimed(submitted["id"], claim.lease, trial.id, report)
