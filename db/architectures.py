"""Architectures of a search: what was derived from which trial, and the parents they are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from db import clock, events
from db.errors import NotFound
from db.ids import new_id
from db.lease import Lease, fence
from db.models import architectures


@dataclass(frozen=True)
class StoredArchitecture:
    """A choice for every slot, and where it came from.

    Args:
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
    """The architecture of this (role, trial): made, or brought up to date. Event `architecture` if anything changed.

    Raises:
        LeaseLost
    """
    fence(connection, lease)
    values = {"string": string, "hash": hash, "body": dict(body), "predicted_ms": predicted_ms}
    known = connection.execute(
        select(architectures).where(
            architectures.c.search_id == lease.search_id,
            architectures.c.role == role,
            architectures.c.trial_id.is_not_distinct_from(trial_id),
        )
    ).one_or_none()
    if known is None:
        architecture_id = new_id()
        connection.execute(
            insert(architectures).values(
                id=architecture_id,
                search_id=lease.search_id,
                trial_id=trial_id,
                role=role,
                is_result=False,
                created_at=clock.now(),
                **values,
            )
        )
    else:
        architecture_id = known.id
        if {name: known._mapping[name] for name in values} == values:
            return _architecture(known)
        connection.execute(update(architectures).where(architectures.c.id == architecture_id).values(**values))
    events.append(connection, lease, [_entry(architecture_id, role, string, known is not None and known.is_result)])
    return get(connection, architecture_id)


def _entry(architecture_id: str, role: str, string: str, is_result: bool) -> events.Entry:
    return "architecture", {"architecture": architecture_id, "role": role, "string": string, "result": is_result}


def set_result(connection: Connection, lease: Lease, architecture_id: str) -> None:
    """Mark it as the search's result; at most one is. Event `architecture` with result true.

    Raises:
        LeaseLost
        NotFound: the search has no such architecture.
    """
    fence(connection, lease)
    chosen = get(connection, architecture_id)
    if chosen.search_id != lease.search_id:
        raise NotFound(f"search {lease.search_id} has no architecture {architecture_id!r}")
    if chosen.is_result:
        return
    connection.execute(
        update(architectures)
        .where(architectures.c.search_id == lease.search_id)
        .values(is_result=architectures.c.id == architecture_id)
    )
    events.append(connection, lease, [_entry(chosen.id, chosen.role, chosen.string, True)])


def get(connection: Connection, architecture_id: str) -> StoredArchitecture:
    """Raises: NotFound: no such architecture."""
    row = connection.execute(select(architectures).where(architectures.c.id == architecture_id)).one_or_none()
    if row is None:
        raise NotFound(f"no architecture {architecture_id!r}")
    return _architecture(row)


def _architecture(row: Row[Any]) -> StoredArchitecture:
    return StoredArchitecture(
        id=row.id,
        search_id=row.search_id,
        trial_id=row.trial_id,
        role=row.role,
        string=row.string,
        hash=row.hash,
        body=row.body,
        predicted_ms=row.predicted_ms,
        is_result=row.is_result,
        created_at=clock.moment(row.created_at),
    )


def of_search(connection: Connection, search_id: str) -> list[StoredArchitecture]:
    """In the order they were made; [] for an unknown search."""
    statement = select(architectures).where(architectures.c.search_id == search_id).order_by(architectures.c.id)
    return [_architecture(row) for row in connection.execute(statement)]
