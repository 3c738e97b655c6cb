"""Measured latency tables as JSON. The id is the table's content hash, made by `nas.cost`; `db` does not look inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from db.lease import Lease
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
    raise NotImplementedError


def get(connection: Connection, table_id: str) -> StoredTable:
    """Raises: NotFound: no such table."""
    raise NotImplementedError


def newest(connection: Connection, key: str) -> StoredTable | None:
    """The last one measured under this key."""
    raise NotImplementedError


def list(connection: Connection, *, limit: int = 50, cursor: str | None = None) -> Page[StoredTable]:
    """Newest first. Raises: InvalidCursor."""
    raise NotImplementedError
