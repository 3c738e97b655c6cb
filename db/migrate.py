"""Bring a database up to date. The only module of `db` that imports alembic (64 MB), so the api never imports it."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from db import revision
from db.engine import LOCK_MIGRATION, make_engine, one_at_a_time, reading, transaction
from db.errors import WrongState


def upgrade(url: str, target: str = "head") -> str:
    """Migrate to `target` in one transaction and return where the database is now; makes a SQLite file's folder.

    Several processes may call it at once: they wait for each other.

    Raises:
        WrongState: the database is at a revision that this code does not know.
    """
    found = _migrate(url, target, down=False)
    assert found is not None
    return found


def downgrade(url: str, target: str) -> str | None:
    """Migrate back to `target`; "base" drops every table of ours."""
    return _migrate(url, target, down=True)


def _migrate(url: str, target: str, *, down: bool) -> str | None:
    # Foreign keys off: SQLite changes a table by copying and dropping it, which would delete what refers to it.
    engine = make_engine(url, foreign_keys=False)
    if engine.dialect.name == "sqlite":
        assert engine.url.database is not None  # make_engine takes files only
        Path(engine.url.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with transaction(engine) as connection:
            one_at_a_time(connection, LOCK_MIGRATION)
            found = revision.current(connection)
            known = [script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()]
            if found is not None and found not in known:
                raise WrongState(f"the database is at revision {found} of a newer Blockwright; this one knows {head()}")
            change = command.downgrade if down else command.upgrade
            change(config(connection), target)
            if connection.dialect.name == "sqlite":
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
                assert broken is None, f"the migration left a row without its parent: {broken}"
            return revision.current(connection)
    finally:
        engine.dispose()


def config(connection: Connection | None = None) -> Config:
    """Alembic's configuration, without a file: our scripts, and the connection that env.py uses."""
    found = Config()
    found.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    found.set_main_option("path_separator", "os")
    found.attributes["connection"] = connection
    return found


def current(url: str) -> str | None:
    """The revision of the database; None: never migrated."""
    engine = make_engine(url)
    try:
        with reading(engine) as connection:
            return revision.current(connection)
    finally:
        engine.dispose()


def head() -> str:
    """The newest revision there is."""
    newest = ScriptDirectory.from_config(config()).get_current_head()
    assert newest is not None
    return newest
