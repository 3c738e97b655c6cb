"""Engines and transactions for SQLite and PostgreSQL. Synchronous; every function of `db` takes a `Connection`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from db import stored

IDLE_TRANSACTION_S = 30  # of PostgreSQL; ours stay under 0.2 s, but a machine may be busy
LOCK_MIGRATION = 4_210_771_352
LOCK_ADMISSION = 4_210_771_353
_DISK_FULL = "53100"  # of PostgreSQL; SQLite says it in words
_BEGIN = "blockwright_begin"  # execution option: how a transaction starts on SQLite


def make_engine(url: str, *, busy_timeout_s: float = 30.0, foreign_keys: bool = True) -> Engine:
    """An engine with our pragmas: WAL, synchronous NORMAL, foreign keys, busy timeout.

    Args:
        url: sqlite:///FILE, or postgresql+psycopg://... (postgresql:// means the same).
        busy_timeout_s: how long a statement waits for a lock before OperationalError. A heartbeat's own engine
            takes 2 s (`make_engine(url, busy_timeout_s=2)`), or waiting would outlive the lease.
        foreign_keys: off only while tables are rebuilt by migrations.

    Raises:
        ValueError: a database other than SQLite (in a file) and PostgreSQL, or no URL at all.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # without the text itself, which may hold a password
        raise ValueError(
            "the database URL cannot be read; it looks like sqlite:////var/lib/blockwright.db"
            " or postgresql+psycopg://user:password@host/name"
        ) from None
    if "@" in (parsed.host or ""):  # the rest of a password, which every message about the host would show
        raise ValueError("the database URL holds more than one @; in a password, write it as %40")
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise ValueError("the SQLite database must be a file, such as sqlite:////var/lib/blockwright.db")
        engine = create_engine(url, json_serializer=stored.dumps)
        _prepare_sqlite(engine, busy_timeout_s, foreign_keys)
        return engine
    if backend == "postgresql":
        return _postgresql(parsed, busy_timeout_s)
    raise ValueError(f"unknown database {backend!r}; known: sqlite, postgresql")


def _postgresql(url: URL, busy_timeout_s: float) -> Engine:
    wait_ms = round(busy_timeout_s * 1000)
    # The server ends a transaction whose program was stopped or lost in the middle: its row locks would keep a
    # search from everybody else. What the URL says comes last and wins.
    options = f"-c lock_timeout={wait_ms} -c idle_in_transaction_session_timeout={IDLE_TRANSACTION_S * 1000}"
    given = url.query.get("options", "")
    return create_engine(
        url.set(drivername="postgresql+psycopg").difference_update_query(["options"]),
        json_serializer=stored.dumps,
        # whatever the server's default: our statements lock what they read and then change
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": max(2, round(busy_timeout_s)),
            "tcp_user_timeout": wait_ms,  # a server whose machine is gone answers nothing at all
            "options": f"{options} {given if isinstance(given, str) else ' '.join(given)}".strip(),
        },
    )


def _prepare_sqlite(engine: Engine, busy_timeout_s: float, foreign_keys: bool) -> None:
    @event.listens_for(engine, "connect")
    def connect(dbapi_connection: Any, record: Any) -> None:
        # The driver must not begin transactions by itself: it would begin deferred ones, and late. A deferred
        # transaction that reads and then writes fails with "database is locked" as soon as another one wrote.
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {round(busy_timeout_s * 1000)}")
        _switch_to_wal(cursor, busy_timeout_s)
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))


def _switch_to_wal(cursor: sqlite3.Cursor, timeout_s: float) -> None:
    """Only the first connection to a new file has to switch; when two try at once, SQLite does not wait by itself."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """A writing transaction: committed at the end, rolled back on any error. BEGIN IMMEDIATE on SQLite."""
    with engine.connect() as connection:
        connection = connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
        with connection.begin():
            yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A consistent view for reading; nothing written in it is kept."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        yield connection  # closing rolls back


def one_at_a_time(connection: Connection, lock: int) -> None:
    """Wait until no other transaction holds this lock, and hold it to the end of this one.

    PostgreSQL's advisory lock. SQLite needs none: a writing transaction is the only one anyway.

    Args:
        lock: a number of ours; those in use are LOCK_... of this module.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": lock})


def is_full(error: BaseException) -> bool:
    """Whether a statement failed because the database's disk has no room left."""
    cause = getattr(error, "orig", error)
    return getattr(cause, "sqlstate", None) == _DISK_FULL or "disk is full" in str(cause)


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """INSERT in the connection's dialect: both have ON CONFLICT, in the same words."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
