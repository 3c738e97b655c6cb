"""Data sets by name and fingerprint. A name's newest row is what a new request gets; older ones keep their meaning."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection


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
    raise NotImplementedError


def get(connection: Connection, name: str, fingerprint: str | None = None) -> Dataset:
    """The newest of this name, or the one with this fingerprint.

    Raises:
        NotFound: there is none.
    """
    raise NotImplementedError


def list(connection: Connection) -> tuple[Dataset, ...]:
    """The newest of each name, by name."""
    raise NotImplementedError
