"""Data sets by name and fingerprint. A name's newest row is what a new request gets; older ones keep their meaning."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from db import clock
from db.engine import insert_into
from db.errors import NotFound
from db.files import relative
from db.models import datasets


@dataclass(frozen=True)
class Dataset:
    """`path` is relative to the data folder; None for a built-in corpus. `fingerprint` is the sha256 of the bytes."""

    name: str
    fingerprint: str
    n_bytes: int
    path: str | None
    created_at: datetime


def register(connection: Connection, *, name: str, fingerprint: str, n_bytes: int, path: str | None = None) -> Dataset:
    """Make a data set known; the same (name, fingerprint) again changes nothing. Harmless, so not fenced.

    Raises:
        ValueError: path is absolute or leaves the data folder.
    """
    connection.execute(
        insert_into(connection, datasets)
        .values(
            name=name,
            fingerprint=fingerprint,
            n_bytes=n_bytes,
            path=None if path is None else relative(path),
            created_at=clock.now(),
        )
        .on_conflict_do_nothing(index_elements=["name", "fingerprint"])
    )
    return get(connection, name, fingerprint)


def get(connection: Connection, name: str, fingerprint: str | None = None) -> Dataset:
    """The newest of this name, or the one with this fingerprint.

    Raises:
        NotFound: there is none.
    """
    statement = select(datasets).where(datasets.c.name == name).order_by(datasets.c.created_at.desc()).limit(1)
    if fingerprint is not None:
        statement = statement.where(datasets.c.fingerprint == fingerprint)
    row = connection.execute(statement).one_or_none()
    if row is None:
        raise NotFound(f"no data set {name!r}" + (f" with fingerprint {fingerprint}" if fingerprint else ""))
    return _dataset(row)


def _dataset(row: Row[Any]) -> Dataset:
    return Dataset(row.name, row.fingerprint, row.n_bytes, row.path, clock.moment(row.created_at))


def list(connection: Connection) -> tuple[Dataset, ...]:
    """The newest of each name, by name."""
    statement = select(datasets).order_by(datasets.c.name, datasets.c.created_at)
    newest = {row.name: _dataset(row) for row in connection.execute(statement)}
    return tuple(newest.values())
