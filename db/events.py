"""The event stream of a search: a closed set of types, numbered 1, 2, 3, ... per search without a gap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from db.lease import Lease

TYPES = (
    "queued",
    "started",
    "stage",
    "trial",
    "reports",
    "checkpoint",
    "warning",
    "latency_table",
    "architecture",
    "rule",
    "artifact",
    "result",
    "cancelling",
    "requeued",
    "succeeded",
    "failed",
    "cancelled",
)

Entry = tuple[str, Mapping[str, Any]]  # (type, data)


@dataclass(frozen=True)
class Event:
    """`number` is the event's place in its search, from 1; SSE sends it as the id."""

    search_id: str
    number: int
    type: str
    data: dict[str, Any]
    created_at: datetime


def append(connection: Connection, lease: Lease, entries: Sequence[Entry]) -> int:
    """Write events as the runner that holds the lease; returns the number of the last one.

    Mostly for warnings (data {"message": one line, ...}): the other functions of `db` write their events themselves.

    Raises:
        LeaseLost: the search was claimed or released since.
    """
    raise NotImplementedError


def append_unfenced(connection: Connection, search_id: str, entries: Sequence[Entry]) -> int:
    """Write events of a change that needs no lease (cancel, resume, reclaim), in the transaction of that change.

    Raises:
        NotFound: no such search.
    """
    raise NotImplementedError


def after(connection: Connection, search_id: str, number: int = 0, *, limit: int = 500) -> list[Event]:
    """The events behind `number`, in order, at most `limit`; [] for an unknown search.

    A `reports` event says {trial, first_step, last_step}; its rows come from `reports.between`.
    """
    raise NotImplementedError


def last_numbers(connection: Connection, search_ids: Iterable[str]) -> dict[str, int]:
    """last_event of each search that exists: one cheap statement, for the poller."""
    raise NotImplementedError
