"""The lease of a running search, and the one statement that checks it and numbers events."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, update

from db.errors import LeaseLost
from db.models import searches

LEASE_S = 9.0  # by database time; the runner renews it every 3 s


@dataclass(frozen=True)
class Lease:
    """The right to write for a search. `token` is the fencing token: it grows with every claim and every release."""

    search_id: str
    token: int


@dataclass(frozen=True)
class Runner:
    """A process that (id, start time) tells apart from a later one of the same id. `pid` leads its own process session.

    Args:
        host: where it runs.
        pid: its process id, which is also its process group and session.
        started_at: start time of the process as the host tells it (psutil's create_time), seconds since 1970.
    """

    host: str
    pid: int
    started_at: float


def fence(connection: Connection, lease: Lease, n: int = 0) -> int:
    """Check the lease and take the next n event numbers, in one statement; returns the last number taken.

    It also locks the row. Every write for a search starts here, so that its writers come one after the other and
    lock in one order: search first, then its trials and their rows.

    Raises:
        LeaseLost: the search was claimed or released since.
    """
    taken = connection.scalar(
        update(searches)
        .where(searches.c.id == lease.search_id, searches.c.lease_token == lease.token)
        .values(last_event=searches.c.last_event + n)
        .returning(searches.c.last_event)
    )
    if taken is None:
        raise LeaseLost(f"lease {lease.token} of search {lease.search_id} is over; this runner must stop")
    return int(taken)
