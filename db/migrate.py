"""Bring a database up to date. The only module of `db` that imports alembic (64 MB), so the api never imports it."""

from __future__ import annotations


def upgrade(url: str, revision: str = "head") -> str:
    """Migrate to `revision` in one transaction and return where the database is now; makes a SQLite file's folder.

    Several processes may call it at once: they wait for each other.
    """
    raise NotImplementedError


def current(url: str) -> str | None:
    """The revision of the database; None: never migrated."""
    raise NotImplementedError


def head() -> str:
    """The newest revision there is."""
    raise NotImplementedError
