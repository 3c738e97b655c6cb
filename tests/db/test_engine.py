from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
from sqlalchemy import Engine, insert, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError, InternalError, OperationalError, StatementError

from db import clock
from db import searches as searches_
from db.engine import make_engine, reading, transaction
from db.models import idempotency_keys, searches
from tests.db.engines import only
from tests.db.rows import counts, create, queued


@only("sqlite", "pragmas are SQLite's")
def test_sqlite_runs_with_our_pragmas(url: str) -> None:
    engine = make_engine(url, busy_timeout_s=2)
    with reading(engine) as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 2000}
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
        ("mysql://host/name", "unknown database 'mysql'; known: sqlite, postgresql"),
        ("blockwright", "the database URL cannot be read; it looks like sqlite:////var/lib/blockwright.db or postgres"),
        ("postgresql://host:port/name", "the database URL cannot be read"),
        (
            "postgresql://user:pass@word@host/name",
            "^the database URL holds more than one @; in a password, write it as %40$",
        ),
    ],
)
def test_other_databases_are_refused(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_engine(url)


def test_postgresql_means_psycopg() -> None:
    assert make_engine("postgresql://host/name").dialect.driver == "psycopg"


@only("postgresql", "settings of its sessions")
def test_postgresql_runs_with_our_settings(url: str) -> None:
    engine = make_engine(f"{url}&options=-c%20application_name%3Dmine", busy_timeout_s=2)
    with transaction(engine) as connection:
        names = ("lock_timeout", "idle_in_transaction_session_timeout", "transaction_isolation", "application_name")
        found = {name: connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names}
    with reading(engine) as connection:
        consistent = [
            connection.exec_driver_sql(f"SHOW transaction_{name}").scalar() for name in ("isolation", "read_only")
        ]
    engine.dispose()
    assert found == {
        "lock_timeout": "2s",
        "idle_in_transaction_session_timeout": "30s",
        "transaction_isolation": "read committed",
        "application_name": "mine",
    }
    assert consistent == ["repeatable read", "on"]


@only("postgresql", "an SQLite file has no server")
def test_a_connection_that_the_server_has_ended_is_replaced(engine: Engine) -> None:
    search_id = queued(engine)
    with transaction(engine) as connection:
        others = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
        )
        mine = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        with transaction(engine) as another:
            searches_.cancel(another, search_id)
        assert connection.exec_driver_sql(others, (mine,)).all()
    assert counts(engine)["searches"] == 1
    with transaction(engine) as connection:
        assert searches_.resume(connection, search_id).state == "queued"


def test_transaction_is_undone_by_an_error(engine: Engine) -> None:
    def write_and_fail() -> None:
        with transaction(engine) as connection:
            create(connection)
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()
    assert counts(engine)["searches"] == 0


def test_commit_that_fails_raises(engine: Engine) -> None:
    """The key's foreign key is deferred: only COMMIT finds out that its search is missing."""
    with pytest.raises(IntegrityError), transaction(engine) as connection:
        connection.execute(insert(idempotency_keys).values(key="k", search_id="x", request_hash="h", created_at=0.0))
    assert counts(engine)["idempotency_keys"] == 0


def test_reading_sees_one_moment(engine: Engine) -> None:
    queued(engine)
    with reading(engine) as connection:
        before = connection.scalars(select(searches.c.id)).all()
        queued(engine)
        assert connection.scalars(select(searches.c.id)).all() == before


def test_reading_keeps_nothing(engine: Engine) -> None:
    queued(engine)
    # PostgreSQL refuses at once, SQLite forgets it at the end
    refused = pytest.raises(InternalError, match="read-only") if engine.name == "postgresql" else nullcontext()
    with reading(engine) as connection, refused:
        connection.execute(update(searches).values(name="changed"))
    with reading(engine) as connection:
        assert set(connection.scalars(select(searches.c.name))) == {"tiny"}


def test_contended_read_then_write_loses_nothing(engine: Engine) -> None:
    """On SQLite whatever is read; on PostgreSQL what is read for update."""
    search_id = queued(engine)

    def add_ones(n: int) -> None:
        for _ in range(n):
            with transaction(engine) as connection:
                row = select(searches.c.n_steps).where(searches.c.id == search_id).with_for_update()
                before = connection.scalar(row)
                connection.execute(update(searches).where(searches.c.id == search_id).values(n_steps=before + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_ones, [25] * 4))
    with reading(engine) as connection:
        assert connection.scalar(select(searches.c.n_steps)) == 100 + 100


def test_short_busy_timeout_gives_up_instead_of_waiting(url: str, engine: Engine) -> None:
    search_id = queued(engine)
    impatient = make_engine(url, busy_timeout_s=0.05)
    impatient.connect().close()  # also its patience to connect is short
    with transaction(engine) as connection:
        searches_.cancel(connection, search_id)
        with (
            pytest.raises(OperationalError, match=r"locked|lock timeout"),
            transaction(impatient) as other,
        ):
            searches_.cancel(other, search_id)
    impatient.dispose()


def test_nan_in_json_is_refused(engine: Engine) -> None:
    with pytest.raises((StatementError, ValueError), match="not JSON compliant"):
        queued(engine, request={"lr": float("nan")})


def test_malformed_json_is_refused_by_the_database(engine: Engine) -> None:
    queued(engine)
    # a CHECK of ours on SQLite, the column's type on PostgreSQL
    refused = pytest.raises(DBAPIError, match=r"request_is_json|invalid input syntax for type json")
    with refused, transaction(engine) as connection:
        connection.execute(text("UPDATE searches SET request = '{\"lr\": NaN}'"))


def test_database_time_is_utc_seconds(engine: Engine) -> None:
    with reading(engine) as connection:
        seconds = connection.scalar(select(clock.now()))
    moment = clock.moment(seconds)
    assert moment.timestamp() == seconds
    assert abs((moment - moment.now(moment.tzinfo)).total_seconds()) < 60


def test_connections_that_make_the_file_at_once_all_get_in(tmp_path: Path) -> None:
    def connect(url: str) -> str:
        engine = make_engine(url)
        with reading(engine) as connection:
            mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
        engine.dispose()
        return str(mode)

    with ThreadPoolExecutor(4) as pool:
        for place in range(20):
            assert set(pool.map(connect, [f"sqlite:///{tmp_path}/{place}.db"] * 4)) == {"wal"}


def test_new_file_locked_by_another_program_is_given_up(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "blockwright.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    impatient = make_engine(f"sqlite:///{tmp_path}/blockwright.db", busy_timeout_s=0.05)
    with pytest.raises(OperationalError, match="locked"), reading(impatient):
        pass
    other.close()
    impatient.dispose()
