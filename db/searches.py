"""Searches: creation, the queue, leases, states. Every change of state is here, with its event, in one transaction.

    queued -> running -> succeeded | failed | cancelled;  failed | cancelled -> queued by `resume`

A running search has a `stage`, and `cancelling` once somebody asked for its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection

from db.lease import LEASE_S, Lease, Runner
from db.paging import Page

STATES = ("queued", "running", "succeeded", "failed", "cancelled")
TERMINAL = ("succeeded", "failed", "cancelled")
STAGES = ("measuring", "searching", "deriving", "retraining", "diagnosing", "exporting")
MAX_FRUITLESS_ATTEMPTS = 3


@dataclass(frozen=True)
class Progress:
    """Weight updates done and planned over all trials; `share` in [0, 1]; `eta_s` None while nothing tells the speed."""

    step: int
    n_steps: int
    share: float
    eta_s: float | None


@dataclass(frozen=True)
class Search:
    """A search as its row and its trials tell it."""

    id: str
    name: str
    state: str
    stage: str | None
    cancelling: bool
    reason: str | None
    request: dict[str, Any]
    labels: tuple[str, ...]
    dataset: str
    cpus: float
    gpus: float
    attempt: int
    latency_table_id: str | None
    last_event: int
    result: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: Progress


@dataclass(frozen=True)
class Claim:
    """What a dispatcher gets with a search.

    Args:
        lease: for `set_runner` and the runner.
        attempt: 1, 2, ...: number of this claim, names the attempt's folders.
        request: the stored request.
        cpus, gpus: what one trial takes.
        previous: the runner of the last attempt, if any: its process group must be gone before a new runner starts.
    """

    lease: Lease
    attempt: int
    request: dict[str, Any]
    cpus: float
    gpus: float
    previous: Runner | None


@dataclass(frozen=True)
class Running:
    """A running search, as a dispatcher that adopts it or signals it needs it; `runner` None before `set_runner`."""

    lease: Lease
    owner: str
    attempt: int
    cancelling: bool
    cpus: float
    gpus: float
    runner: Runner | None
    expires_in_s: float


@dataclass(frozen=True)
class Reclaimed:
    """A search taken from a dead runner: its new state (queued, failed or cancelled), and whom to end before it runs again."""

    search_id: str
    state: str
    reason: str | None
    runner: Runner | None


@dataclass(frozen=True)
class Created:
    """`is_new` is False when the idempotency key had made this search before."""

    search: Search
    is_new: bool


def create(
    connection: Connection,
    *,
    request: Mapping[str, Any],
    name: str,
    labels: Sequence[str],
    dataset: str,
    cpus: float,
    gpus: float,
    n_steps: int,
    idempotency_key: str | None = None,
    request_hash: str | None = None,
) -> Created:
    """A queued search, its first event and its idempotency key, in the caller's transaction.

    Args:
        request: with every default written out; plain JSON.
        labels: of the candidates, in the request's order.
        cpus, gpus: what one trial takes; the queue admits by it.
        n_steps: weight updates planned over all trials, for the progress; a guess is fine.
        idempotency_key: the client's; the same key with the same hash returns the first search.
        request_hash: sha256 of the body; required with a key.

    Raises:
        IdempotencyConflict: the key was used with another request_hash.
    """
    raise NotImplementedError


def get(connection: Connection, search_id: str) -> Search:
    """One search, with its progress; one statement.

    Raises:
        NotFound: no such search.
    """
    raise NotImplementedError


def list(
    connection: Connection,
    *,
    state: str | None = None,
    dataset: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[Search]:
    """Newest first.

    Raises:
        InvalidCursor: the cursor was not handed out by this function.
    """
    raise NotImplementedError


def cancel(connection: Connection, search_id: str) -> Search:
    """Ask for the end: a queued search is cancelled at once, a running one becomes `cancelling`. Idempotent.

    Raises:
        NotFound: no such search.
        WrongState: it has succeeded or failed.
    """
    raise NotImplementedError


def resume(connection: Connection, search_id: str) -> Search:
    """Queue a failed or cancelled search again; it goes on from its acknowledged checkpoints. Idempotent.

    Raises:
        NotFound: no such search.
        WrongState: it has succeeded, or is being cancelled.
    """
    raise NotImplementedError


def delete(connection: Connection, search_id: str) -> None:
    """Delete a finished search with all its rows; its files are the caller's.

    Raises:
        NotFound: no such search.
        WrongState: it is queued or running.
    """
    raise NotImplementedError


def claim_next(
    connection: Connection, owner: str, *, free_cpus: float, free_gpus: float, lease_s: float = LEASE_S
) -> Claim | None:
    """Take the oldest queued search whose trial fits into what is free; None when there is none. Event `started`.

    Args:
        owner: who claims, such as host:pid of the dispatcher.
        lease_s: until when, from the database's now.
    """
    raise NotImplementedError


def set_runner(connection: Connection, lease: Lease, runner: Runner) -> None:
    """Write down which process runs the search.

    Raises:
        LeaseLost
    """
    raise NotImplementedError


def heartbeat(connection: Connection, lease: Lease, *, lease_s: float = LEASE_S) -> bool:
    """Renew the lease; returns whether the search is being cancelled. Use an engine with a busy timeout of 2 s.

    Raises:
        LeaseLost
    """
    raise NotImplementedError


def set_stage(connection: Connection, lease: Lease, stage: str) -> None:
    """Event `stage`, unless the search is in this stage already.

    Raises:
        LeaseLost
        ValueError: not one of STAGES.
    """
    raise NotImplementedError


def set_inputs(connection: Connection, lease: Lease, *, request: Mapping[str, Any], latency_table_id: str) -> None:
    """Store the request with the data set's fingerprint and the table's id in it. Event `latency_table` {id}.

    Raises:
        LeaseLost
    """
    raise NotImplementedError


def set_result(connection: Connection, lease: Lease, result: Mapping[str, Any]) -> None:
    """Store what result.json holds. Event `result`.

    Raises:
        LeaseLost
    """
    raise NotImplementedError


def finish(
    connection: Connection,
    lease: Lease,
    state: Literal["succeeded", "failed", "cancelled"],
    *,
    reason: str | None = None,
) -> None:
    """End a running search and give the lease back; trials still open become `cancelled`.

    Args:
        reason: required for failed: one line that a person can act on.

    Raises:
        LeaseLost
        ValueError: failed without a reason, or not a terminal state.
    """
    raise NotImplementedError


def requeue(connection: Connection, lease: Lease) -> str:
    """Give a running search back in good order; returns `queued`, or `cancelled` if that was asked for meanwhile.

    Does not count as an attempt; its running trials become `pre-empted`. Event `requeued`.

    Raises:
        LeaseLost
    """
    raise NotImplementedError


def reclaim(connection: Connection, lease: Lease, reason: str) -> Reclaimed:
    """Take a search from a runner that is known to be dead, before its lease ends. As `reclaim_expired`.

    Args:
        reason: what happened to the runner, such as "the runner exited with status 1".

    Raises:
        LeaseLost: somebody else claimed or finished it.
    """
    raise NotImplementedError


def reclaim_expired(connection: Connection) -> tuple[Reclaimed, ...]:
    """Take every running search whose lease is over (database time) from its runner.

    It becomes `cancelled` if that was asked for, `failed` after three attempts in a row without a new acknowledged
    checkpoint, else `queued` (event `requeued`). Its running trials become `lost`.
    """
    raise NotImplementedError


def running(connection: Connection) -> tuple[Running, ...]:
    """All running searches: what a dispatcher adopts, counts as taken, and signals when `cancelling`."""
    raise NotImplementedError
