"""Rows that many tests start from: a queued search, a claimed one, a trial, a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, func, select

from db import reports, searches, trials
from db.engine import reading, transaction
from db.lease import Lease
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


def claim(engine: Engine, *, lease_s: float = 60.0) -> searches.Claim:
    with transaction(engine) as connection:
        found = searches.claim_next(connection, "here:1", free_cpus=8, free_gpus=8, lease_s=lease_s)
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
