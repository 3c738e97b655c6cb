from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, create_engine, select, text, update

from db import migrate, models, revision
from db.engine import make_engine, reading, transaction
from db.errors import WrongState
from db.models import metadata
from tests.db.engines import only
from tests.db.rows import counts, create, fill, queued
from tests.db.schemas import schema


def test_fresh_database_goes_to_head(empty_url: str) -> None:
    assert migrate.upgrade(empty_url) == migrate.current(empty_url) == migrate.head() == revision.HEAD


@only("sqlite", "the file's folder; a PostgreSQL is made by its owner")
def test_the_folder_of_the_file_is_made_and_is_for_its_owner_alone(kind: str, tmp_path: Path) -> None:
    assert migrate.upgrade(f"sqlite:///{tmp_path}/new/folder/blockwright.db") == revision.HEAD
    assert stat.S_IMODE((tmp_path / "new" / "folder").stat().st_mode) == 0o700


def test_head_is_known_without_alembic() -> None:
    assert migrate.head() == revision.HEAD


def test_unmigrated_database_has_no_revision(empty_url: str) -> None:
    assert migrate.current(empty_url) is None


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


def test_migrated_tables_match_the_models(url: str, empty_url: str) -> None:
    engine = make_engine(url)
    with reading(engine) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": revision.VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
    engine.dispose()
    made = make_engine(empty_url)
    metadata.create_all(made)
    made.dispose()
    migrated = schema(url)
    assert migrated.pop("probability_cells")
    assert migrated.pop(revision.VERSION_TABLE)
    assert migrated == schema(empty_url)  # CHECKs too, which the comparison above does not see


def test_down_and_up_again_gives_the_same_tables(url: str) -> None:
    before = schema(url)
    assert migrate.downgrade(url, "base") is None
    assert set(schema(url)) == {revision.VERSION_TABLE}
    assert migrate.upgrade(url) == revision.HEAD
    assert schema(url) == before


CELL = "trial_id, step, slot, label, probability"
NEW = (
    *("phase", "val_loss_sampled", "identity_share", "alpha_velocity", "dual", "warning"),
    *("z", "path", "effect_nats", "effect_se"),
)

# Behind the newest revision, one that changes every table: what such a change does to rows is known before one is made.
NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "next", {head!r}, None, None
TABLES = {tables!r}


def upgrade():
    op.execute("DROP VIEW probability_cells")
    for table in TABLES:
        with op.batch_alter_table(table) as batch:
            batch.add_column(sa.Column("added", sa.Text, nullable=False, server_default="x"))
            batch.create_check_constraint("added_is_known", "added <> 'y'")
    op.create_index("ix_searches_added", "searches", ["added"])
    op.execute({view!r})


def downgrade():
    op.execute("DROP VIEW probability_cells")
    op.drop_index("ix_searches_added", "searches")
    for table in TABLES:
        with op.batch_alter_table(table) as batch:
            batch.drop_constraint("added_is_known", type_="check")
            batch.drop_column("added")
    op.execute({view!r})
"""


@pytest.fixture
def next_revision(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more revision behind the newest of ours."""
    made_it = ScriptDirectory.from_config(migrate.config()).get_revision("0006").module  # the view, as it is at head
    view = made_it.CELLS_SQLITE if engine.name == "sqlite" else made_it.CELLS_POSTGRESQL
    text_of_it = NEXT.format(head=revision.HEAD, tables=list(metadata.tables), view=view)
    (tmp_path / "next.py").write_text(text_of_it)
    ours = migrate.config

    def config(connection: Any = None) -> Any:
        found = ours(connection)
        here = Path(migrate.__file__).parent / "migrations" / "versions"
        found.set_main_option("version_locations", f"{here}{os.pathsep}{tmp_path}")
        return found

    monkeypatch.setattr(migrate, "config", config)


def content(engine: Engine) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, as the database now is."""
    found = MetaData()
    with reading(engine) as connection:
        found.reflect(connection)
        return {
            name: sorted((dict(row._mapping) for row in connection.execute(select(table))), key=repr)
            for name, table in found.tables.items()
            if name != revision.VERSION_TABLE
        }


def shared(rows: dict[str, list[dict[str, Any]]], with_: dict[str, list[dict[str, Any]]]) -> Any:
    """Of `rows`, the tables and columns that the other has too."""
    return {
        name: sorted(
            ({column: row[column] for column in row if column in with_[name][0]} for row in rows[name]), key=repr
        )
        for name in rows
        if name in with_
    }


@pytest.mark.usefixtures("next_revision")
def test_down_step_by_step_and_up_again_loses_no_row(url: str, engine: Engine) -> None:
    """What two neighbouring revisions can both hold is held, to the last column, on the way down and up again."""
    fill(engine)
    assert migrate.upgrade(url, "next") == "next"
    steps = []
    while True:
        newer, tables = content(engine), schema(url)
        found = migrate.downgrade(url, "-1")
        if found is None:
            break
        steps.append(found)
        older = content(engine)
        assert all(older.values())
        assert shared(older, newer) == shared(newer, older)
        migrate.upgrade(url, "+1")
        assert schema(url) == tables
        assert shared(content(engine), older) == shared(older, newer)
        assert migrate.downgrade(url, "-1") == found
    assert steps[0] == revision.HEAD
    assert set(schema(url)) == {revision.VERSION_TABLE}


def test_datasets_and_searches_of_the_first_tables_are_kept(url: str, engine: Engine) -> None:
    """Before cards and tokenizers there were neither; on the way back only they are forgotten."""
    fill(engine)
    assert migrate.downgrade(url, "0001") == "0001"
    old = content(engine)
    assert "card" not in old["datasets"][0]
    assert migrate.upgrade(url, "0002") == "0002"
    new = content(engine)
    assert shared(new, old) == shared(old, new)
    assert [row["card"] for row in new["datasets"]] == [None]
    assert {row["tokenizer"] for row in new["searches"]} == {None}


def test_reports_from_before_the_engine_are_kept_and_have_no_evidence(url: str, engine: Engine) -> None:
    fill(engine)
    assert migrate.downgrade(url, "0002") == "0002"
    old, before = content(engine), schema(url)
    with reading(engine) as connection:
        cells = connection.execute(text(f"SELECT {CELL} FROM probability_cells ORDER BY {CELL}")).all()
    assert len(cells) == 12
    assert not set(NEW) & set(old["reports"][0])
    assert migrate.upgrade(url, "0003") == "0003"
    new = content(engine)
    assert shared(new, old) == shared(old, new)
    assert [[row[name] for name in NEW] for row in new["reports"]] == [[None] * len(NEW)] * 2
    with reading(engine) as connection:
        beside = connection.execute(
            text(f"SELECT {CELL}, z, effect_nats, effect_se FROM probability_cells ORDER BY {CELL}")
        ).all()
    assert [tuple(row) for row in beside] == [(*row, None, None, None) for row in cells]
    assert migrate.downgrade(url, "0002") == "0002"
    assert (content(engine), schema(url)) == (old, before)


def test_reports_from_before_how_a_trial_ended_are_kept(url: str, engine: Engine) -> None:
    fill(engine)
    assert migrate.downgrade(url, "0003") == "0003"
    old, before = content(engine), schema(url)
    assert not {"not_learnt", "cut_short"} & set(old["reports"][0])
    assert migrate.upgrade(url, "0004") == "0004"
    new = content(engine)
    assert shared(new, old) == shared(old, new)
    assert {(row["not_learnt"], row["cut_short"]) for row in new["reports"]} == {(None, None)}
    assert migrate.downgrade(url, "0003") == "0003"
    assert (content(engine), schema(url)) == (old, before)


def test_reports_from_before_finalists_are_kept(url: str, engine: Engine) -> None:
    fill(engine)
    assert migrate.downgrade(url, "0004") == "0004"
    old, before = content(engine), schema(url)
    assert not {"finalists", "finalist_nats"} & set(old["reports"][0])
    assert migrate.upgrade(url, "0005") == "0005"
    new = content(engine)
    assert shared(new, old) == shared(old, new)
    assert {(row["finalists"], row["finalist_nats"]) for row in new["reports"]} == {(None, None)}
    assert migrate.downgrade(url, "0004") == "0004"
    assert (content(engine), schema(url)) == (old, before)


def test_searches_from_before_milliseconds_get_those_of_their_results(url: str, engine: Engine) -> None:
    fill(engine)
    told = {"search": {"slot_ms": {"identity": 0.0, "attention": 3.25, "ffn": 2.5, "other": 1.0}}}
    lacking = {"search": {"slot_ms": {"identity": 0.0}}}
    with transaction(engine) as connection:
        for name, result in (("told", told), ("lacking", lacking), ("none", None), ("no object", [1])):
            search_id = create(connection, name=name).id
            connection.execute(update(models.searches).where(models.searches.c.id == search_id).values(result=result))
    assert migrate.downgrade(url, "0005") == "0005"
    old, before = content(engine), schema(url)
    assert "slot_ms" not in old["searches"][0]
    assert migrate.upgrade(url, "0006") == "0006"
    new = content(engine)
    assert shared(new, old) == shared(old, new)
    found = {row["name"]: row["slot_ms"] for row in new["searches"] if row["name"] != "tiny"}
    assert found == {"told": [3.25, 2.5, 0.0], "lacking": None, "none": None, "no object": None}
    with reading(engine) as connection:
        assert set(connection.execute(text("SELECT slot_ms FROM probability_cells")).scalars()) == {None}
    assert migrate.downgrade(url, "0005") == "0005"
    assert (content(engine), schema(url)) == (old, before)


def test_foreign_version_table_is_left_alone(empty_url: str) -> None:
    """Optuna's tables bring an alembic_version of their own."""
    engine = create_engine(empty_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('v3.0.0.d')"))
    migrate.upgrade(empty_url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "v3.0.0.d"
    engine.dispose()


def test_processes_that_migrate_at_once_wait_for_each_other(empty_url: str) -> None:
    code = f"from db import migrate; print(migrate.upgrade({empty_url!r}))"

    def run(_: int) -> str:
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
        return done.stdout.strip() or done.stderr

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, range(2))) == [revision.HEAD] * 2


def test_failed_migration_leaves_the_database_as_it_was(url: str, engine: Engine) -> None:
    queued(engine)
    before = schema(url)
    with pytest.raises(Exception, match="no-such-revision"):
        migrate.upgrade(url, "no-such-revision")
    assert schema(url) == before


@pytest.mark.usefixtures("next_revision")
def test_a_migration_that_fails_half_way_is_undone(url: str, engine: Engine, tmp_path: Path) -> None:
    fill(engine)
    before, rows = schema(url), counts(engine)
    with (tmp_path / "next.py").open("a") as file:
        file.write("    raise KeyError\n")  # at the end of downgrade
    migrate.upgrade(url, "next")
    changed = schema(url)
    with pytest.raises(KeyError):
        migrate.downgrade(url, "-1")
    assert schema(url) == changed != before
    assert counts(engine) == rows


def test_only_migrate_imports_alembic() -> None:
    files = sorted(Path(migrate.__file__).parent.glob("*.py"))
    names = [f"db.{path.stem}" for path in files if path.stem not in ("migrate", "__init__")]
    assert "db.searches" in names
    code = f"import sys, {', '.join(names)}; sys.exit(any(name.split('.')[0] == 'alembic' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
