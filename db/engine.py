"""Engines and transactions for SQLite and PostgreSQL. Synchronous; every function of `db` takes a `Connection`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine


def make_engine(url: str, *, busy_timeout_s: float = 30.0, foreign_keys: bool = True) -> Engine:
    """An engine with our pragmas: WAL, synchronous NORMAL, foreign keys, busy timeout.

    Args:
        url: sqlite:///FILE, or postgresql+psycopg://... (postgresql:// means the same).
        busy_timeout_s: how long a statement waits for a lock before OperationalError. A heartbeat's own engine
            takes 2 s (`make_engine(url, busy_timeout_s=2)`), or waiting would outlive the lease.
        foreign_keys: off only while tables are rebuilt by migrations.

    Raises:
        ValueError: a database other than SQLite (in a file) and PostgreSQL.
    """
    raise NotImplementedError


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """A writing transaction: committed at the end, rolled back on any error. BEGIN IMMEDIATE on SQLite."""
    raise NotImplementedError
    yield


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A consistent view for reading; nothing written in it is kept."""
    raise NotImplementedError
    yield
