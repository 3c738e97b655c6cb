"""Acknowledged checkpoints: a file counts only once its row is here, written together with the reports up to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, select, update

from db import clock, events, reports, trials
from db.engine import insert_into
from db.files import relative
from db.lease import Lease
from db.models import checkpoints, searches
from db.reports import Inserted, NewReport


@dataclass(frozen=True)
class Checkpoint:
    """`path` is relative to the data folder; `attempt` is the search's attempt that wrote the file."""

    trial_id: str
    step: int
    path: str
    sha256: str
    attempt: int
    created_at: datetime


def acknowledge(
    connection: Connection,
    lease: Lease,
    flushed: Sequence[NewReport],
    *,
    trial_id: str,
    step: int,
    path: str,
    sha256: str,
    attempt: int,
) -> Inserted:
    """Write the queued reports (as `reports.insert`) and the checkpoint's row in the caller's one transaction.

    A step acknowledged before is written over (the file of this attempt may be the only good one) without an event
    and is no news; a new one has the event `checkpoint` {trial, step} and ends the count of fruitless attempts.
    If a step of this trial conflicts on the same device, nothing is acknowledged: the trial is about to fail.

    Raises:
        LeaseLost
        NotFound: a trial that is not of this search.
        ValueError: the report of the checkpoint's own step is neither stored nor in `flushed`; or path is absolute or
            leaves the data folder.
    """
    inserted = reports.insert(connection, lease, flushed)
    trials.own(connection, lease, trial_id)
    if any(conflict.same_device and conflict.trial_id == trial_id for conflict in inserted.conflicts):
        return inserted
    if not reports.between(connection, trial_id, step, step):
        raise ValueError(f"checkpoint {step} of trial {trial_id} comes before the report of its step")
    file = {"path": relative(path), "sha256": sha256, "attempt": attempt}
    known = connection.execute(_select(trial_id).where(checkpoints.c.step == step)).one_or_none()
    connection.execute(
        insert_into(connection, checkpoints)
        .values(trial_id=trial_id, step=step, created_at=clock.now(), **file)
        .on_conflict_do_update(index_elements=["trial_id", "step"], set_={**file, "created_at": clock.now()})
    )
    if known is None:
        events.append(connection, lease, [("checkpoint", {"trial": trial_id, "step": step})])
        connection.execute(update(searches).where(searches.c.id == lease.search_id).values(fruitless_attempts=0))
    return inserted


def newest(connection: Connection, trial_id: str) -> Checkpoint | None:
    """Where a restarted trial goes on from; None: from the beginning."""
    row = connection.execute(_select(trial_id).limit(1)).one_or_none()
    return None if row is None else _checkpoint(row)


def of_trial(connection: Connection, trial_id: str) -> list[Checkpoint]:
    """Newest first: what to try when the newest file is damaged."""
    return [_checkpoint(row) for row in connection.execute(_select(trial_id))]


def _select(trial_id: str) -> Select[Any]:
    return select(checkpoints).where(checkpoints.c.trial_id == trial_id).order_by(checkpoints.c.step.desc())


def _checkpoint(row: Row[Any]) -> Checkpoint:
    return Checkpoint(row.trial_id, row.step, row.path, row.sha256, row.attempt, clock.moment(row.created_at))
