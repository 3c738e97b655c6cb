"""Which migration the database is at, without alembic: all that the api may ask."""

from __future__ import annotations

from sqlalchemy import Connection, column, inspect, select, table

VERSION_TABLE = "blockwright_version"
HEAD = "0006"  # the newest file of db/migrations/versions; a test compares


def current(connection: Connection) -> str | None:
    """The revision of the database; None: never migrated."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
