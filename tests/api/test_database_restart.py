"""The database server ends and comes back under a running api."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx

from tests.api.running import TINY, Claimed, Running
from tests.postgresql import Server

DATABASES = ("postgresql",)  # an SQLite file has no server
ROOT = "/api/v1/searches"


def numbers(lines: Iterator[str]) -> Iterator[int]:
    for line in lines:
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))["number"]


def test_answers_and_streams_go_on_when_the_server_is_back(
    service: Running, claimed: Claimed, postgresql: Server
) -> None:
    address = f"{ROOT}/{claimed.id}"
    with httpx.stream("GET", f"{service.url}{address}/events", timeout=60, trust_env=False) as stream:
        told = numbers(stream.iter_lines())
        seen = [next(told) for _ in range(4)]
        postgresql.stop()
        try:
            away = [service.http.get(address), service.http.post(ROOT, json=TINY), service.http.get("/readyz")]
            assert [answer.status_code for answer in away] == [503] * 3
            assert [answer.json()["code"] for answer in away[:2]] == ["database-unavailable"] * 2
            assert away[0].headers["retry-after"] == "1"
            assert service.http.get("/healthz").status_code == 200
        finally:
            postgresql.start()
        assert service.http.get("/readyz").status_code == 200
        assert service.http.get(address).json()["state"] == "running"
        claimed.report([0, 10])
        seen.append(next(told))
    assert seen == [1, 2, 3, 4, 5]
    assert service.http.get(ROOT).json()["items"][0]["progress"]["step"] == 10
