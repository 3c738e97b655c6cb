"""A database whose disk is full: what can be read still is, and what cannot be written is refused with the reason."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event

from tests.api.running import TINY, Running


def test_a_full_database_is_told_and_reading_goes_on(service: Running, submitted: dict[str, Any]) -> None:
    def no_page_more(dbapi_connection: Any, record: Any) -> None:
        pages = dbapi_connection.execute("PRAGMA page_count").fetchone()[0]
        dbapi_connection.execute(f"PRAGMA max_page_count = {pages}")

    service.engine.dispose()
    event.listen(service.engine, "connect", no_page_more)
    long = {**TINY, "name": "x" * 60}
    answers = [service.http.post("/api/v1/searches", json=long) for _ in range(30)]
    refused = [answer.json() for answer in answers if not answer.is_success]
    assert {(answer["status"], answer["code"]) for answer in refused} == {(507, "disk-full")}
    expected = "the disk of the database is full; nothing was changed; make room there, then try again"
    assert {answer["detail"] for answer in refused} == {expected}
    assert service.http.get(f"/api/v1/searches/{submitted['id']}").is_success
    event.remove(service.engine, "connect", no_page_more)
    service.engine.dispose()
    assert service.http.post("/api/v1/searches", json=long).status_code == 201
