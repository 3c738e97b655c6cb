"""The event stream of a search: a closed set of types, numbered 1, 2, 3, ... per search without a gap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from db import clock
from db.errors import NotFound
from db.lease import Lease, fence
from db.models import events, searches

TYPES = (
    "queued",
    "started",
    "stage",
    "trial",
    "reports",
    "checkpoint",
    "warning",
    "latency_table",
    "estimate",
    "power",
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
    last = fence(connection, lease, len(entries))
    _write(connection, lease.search_id, last, entries)
    return last


def append_unfenced(connection: Connection, search_id: str, entries: Sequence[Entry]) -> int:
    """Write events of a change that needs no lease (cancel, resume), in the transaction of that change.

    Raises:
        NotFound: no such search.
    """
    last = connection.scalar(
        update(searches)
        .where(searches.c.id == search_id)
        .values(last_event=searches.c.last_event + len(entries))
        .returning(searches.c.last_event)
    )
    if last is None:
        raise NotFound(f"no search {search_id!r}")
    _write(connection, search_id, last, entries)
    return int(last)


def _write(connection: Connection, search_id: str, last: int, entries: Sequence[Entry]) -> None:
    for kind, _ in entries:
        assert kind in TYPES, kind
    first = last - len(entries) + 1
    rows = [
        {"search_id": search_id, "number": first + place, "type": kind, "data": dict(data)}
        for place, (kind, data) in enumerate(entries)
    ]
    if rows:
        connection.execute(insert(events).values(created_at=clock.now()), rows)


def after(connection: Connection, search_id: str, number: int = 0, *, limit: int = 500) -> list[Event]:
    """The events behind `number`, in order, at most `limit`; [] for an unknown search.

    A `reports` event says {trial, first_step, last_step}; its rows come from `reports.between`.
    """
    statement = (
        select(events)
        .where(events.c.search_id == search_id, events.c.number > number)
        .order_by(events.c.number)
        .limit(limit)
    )
    return [
        Event(row.search_id, row.number, row.type, row.data, clock.moment(row.created_at))
        for row in connection.execute(statement)
    ]


def warnings(connection: Connection, search_id: str, *, limit: int = 200) -> list[Event]:
    """The newest warnings of a search, oldest first, at most `limit`; [] for an unknown search."""
    return newest(connection, search_id, "warning", limit=limit)


def newest(connection: Connection, search_id: str, kind: str, *, limit: int = 200) -> list[Event]:
    """The newest events of a type, oldest first, at most `limit`; [] for an unknown search."""
    statement = (
        select(events)
        .where(events.c.search_id == search_id, events.c.type == kind)
        .order_by(events.c.number.desc())
        .limit(limit)
    )
    found = [
        Event(row.search_id, row.number, row.type, row.data, clock.moment(row.created_at))
        for row in connection.execute(statement)
    ]
    return found[::-1]


def first(connection: Connection, search_id: str, kind: str) -> Event | None:
    """The first event of a type; None where there is none, or no such search."""
    statement = select(events).where(events.c.search_id == search_id, events.c.type == kind)
    row = connection.execute(statement.order_by(events.c.number).limit(1)).one_or_none()
    return None if row is None else Event(search_id, row.number, row.type, row.data, clock.moment(row.created_at))


def last_numbers(connection: Connection, search_ids: Iterable[str]) -> dict[str, int]:
    """last_event of each search that exists: one cheap statement, for the poller."""
    statement = select(searches.c.id, searches.c.last_event).where(searches.c.id.in_(search_ids))
    return {row.id: row.last_event for row in connection.execute(statement)}
