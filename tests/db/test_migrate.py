from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, create_engine, text

from db import migrate, revision
from db.engine import make_engine, reading, transaction
from db.errors import WrongState
from db.models import metadata
from tests.db.rows import counts, queued


def schema(url: str) -> dict[str, set[str]]:
    """The words of each table, index and view: constraints and columns may stand in another order."""
    engine = make_engine(url)
    with reading(engine) as connection:
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")).all()
    engine.dispose()
    return {name: {line.strip(" ,") for line in sql.splitlines()} for name, sql in rows}


def test_fresh_database_goes_to_head(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/folder/blockwright.db"
    assert migrate.upgrade(url) == migrate.current(url) == migrate.head() == revision.HEAD


def test_head_is_known_without_alembic() -> None:
    assert migrate.head() == revision.HEAD


def test_unmigrated_database_has_no_revision(tmp_path: Path) -> None:
    assert migrate.current(f"sqlite:///{tmp_path}/empty.db") is None


def test_upgrade_again_changes_nothing(url: str, engine: Engine) -> None:
    queued(engine)
    before = counts(engine)
    assert migrate.upgrade(url) == revision.HEAD
    assert counts(engine) == before


def test_a_database_of_a_newer_version_is_left_alone(url: str, engine: Engine) -> None:
    with transaction(engine) as connection:
        connection.exec_driver_sql(f"UPDATE {revision.VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(WrongState, match=r"the database is at revision 9999 of a newer Blockwright; this one knows"):
        migrate.upgrade(url)
    assert migrate.current(url) == "9999"


def test_migrated_tables_match_the_models(url: str, tmp_path: Path) -> None:
    engine = make_engine(url)
    with reading(engine) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": revision.VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
    engine.dispose()
    made_url = f"sqlite:///{tmp_path}/made.db"
    made = make_engine(made_url)
    metadata.create_all(made)
    made.dispose()
    migrated = schema(url)
    assert migrated.pop("probability_cells")
    assert migrated.pop(revision.VERSION_TABLE)
    assert migrated == schema(made_url)  # CHECKs too, which the comparison above does not see


def test_down_and_up_again_gives_the_same_tables(url: str) -> None:
    before = schema(url)
    assert migrate.downgrade(url, "base") is None
    assert set(schema(url)) == {revision.VERSION_TABLE}
    assert migrate.upgrade(url) == revision.HEAD
    assert schema(url) == before


def test_foreign_version_table_is_left_alone(tmp_path: Path) -> None:
    """Optuna's tables bring an alembic_version of their own."""
    url = f"sqlite:///{tmp_path}/blockwright.db"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('v3.0.0.d')"))
    migrate.upgrade(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "v3.0.0.d"
    engine.dispose()


def test_processes_that_migrate_at_once_wait_for_each_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/blockwright.db"
    code = f"from db import migrate; print(migrate.upgrade({url!r}))"

    def run(_: int) -> str:
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
        return done.stdout.strip() or done.stderr

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, range(2))) == [revision.HEAD] * 2


def test_failed_migration_leaves_the_database_as_it_was(url: str, engine: Engine) -> None:
    queued(engine)
    with reading(engine) as connection:
        before = connection.scalar(text("SELECT count(*) FROM sqlite_master"))
    with pytest.raises(Exception, match="no-such-revision"):
        migrate.upgrade(url, "no-such-revision")
    with reading(engine) as connection:
        assert connection.scalar(text("SELECT count(*) FROM sqlite_master")) == before


def test_only_migrate_imports_alembic() -> None:
    files = sorted(Path(migrate.__file__).parent.glob("*.py"))
    names = [f"db.{path.stem}" for path in files if path.stem not in ("migrate", "__init__")]
    assert "db.searches" in names
    code = f"import sys, {', '.join(names)}; sys.exit(any(name.split('.')[0] == 'alembic' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
