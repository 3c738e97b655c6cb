from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from db import events, reports, searches
from db.engine import reading, transaction
from db.errors import LeaseLost, NotFound
from db.lease import Lease
from tests.db.rows import queued, report, started


def numbers(engine: Engine, search_id: str) -> list[int]:
    with reading(engine) as connection:
        return [event.number for event in events.after(connection, search_id)]


def test_events_of_a_search_count_from_one(engine: Engine) -> None:
    first, second = queued(engine), queued(engine)
    with transaction(engine) as connection:
        assert events.append_unfenced(connection, first, [("warning", {"message": "a"}), ("warning", {})]) == 3
    assert numbers(engine, first) == [1, 2, 3]
    assert numbers(engine, second) == [1]
    with reading(engine) as connection:
        (event,) = events.after(connection, first, 1, limit=1)
        assert (event.search_id, event.number, event.type, event.data) == (first, 2, "warning", {"message": "a"})
        assert events.after(connection, first, 3) == []
        assert events.last_numbers(connection, [first, second, "unknown"]) == {first: 3, second: 1}


def test_the_newest_warnings_come_oldest_first(engine: Engine) -> None:
    first, second = queued(engine), queued(engine)
    with transaction(engine) as connection:
        for word in ("a", "b", "c"):
            events.append_unfenced(connection, first, [("warning", {"message": word}), ("cancelling", {})])
    with reading(engine) as connection:
        assert [(each.number, each.data) for each in events.warnings(connection, first, limit=2)] == [
            (4, {"message": "b"}),
            (6, {"message": "c"}),
        ]
        assert events.warnings(connection, second) == []


def test_the_first_event_of_a_type_is_found(engine: Engine) -> None:
    one, other = queued(engine), queued(engine)
    with transaction(engine) as connection:
        for word in ("a", "b"):
            events.append_unfenced(connection, one, [("estimate", {"reason": word})])
    with reading(engine) as connection:
        found = events.first(connection, one, "estimate")
        assert found is not None
        assert (found.number, found.data) == (2, {"reason": "a"})
        assert events.first(connection, other, "estimate") is None
        assert events.first(connection, "unknown", "queued") is None


def test_numbers_have_no_gap_whoever_writes_at_once(engine: Engine) -> None:
    """The runner's reports and warnings, undone transactions, and a cancel from outside, all together."""
    run = started(engine)

    def reporting(first: int) -> None:
        for step in range(first, first + 20):
            with transaction(engine) as connection:
                reports.insert(connection, run.lease, [report(run.trial_id, step)])

    def undone() -> None:
        with transaction(engine) as connection:
            events.append(connection, run.lease, [("warning", {"message": "undone"})])
            raise KeyError

    def warning(_: int) -> None:
        for place in range(20):
            with pytest.raises(KeyError):
                undone()
            with transaction(engine) as connection:
                events.append(connection, run.lease, [("warning", {"message": str(place)})] * 2)

    def cancelling(_: int) -> None:
        with transaction(engine) as connection:
            searches.cancel(connection, run.search_id)

    with ThreadPoolExecutor(4) as pool:
        for done in [
            pool.submit(reporting, 0),
            pool.submit(warning, 0),
            pool.submit(reporting, 100),
            pool.submit(cancelling, 0),
        ]:
            done.result()
    before = 4  # queued, started, trial queued, trial running
    assert numbers(engine, run.search_id) == list(range(1, before + 20 + 40 + 20 + 1 + 1))
    with reading(engine) as connection:
        assert events.last_numbers(connection, [run.search_id]) == {run.search_id: numbers(engine, run.search_id)[-1]}


def test_event_of_an_unknown_search_is_refused(engine: Engine) -> None:
    with transaction(engine) as connection:
        with pytest.raises(NotFound, match="no search 'nobody'"):
            events.append_unfenced(connection, "nobody", [("warning", {})])
        with pytest.raises(LeaseLost, match="lease 1 of search nobody is over; this runner must stop"):
            events.append(connection, Lease("nobody", 1), [("warning", {})])


def test_types_are_closed(engine: Engine) -> None:
    search_id = queued(engine)
    with pytest.raises(AssertionError, match="gossip"), transaction(engine) as connection:
        events.append_unfenced(connection, search_id, [("gossip", {})])
    assert numbers(engine, search_id) == [1]


def test_a_reader_never_sees_a_number_before_those_below_it(engine: Engine) -> None:
    """What an event stream relies on: once a number is told, all events up to it can be read."""
    search_id = queued(engine)
    n_writers, n_each = 3, 20

    def write(_: int) -> None:
        for _ in range(n_each):
            with transaction(engine) as connection:
                events.append_unfenced(connection, search_id, [("warning", {})] * 2)

    with ThreadPoolExecutor(n_writers) as pool:
        writing = [pool.submit(write, each) for each in range(n_writers)]
        seen = [0]
        while seen[-1] < 1 + n_writers * n_each * 2:
            with reading(engine) as connection:
                newest = events.last_numbers(connection, [search_id])[search_id]
            with reading(engine) as connection:
                found = events.after(connection, search_id, seen[-1])
            assert [event.number for event in found][: newest - seen[-1]] == [*range(seen[-1] + 1, newest + 1)]
            seen += [event.number for event in found]
            assert not any(each.done() and each.exception() for each in writing)
    assert seen == [*range(len(seen))]
