"""Trials of a search: (kind, sample, seed), each one supernet search or one retraining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from db.lease import Lease

KINDS = ("search", "retrain")
STATES = ("queued", "running", "succeeded", "failed", "cancelled", "lost", "pre-empted")


@dataclass(frozen=True)
class Trial:
    """Args:
    kind: search, or retrain.
    sample: which hyper-parameter sample, or of a retraining which architecture; from 0.
    seed: its own seed.
    params: the sample's values by JSON pointer.
    architecture_id: what is retrained; None for a search.
    step: newest reported step.
    n_steps: weight updates it will do.
    attempt: the search's attempt that it last started in; 0 before.
    device: fingerprint of the device it last started on.
    result: a small JSON object the runner keeps with it, such as {"val_loss": ...}.
    """

    id: str
    search_id: str
    kind: str
    sample: int
    seed: int
    state: str
    reason: str | None
    params: dict[str, Any]
    architecture_id: str | None
    step: int
    n_steps: int
    attempt: int
    device: str | None
    result: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True)
class NewTrial:
    """See `Trial`."""

    kind: str
    sample: int
    seed: int
    n_steps: int
    params: Mapping[str, Any]
    architecture_id: str | None = None


def ensure(connection: Connection, lease: Lease, wanted: Sequence[NewTrial]) -> list[Trial]:
    """The trials of these (kind, sample, seed), in the order asked for: existing ones as they are, new ones queued.

    A restarted runner asks again and gets the same ids. Event `trial` for each new one.

    Raises:
        LeaseLost
    """
    raise NotImplementedError


def start(connection: Connection, lease: Lease, trial_id: str, *, attempt: int, device: str | None = None) -> None:
    """Mark it running in this attempt of the search. Event `trial`.

    Raises:
        LeaseLost
        NotFound: the search has no such trial.
    """
    raise NotImplementedError


def finish(
    connection: Connection,
    lease: Lease,
    trial_id: str,
    state: str,
    *,
    reason: str | None = None,
    result: Mapping[str, Any] | None = None,
) -> None:
    """Any state but queued and running. Event `trial` {trial, kind, sample, seed, state, reason}.

    Raises:
        LeaseLost
        NotFound: the search has no such trial.
        ValueError: not a state in which a trial rests, or failed without a reason.
    """
    raise NotImplementedError


def of_search(connection: Connection, search_id: str, *, kind: str | None = None) -> list[Trial]:
    """In the order kind search before retrain, sample, seed; [] for an unknown search."""
    raise NotImplementedError


def get(connection: Connection, trial_id: str) -> Trial:
    """Raises: NotFound: no such trial."""
    raise NotImplementedError
