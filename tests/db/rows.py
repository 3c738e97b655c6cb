"""Rows that many tests start from: a queued search, a claimed one, a trial, a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, func, select

from db import (
    architectures,
    artifacts,
    checkpoints,
    datasets,
    events,
    latency_tables,
    queue,
    reports,
    rules,
    searches,
    trials,
)
from db.engine import reading, transaction
from db.lease import Lease, Runner
from db.models import metadata
from nas.steps import StepRecord

LABELS = ("attention", "ffn", "identity")


def create(connection: Connection, **changes: Any) -> searches.Search:
    fields: dict[str, Any] = {
        "request": {"name": "tiny"},
        "name": "tiny",
        "labels": LABELS,
        "dataset": "python-docs",
        "cpus": 1.0,
        "gpus": 0.0,
        "n_steps": 100,
    }
    return searches.create(connection, **{**fields, **changes}).search


def queued(engine: Engine, **changes: Any) -> str:
    with transaction(engine) as connection:
        return create(connection, **changes).id


def claim(engine: Engine, *, lease_s: float = 60.0) -> queue.Claim:
    with transaction(engine) as connection:
        found = queue.claim_next(connection, "here:1", free_cpus=8, free_gpus=8, lease_s=lease_s)
    assert found is not None
    return found


@dataclass(frozen=True)
class Started:
    """A running search with one running trial of 100 steps."""

    search_id: str
    lease: Lease
    trial_id: str


def started(engine: Engine, *, lease_s: float = 60.0) -> Started:
    search_id = queued(engine)
    lease = claim(engine, lease_s=lease_s).lease
    with transaction(engine) as connection:
        (trial,) = trials.ensure(connection, lease, [trials.NewTrial("search", 0, 0, 100, {})])
        trials.start(connection, lease, trial.id, attempt=1, device="cpu")
    return Started(search_id, lease, trial.id)


def record(step: int, **changes: Any) -> StepRecord:
    """A report of a search trial: two slots, three candidates."""
    fields: dict[str, Any] = {
        "phase": "search",
        "train_loss": 2.5,
        "tau": 5.0,
        "tokens_per_s": 1000.0,
        "probabilities": [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]],
        "null_gaps": [0.5, 0.5],
        "updates": [[1, 2, 3], [3, 2, 1]],
    }
    return StepRecord(step, **{**fields, **changes})


def report(trial_id: str, step: int, device: str | None = "cpu", **changes: Any) -> reports.NewReport:
    return reports.NewReport(trial_id, record(step, **changes), device)


def counts(engine: Engine) -> dict[str, int]:
    """Rows of every table."""
    with reading(engine) as connection:
        return {
            name: connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
        }


def fill(engine: Engine) -> None:
    """At least one row in every table, and something in every column."""
    queued(engine, tokenizer="mine", idempotency_key="key", request_hash="hash")
    lease = claim(engine).lease
    with transaction(engine) as connection:
        queue.set_runner(connection, lease, Runner("here", 42, 1.5))
        searches.set_stage(connection, lease, "searching")
        latency_tables.put(connection, lease, table_id="table", key="k", body={"entries": {}})
        searches.set_inputs(
            connection, lease, request={"name": "tiny"}, latency_table_id="table", slot_ms=[3.0, 2.0, 0.0]
        )
        searched, retrained = trials.ensure(
            connection,
            lease,
            [trials.NewTrial("search", 0, 0, 100, {"/lr": 0.5}), trials.NewTrial("retrain", 0, 0, 9, {})],
        )
        for each in (searched, retrained):
            trials.start(connection, lease, each.id, attempt=1, device="cpu")
        numbers = ("val_loss", "val_loss_soft", "val_loss_argmax", "val_loss_sampled", "expected_ms", "entropy")
        every: dict[str, Any] = dict.fromkeys((*numbers, "identity_share", "alpha_velocity", "dual"), 1.5)
        every |= {"phase": "prune", "path": [0, 1], "warning": "identity took 5 of 6 slots"}
        every |= {"not_learnt": "no better than at step 0", "cut_short": "ended after 10 of 40"}
        every |= {name: [[0.0, None, 1.5], [None, 0.0, None]] for name in ("z", "effect_nats", "effect_se")}
        every |= {"finalists": [[0, 1], [1, 2]], "finalist_nats": [1.5, 1.75]}
        checkpoints.acknowledge(
            connection,
            lease,
            [report(searched.id, 0), report(searched.id, 10, **every)],
            trial_id=searched.id,
            step=10,
            path="a/10.safetensors",
            sha256="s",
            attempt=1,
        )
        derived = architectures.put(
            connection,
            lease,
            role="budget",
            string="AF",
            hash="h",
            body={"slots": ["attention", "ffn"], "undecided": []},
            trial_id=searched.id,
            predicted_ms=1.5,
        )
        architectures.set_result(connection, lease, derived.id)
        rules.put(connection, lease, statement="attention first", verdict="suggested", body={"n": 1})
        artifacts.put(
            connection, lease, kind="export", name="export.zip", path="searches/x/export.zip", sha256="s", n_bytes=1
        )
        datasets.register(
            connection, name="book", fingerprint="f", n_bytes=9, path="datasets/f.txt", card={"n_rows": 1}
        )
        trials.finish(connection, lease, searched.id, "failed", reason="diverged", result={"val_loss": 1.5})
        searches.set_result(connection, lease, {"quality": {"derived_bits_per_byte": 2.5}})
        searches.finish(connection, lease, "failed", reason="the disk is full")
    queued(engine)
    claim(engine)
    assert all(counts(engine).values())


def get(engine: Engine, search_id: str) -> searches.Search:
    with reading(engine) as connection:
        return searches.get(connection, search_id)


def types(engine: Engine, search_id: str) -> list[str]:
    with reading(engine) as connection:
        return [event.type for event in events.after(connection, search_id)]


def trial_states(engine: Engine, search_id: str) -> list[str]:
    with reading(engine) as connection:
        return [trial.state for trial in trials.of_search(connection, search_id)]
