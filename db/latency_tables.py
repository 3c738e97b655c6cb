"""Measured latency tables as JSON. The id is the table's content hash, made by `nas.cost`; `db` looks not inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select, tuple_

from db import clock, paging
from db.engine import insert_into
from db.errors import NotFound
from db.lease import Lease, fence
from db.models import latency_tables
from db.paging import Page


@dataclass(frozen=True)
class StoredTable:
    """`key` says what was measured where (a hash of device, software, threads, entries); `body` is the table's JSON."""

    id: str
    key: str
    body: dict[str, Any]
    created_at: datetime


def put(connection: Connection, lease: Lease, *, table_id: str, key: str, body: Mapping[str, Any]) -> StoredTable:
    """Store a measured table; one that is there already stays. `searches.set_inputs` then names it (and has the event).

    Raises:
        LeaseLost
    """
    fence(connection, lease)
    return add(connection, table_id=table_id, key=key, body=body)


def add(connection: Connection, *, table_id: str, key: str, body: Mapping[str, Any]) -> StoredTable:
    """Store a table that was measured elsewhere; one that is there already stays. Harmless, so not fenced."""
    connection.execute(
        insert_into(connection, latency_tables)
        .values(id=table_id, key=key, body=dict(body), created_at=clock.now())
        .on_conflict_do_nothing(index_elements=["id"])
    )
    return get(connection, table_id)


def get(connection: Connection, table_id: str) -> StoredTable:
    """Raises: NotFound: no such table."""
    row = connection.execute(select(latency_tables).where(latency_tables.c.id == table_id)).one_or_none()
    if row is None:
        raise NotFound(f"no latency table {table_id!r}")
    return _table(row)


def _table(row: Row[Any]) -> StoredTable:
    return StoredTable(row.id, row.key, row.body, clock.moment(row.created_at))


def newest(connection: Connection, key: str) -> StoredTable | None:
    """The last one measured under this key."""
    row = connection.execute(
        select(latency_tables)
        .where(latency_tables.c.key == key)
        .order_by(latency_tables.c.created_at.desc(), latency_tables.c.id)
        .limit(1)
    ).one_or_none()
    return None if row is None else _table(row)


def list(connection: Connection, *, limit: int = 50, cursor: str | None = None) -> Page[StoredTable]:
    """Newest first. Raises: InvalidCursor."""
    limit = paging.clamp(limit)
    place = tuple_(latency_tables.c.created_at, latency_tables.c.id)
    statement = (
        select(latency_tables).order_by(latency_tables.c.created_at.desc(), latency_tables.c.id.desc()).limit(limit + 1)
    )
    if cursor is not None:
        statement = statement.where(place < tuple_(*paging.decode(cursor, [float, str])))
    found = [_table(row) for row in connection.execute(statement)]
    return paging.page(found, limit, lambda table: [table.created_at.timestamp(), table.id])
