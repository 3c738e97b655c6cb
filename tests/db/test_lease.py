from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, Engine

from db import (
    architectures,
    artifacts,
    checkpoints,
    events,
    latency_tables,
    queue,
    reports,
    rules,
    searches,
    trials,
)
from db.engine import reading, transaction
from db.errors import LeaseLost
from db.lease import Lease, Runner, fence
from tests.db.rows import Started, claim, counts, report, started

Write = Callable[[Connection, Lease, str], object]

WRITES: dict[str, Write] = {
    "events.append": lambda c, lease, trial: events.append(c, lease, [("warning", {"message": "late"})]),
    "queue.set_runner": lambda c, lease, trial: queue.set_runner(c, lease, Runner("here", 2, 0.0)),
    "queue.heartbeat": lambda c, lease, trial: queue.heartbeat(c, lease),
    "searches.set_stage": lambda c, lease, trial: searches.set_stage(c, lease, "searching"),
    "searches.set_inputs": lambda c, lease, trial: searches.set_inputs(
        c, lease, request={}, latency_table_id="t", slot_ms=[]
    ),
    "searches.set_result": lambda c, lease, trial: searches.set_result(c, lease, {}),
    "searches.finish": lambda c, lease, trial: searches.finish(c, lease, "succeeded"),
    "queue.requeue": lambda c, lease, trial: queue.requeue(c, lease),
    "queue.reclaim": lambda c, lease, trial: queue.reclaim(c, lease, "late"),
    "trials.ensure": lambda c, lease, trial: trials.ensure(c, lease, [trials.NewTrial("search", 0, 1, 100, {})]),
    "trials.start": lambda c, lease, trial: trials.start(c, lease, trial, attempt=1),
    "trials.finish": lambda c, lease, trial: trials.finish(c, lease, trial, "succeeded"),
    "reports.insert": lambda c, lease, trial: reports.insert(c, lease, [report(trial, 10)]),
    "checkpoints.acknowledge": lambda c, lease, trial: checkpoints.acknowledge(
        c, lease, [report(trial, 10)], trial_id=trial, step=10, path="a", sha256="s", attempt=1
    ),
    "latency_tables.put": lambda c, lease, trial: latency_tables.put(c, lease, table_id="t", key="k", body={}),
    "architectures.put": lambda c, lease, trial: architectures.put(
        c, lease, role="argmax", string="A", hash="h", body={}
    ),
    "architectures.set_result": lambda c, lease, trial: architectures.set_result(c, lease, "a"),
    "rules.put": lambda c, lease, trial: rules.put(c, lease, statement="s", verdict="suggested", body={}),
    "artifacts.put": lambda c, lease, trial: artifacts.put(
        c, lease, kind="export", name="a.zip", path="a.zip", sha256="s", n_bytes=1
    ),
}


def everything(engine: Engine, run: Started) -> tuple[object, ...]:
    with reading(engine) as connection:
        return (
            counts(engine),
            searches.get(connection, run.search_id),
            trials.of_search(connection, run.search_id),
            events.after(connection, run.search_id),
        )


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_runner_of_a_lost_lease_writes_nothing(engine: Engine, write: Write) -> None:
    run = started(engine, lease_s=-1)
    with transaction(engine) as connection:
        queue.reclaim_expired(connection)
    claim(engine)  # somebody else runs it now
    before = everything(engine, run)
    with pytest.raises(LeaseLost, match="is over; this runner must stop"), transaction(engine) as connection:
        write(connection, run.lease, run.trial_id)
    assert everything(engine, run) == before


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_finished_search_takes_no_more_writes(engine: Engine, state: str) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        searches.finish(connection, run.lease, state, reason="x")  # type: ignore[arg-type]
    with transaction(engine) as connection, pytest.raises(LeaseLost):
        fence(connection, run.lease)


def test_fence_numbers_in_the_same_statement(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        last = fence(connection, run.lease)
        assert fence(connection, run.lease, 3) == last + 3
