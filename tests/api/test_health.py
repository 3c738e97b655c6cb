from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from api.settings import Settings
from api.version import installed
from db import revision
from db.engine import transaction
from tests.api.running import Running, running


def test_the_service_is_up_and_ready(service: Running) -> None:
    assert service.http.get("/healthz").json() == {"status": "ok"}
    assert service.http.get("/readyz").json() == {"status": "ok"}
    assert service.http.get("/version").json()["version"] == installed()


def test_a_database_that_was_never_migrated_is_not_ready(tmp_path: Path) -> None:
    with running(Settings(data_dir=tmp_path)) as service:
        answer = service.http.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not-migrated")
    assert answer.json()["detail"].endswith("run blockwright migrate")


def test_a_database_of_another_version_is_not_ready(service: Running) -> None:
    with transaction(service.engine) as connection:
        connection.execute(text(f"UPDATE {revision.VERSION_TABLE} SET version_num = '9999'"))
    answer = service.http.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not-migrated")
    assert "at revision 9999" in answer.json()["detail"]


def test_a_database_that_is_away_is_not_ready(tmp_path: Path) -> None:
    with running(Settings(data_dir=tmp_path, database_url=f"sqlite:///{tmp_path}/missing/file.db")) as service:
        assert service.http.get("/healthz").status_code == 200
        answer = service.http.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
        assert service.http.get("/api/v1/searches").json()["code"] == "database-unavailable"
