"""Architectures of a search: what was derived from which trial, and the parents they are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from db.lease import Lease


@dataclass(frozen=True)
class StoredArchitecture:
    """Args:
    role: how it came to be: argmax, budget, interleaved, ... (a short word).
    trial_id: the search trial it was derived from; None for a parent.
    string: its letters, such as AFS.M.
    hash: of its blocks and options, from `nas.architecture`.
    body: `Architecture.to_json()`.
    predicted_ms: by the latency table.
    is_result: whether it is the search's result.
    """

    id: str
    search_id: str
    trial_id: str | None
    role: str
    string: str
    hash: str
    body: dict[str, Any]
    predicted_ms: float | None
    is_result: bool
    created_at: datetime


def put(
    connection: Connection,
    lease: Lease,
    *,
    role: str,
    string: str,
    hash: str,
    body: Mapping[str, Any],
    trial_id: str | None = None,
    predicted_ms: float | None = None,
) -> StoredArchitecture:
    """The architecture of this (role, trial): made, or brought up to date. Event `architecture` only if anything changed.

    Raises:
        LeaseLost
    """
    raise NotImplementedError


def set_result(connection: Connection, lease: Lease, architecture_id: str) -> None:
    """Mark it as the search's result; at most one is. Event `architecture` with result true.

    Raises:
        LeaseLost
        NotFound: the search has no such architecture.
    """
    raise NotImplementedError


def get(connection: Connection, architecture_id: str) -> StoredArchitecture:
    """Raises: NotFound: no such architecture."""
    raise NotImplementedError


def of_search(connection: Connection, search_id: str) -> list[StoredArchitecture]:
    """In the order they were made; [] for an unknown search."""
    raise NotImplementedError
