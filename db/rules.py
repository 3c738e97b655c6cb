"""Placement rules that a search supports, or does not: a statement, a verdict and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from db.lease import Lease


@dataclass(frozen=True)
class StoredRule:
    """`statement` is one line for people; `body` the evidence as JSON."""

    id: str
    search_id: str
    statement: str
    verdict: str
    body: dict[str, Any]
    created_at: datetime


def put(connection: Connection, lease: Lease, *, statement: str, verdict: str, body: Mapping[str, Any]) -> StoredRule:
    """The rule of this statement: made, or brought up to date. Event `rule` only if anything changed.

    Raises:
        LeaseLost
    """
    raise NotImplementedError


def of_search(connection: Connection, search_id: str) -> list[StoredRule]:
    """In the order they were made; [] for an unknown search."""
    raise NotImplementedError
