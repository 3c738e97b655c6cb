"""The queue: how searches get to runners, and back from runners that stop or die. All by database time.

A claim gives a lease with a fencing token (`db.lease`); a heartbeat renews it; whose lease is over has lost the search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, case, func, select, update

from db import clock, events
from db.engine import LOCK_ADMISSION, one_at_a_time
from db.lease import LEASE_S, Lease, Runner, fence
from db.models import searches, trials
from db.searches import change, of_trials, release

MAX_FRUITLESS_ATTEMPTS = 3


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
    """A search taken from a dead runner: its state now (queued, failed, cancelled), whom to end before it goes on."""

    search_id: str
    state: str
    reason: str | None
    runner: Runner | None


def claim_next(
    connection: Connection, owner: str, *, free_cpus: float, free_gpus: float, lease_s: float = LEASE_S
) -> Claim | None:
    """Take the oldest queued search whose trial fits into what is free; None when there is none. Event `started`.

    Args:
        owner: who claims, such as host:pid of the dispatcher.
        lease_s: until when, from the database's now.
    """
    oldest = (
        select(searches.c.id)
        .where(searches.c.state == "queued", searches.c.cpus <= free_cpus, searches.c.gpus <= free_gpus)
        .order_by(searches.c.queued_at, searches.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)  # left out on SQLite, where the transaction is the only writer
        .scalar_subquery()
    )
    row = connection.execute(
        update(searches)
        .where(searches.c.id == oldest, searches.c.state == "queued")
        .values(
            state="running",
            stage=None,
            attempt=searches.c.attempt + 1,
            fruitless_attempts=searches.c.fruitless_attempts + 1,
            lease_token=searches.c.lease_token + 1,
            lease_owner=owner,
            lease_expires_at=clock.now() + lease_s,
            claimed_at=clock.now(),
            claimed_step=of_trials(trials.c.step),
            started_at=func.coalesce(searches.c.started_at, clock.now()),
        )
        .returning(searches)
    ).one_or_none()
    if row is None:
        return None
    lease = Lease(row.id, row.lease_token)
    events.append(connection, lease, [("started", {"attempt": row.attempt})])
    return Claim(lease, row.attempt, row.request, float(row.cpus), float(row.gpus), _runner(row))


def claim_within(
    connection: Connection, owner: str, *, cpus: float, gpus: float, lease_s: float = LEASE_S
) -> Claim | None:
    """`claim_next` beside what runs already, whoever claimed it: together never more than cpus and gpus.

    Several dispatchers may call it at once: what one takes, the next one counts. With nothing running even a search
    that fits nowhere is taken, for its runner says so as the reason why it failed.
    """
    one_at_a_time(connection, LOCK_ADMISSION)
    taken = connection.execute(
        select(
            func.count().label("n"),
            func.coalesce(func.sum(searches.c.cpus), 0.0).label("cpus"),
            func.coalesce(func.sum(searches.c.gpus), 0.0).label("gpus"),
        ).where(searches.c.state == "running")
    ).one()
    free_cpus, free_gpus = (cpus - taken.cpus, gpus - taken.gpus) if taken.n else (math.inf, math.inf)
    return claim_next(connection, owner, free_cpus=free_cpus, free_gpus=free_gpus, lease_s=lease_s)


def adopt(connection: Connection, running: Running, owner: str) -> bool:
    """Take over a running search whose owner is gone, with its runner; False if somebody else was first."""
    taken = connection.scalar(
        update(searches)
        .where(
            searches.c.id == running.lease.search_id,
            searches.c.lease_token == running.lease.token,
            searches.c.lease_owner == running.owner,
        )
        .values(lease_owner=owner)
        .returning(searches.c.id)
    )
    return taken is not None


def _runner(row: Row[Any]) -> Runner | None:
    return None if row.runner_pid is None else Runner(row.runner_host, row.runner_pid, row.runner_started_at)


def set_runner(connection: Connection, lease: Lease, runner: Runner) -> None:
    """Write down which process runs the search.

    Raises:
        LeaseLost
    """
    fence(connection, lease)
    change(
        connection,
        lease.search_id,
        runner_host=runner.host,
        runner_pid=runner.pid,
        runner_started_at=runner.started_at,
    )


def heartbeat(connection: Connection, lease: Lease, *, lease_s: float = LEASE_S) -> bool:
    """Renew the lease; returns whether the search is being cancelled. Use an engine with a busy timeout of 2 s.

    Raises:
        LeaseLost
    """
    cancelling = connection.scalar(
        update(searches)
        .where(searches.c.id == lease.search_id, searches.c.lease_token == lease.token)
        .values(lease_expires_at=clock.now() + lease_s)
        .returning(searches.c.cancelling)
    )
    if cancelling is None:
        fence(connection, lease)
    return bool(cancelling)


def requeue(connection: Connection, lease: Lease) -> str:
    """Give a running search back in good order; returns `queued`, or `cancelled` if that was asked for meanwhile.

    Does not count as an attempt; its running trials become `pre-empted`. Event `requeued`.

    Raises:
        LeaseLost
    """
    fence(connection, lease)
    if connection.scalar(select(searches.c.cancelling).where(searches.c.id == lease.search_id)):
        release(connection, lease, "cancelled", None, running_trials="cancelled")
        return "cancelled"
    release(connection, lease, "queued", None, running_trials="pre-empted")
    fewer = searches.c.fruitless_attempts - 1
    change(connection, lease.search_id, fruitless_attempts=case((fewer < 0, 0), else_=fewer))
    return "queued"


def reclaim(connection: Connection, lease: Lease, reason: str) -> Reclaimed:
    """Take a search from a runner that is known to be dead, before its lease ends. As `reclaim_expired`.

    Args:
        reason: what happened to the runner, such as "the runner exited with status 1".

    Raises:
        LeaseLost: somebody else claimed or finished it.
    """
    fence(connection, lease)
    row = connection.execute(select(searches).where(searches.c.id == lease.search_id)).one()
    state = "queued"
    if row.cancelling:
        state = "cancelled"
    elif row.fruitless_attempts >= MAX_FRUITLESS_ATTEMPTS:
        state = "failed"
        reason = f"{row.fruitless_attempts} attempts in a row ended without a new checkpoint; the last one: {reason}"
    release(connection, lease, state, reason, running_trials="lost")
    return Reclaimed(row.id, state, reason if state == "failed" else None, _runner(row))


def reclaim_expired(connection: Connection) -> tuple[Reclaimed, ...]:
    """Take every running search whose lease is over (database time) from its runner.

    It becomes `cancelled` if that was asked for, `failed` after three attempts in a row without a new acknowledged
    checkpoint, else `queued` (event `requeued`). Its running trials become `lost`.
    """
    expired = connection.execute(
        select(searches.c.id, searches.c.lease_token, searches.c.runner_host, searches.c.runner_pid)
        .where(searches.c.state == "running", searches.c.lease_expires_at < clock.now())
        .order_by(searches.c.id)
        .with_for_update(skip_locked=True)
    ).all()
    return tuple(
        reclaim(connection, Lease(row.id, row.lease_token), f"the runner {_where(row)} was not heard of any more")
        for row in expired
    )


def _where(row: Row[Any, Any, Any, Any]) -> str:
    return "(never started)" if row.runner_pid is None else f"(pid {row.runner_pid} on {row.runner_host})"


def running(connection: Connection) -> tuple[Running, ...]:
    """All running searches: what a dispatcher adopts, counts as taken, and signals when `cancelling`."""
    statement = (
        select(searches, (searches.c.lease_expires_at - clock.now()).label("expires_in_s"))
        .where(searches.c.state == "running")
        .order_by(searches.c.id)
    )
    return tuple(
        Running(
            Lease(row.id, row.lease_token),
            row.lease_owner,
            row.attempt,
            row.cancelling,
            row.cpus,
            row.gpus,
            _runner(row),
            row.expires_in_s,
        )
        for row in connection.execute(statement)
    )
