"""Acknowledged checkpoints: a file counts only once its row is here, written together with the reports up to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from db.lease import Lease
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

    Raises:
        LeaseLost
        NotFound: a trial that is not of this search.
        ValueError: the report of the checkpoint's own step is neither stored nor in `flushed`; or path is not relative.
    """
    raise NotImplementedError


def newest(connection: Connection, trial_id: str) -> Checkpoint | None:
    """Where a restarted trial goes on from; None: from the beginning."""
    raise NotImplementedError


def of_trial(connection: Connection, trial_id: str) -> list[Checkpoint]:
    """Newest first: what to try when the newest file is damaged."""
    raise NotImplementedError
