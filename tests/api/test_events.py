from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import httpx
import pytest

from api.routes import events as events_route
from api.settings import Settings
from db import events, searches
from db.engine import transaction
from tests.api.running import TINY, Claimed, Running, running

DATABASES = ("sqlite", "postgresql")
ROOT = "/api/v1/searches"


def read(
    service: Running, search_id: str, *, n: int | None = None, params: Any = None, headers: Any = None
) -> list[dict[str, Any]]:
    """Events of the stream until its end, or the first n."""
    found: list[dict[str, Any]] = []
    with service.http.stream("GET", f"{ROOT}/{search_id}/events", params=params, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                event = json.loads(fields["data"])
                assert (fields["id"], fields["event"]) == (str(event["number"]), event["type"])
                found.append(event)
                fields = {}
                if len(found) == n:
                    return found
    return found


def test_a_finished_search_is_replayed_without_a_gap_and_the_stream_ends(service: Running, claimed: Claimed) -> None:
    for step in range(0, 20, 5):
        claimed.report([step])
    with transaction(service.engine) as connection:
        searches.finish(connection, claimed.lease, "succeeded")
    events = read(service, claimed.id)
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("queued", "succeeded")
    assert service.http.get(f"{ROOT}/{claimed.id}").json()["last_event"] == len(events)


def test_warnings_are_told_without_a_replay(service: Running, claimed: Claimed) -> None:
    claimed.report([0, 5])
    with transaction(service.engine) as connection:
        events.append(connection, claimed.lease, [("warning", {"message": "one seed ended early"})])
    answer = service.http.get(f"{ROOT}/{claimed.id}/warnings")
    (warning,) = answer.json()["items"]
    assert (warning["type"], warning["data"]) == ("warning", {"message": "one seed ended early"})
    assert warning in read(service, claimed.id, n=warning["number"])
    again = service.http.get(f"{ROOT}/{claimed.id}/warnings", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    unknown = service.http.get(f"{ROOT}/01a228a3-cca2-7393-bcff-13c969196abe/warnings")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not-found")


def test_a_stream_starts_behind_the_number_it_is_given(service: Running, claimed: Claimed) -> None:
    claimed.report([0])
    with transaction(service.engine) as connection:
        searches.finish(connection, claimed.lease, "succeeded")
    whole = read(service, claimed.id)
    assert read(service, claimed.id, params={"after": 2}) == whole[2:]
    assert read(service, claimed.id, headers={"Last-Event-ID": "3"}) == whole[3:]
    assert read(service, claimed.id, params={"after": 1}, headers={"Last-Event-ID": "3"}) == whole[3:]


def test_an_ended_search_with_nothing_left_to_send_tells_clients_to_stop(
    service: Running, submitted: dict[str, Any]
) -> None:
    service.http.post(f"{ROOT}/{submitted['id']}/cancel")
    assert service.http.get(f"{ROOT}/{submitted['id']}/events", headers={"Last-Event-ID": "2"}).status_code == 204


def test_reports_events_carry_their_rows(service: Running, claimed: Claimed) -> None:
    claimed.report([0, 5])
    (event,) = [each for each in read(service, claimed.id, n=5) if each["type"] == "reports"]
    assert (event["data"]["trial"], event["data"]["first_step"], event["data"]["last_step"]) == (claimed.trial, 0, 5)
    first, second = event["data"]["reports"]
    assert (first["step"], second["step"]) == (0, 5)
    assert second["train_loss"] == 2.95
    assert second["probabilities"] == [[0.75, 0.125, 0.125], [0.25, 0.375, 0.375]]
    assert second["null_gaps"] == [0.5, 0.5]
    assert (second["phase"], second["z"][0]) == ("search", [-4.5, 0.5, 2.0])
    assert {"path", "effect_nats", "effect_se", "identity_share", "warning"} < set(second)


def test_new_events_reach_every_open_stream_in_order(service: Running, claimed: Claimed) -> None:
    n_steps = 30
    found: dict[int, list[dict[str, Any]]] = {}

    def follow(number: int) -> None:
        found[number] = read(service, claimed.id)

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for step in range(n_steps):
        claimed.report([step])
        time.sleep(0.01)
    with transaction(service.engine) as connection:
        searches.finish(connection, claimed.lease, "failed", reason="diverged")
    for thread in threads:
        thread.join(timeout=120)
    assert found[0] == found[1] == found[2]
    assert [event["number"] for event in found[0]] == list(range(1, len(found[0]) + 1))
    steps = [row["step"] for event in found[0] if event["type"] == "reports" for row in event["data"]["reports"]]
    assert steps == list(range(n_steps))
    assert found[0][-1]["type"] == "failed"


def test_a_long_replay_comes_in_several_reads(
    service: Running, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_route, "BATCH", 2)
    for step in range(7):
        claimed.report([step])
    with transaction(service.engine) as connection:
        searches.finish(connection, claimed.lease, "succeeded")
    events = read(service, claimed.id)
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))


def test_a_silent_stream_is_kept_alive(
    service: Running, submitted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_route, "PING_S", 0.05)
    with service.http.stream("GET", f"{ROOT}/{submitted['id']}/events", params={"after": 1}) as answer:
        assert next(line for line in answer.iter_lines() if line.startswith(":")) == ": ping"


def test_a_closed_stream_is_forgotten(service: Running, submitted: dict[str, Any]) -> None:
    assert len(read(service, submitted["id"], n=1)) == 1
    deadline = time.monotonic() + 20
    while len(service.app.state.follower) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(service.app.state.follower) == 0


def test_a_deleted_search_ends_its_streams(service: Running, submitted: dict[str, Any]) -> None:
    found: list[list[dict[str, Any]]] = []
    thread = threading.Thread(target=lambda: found.append(read(service, submitted["id"], params={"after": 0})))
    thread.start()
    while not len(service.app.state.follower):
        time.sleep(0.01)
    service.http.post(f"{ROOT}/{submitted['id']}/cancel")
    service.http.delete(f"{ROOT}/{submitted['id']}")
    thread.join(timeout=120)
    assert not thread.is_alive()


def test_a_stopping_service_ends_its_streams(service: Running, submitted: dict[str, Any]) -> None:
    with service.http.stream("GET", f"{ROOT}/{submitted['id']}/events") as answer:
        lines = answer.iter_lines()
        next(lines)
        service.app.state.follower.close()
        assert [line for line in lines if line.startswith("id: ")] == ["id: 1"]


def test_streams_that_come_at_once_are_no_more_than_allowed(service: Running, submitted: dict[str, Any]) -> None:
    follower = service.app.state.follower

    async def second_of_two() -> list[bytes]:
        with follower.follow(submitted["id"]):
            return [line async for line in events_route._lines(service.engine, follower, submitted["id"], 0, 1)]

    assert asyncio.run(second_of_two()) == [b"retry: 1000\n\n"]


def test_too_many_streams_are_refused(settings: Settings) -> None:
    with running(settings.model_copy(update={"max_streams": 1})) as service:
        search_id = service.http.post(ROOT, json=TINY).json()["id"]
        with service.http.stream("GET", f"{ROOT}/{search_id}/events") as answer:
            lines = answer.iter_lines()  # kept: httpx closes the connection with the iterator
            next(lines)
            refused = httpx.get(f"{service.url}{ROOT}/{search_id}/events", trust_env=False, timeout=60)
        assert (refused.status_code, refused.json()["code"]) == (503, "too-many-streams")
        assert refused.json()["detail"] == "1 event streams are open, the most that are allowed; close one or try later"
