"""What each candidate takes, in milliseconds: searches.slot_ms, and a column of it in the view of cells.

Searches from before get theirs from their result, which tells it by label; where there is none it reads as NULL. On the
way down it is forgotten.

Revision: 0006.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# As revision 0003 made it, with one column more.
VIEW_SQLITE = """
CREATE VIEW probability_cells AS
SELECT trials.search_id AS search_id,
       reports.trial_id AS trial_id,
       reports.step AS step,
       slots.key AS slot,
       json_extract(searches.labels, '$[' || cells.key || ']') AS label,
       cells.value AS probability,
       json_extract(reports.z, '$[' || slots.key || '][' || cells.key || ']') AS z,
       json_extract(reports.effect_nats, '$[' || slots.key || '][' || cells.key || ']') AS effect_nats,
       json_extract(reports.effect_se, '$[' || slots.key || '][' || cells.key || ']') AS effect_se{milliseconds}
FROM reports
JOIN trials ON trials.id = reports.trial_id
JOIN searches ON searches.id = trials.search_id
JOIN json_each(reports.probabilities) AS slots
JOIN json_each(slots.value) AS cells
"""
MILLISECONDS_SQLITE = """,
       json_extract(searches.slot_ms, '$[' || cells.key || ']') AS slot_ms"""

VIEW_POSTGRESQL = """
CREATE VIEW probability_cells AS
SELECT trials.search_id AS search_id,
       reports.trial_id AS trial_id,
       reports.step AS step,
       CAST(slots.place - 1 AS integer) AS slot,
       searches.labels ->> CAST(cells.place - 1 AS integer) AS label,
       CAST(cells.value AS double precision) AS probability,
       CAST(beside.z ->> CAST(cells.place - 1 AS integer) AS double precision) AS z,
       CAST(beside.effect_nats ->> CAST(cells.place - 1 AS integer) AS double precision) AS effect_nats,
       CAST(beside.effect_se ->> CAST(cells.place - 1 AS integer) AS double precision) AS effect_se{milliseconds}
FROM reports
JOIN trials ON trials.id = reports.trial_id
JOIN searches ON searches.id = trials.search_id
CROSS JOIN LATERAL json_array_elements(reports.probabilities) WITH ORDINALITY AS slots (value, place)
CROSS JOIN LATERAL (
    SELECT reports.z -> CAST(slots.place - 1 AS integer) AS z,
           reports.effect_nats -> CAST(slots.place - 1 AS integer) AS effect_nats,
           reports.effect_se -> CAST(slots.place - 1 AS integer) AS effect_se
    OFFSET 0
) AS beside
CROSS JOIN LATERAL json_array_elements_text(slots.value) WITH ORDINALITY AS cells (value, place)
"""
MILLISECONDS_POSTGRESQL = """,
       CAST(searches.slot_ms ->> CAST(cells.place - 1 AS integer) AS double precision) AS slot_ms"""

CELLS_SQLITE = VIEW_SQLITE.format(milliseconds=MILLISECONDS_SQLITE)
CELLS_POSTGRESQL = VIEW_POSTGRESQL.format(milliseconds=MILLISECONDS_POSTGRESQL)
BEFORE_SQLITE = VIEW_SQLITE.format(milliseconds="")
BEFORE_POSTGRESQL = VIEW_POSTGRESQL.format(milliseconds="")


def is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"


def upgrade() -> None:
    op.execute("DROP VIEW probability_cells")
    with op.batch_alter_table("searches", recreate="always" if is_sqlite() else "never") as batch:
        # SQLite reads a row from its beginning, and the view reads this with each cell: so before the large ones.
        batch.add_column(sa.Column("slot_ms", sa.JSON), insert_after="labels" if is_sqlite() else None)
        if is_sqlite():
            batch.create_check_constraint(op.f("ck_searches_slot_ms_is_json"), "slot_ms IS NULL OR json_valid(slot_ms)")
    _from_results()
    op.execute(CELLS_SQLITE if is_sqlite() else CELLS_POSTGRESQL)


def downgrade() -> None:
    op.execute("DROP VIEW probability_cells")
    with op.batch_alter_table("searches") as batch:
        if is_sqlite():
            batch.drop_constraint(op.f("ck_searches_slot_ms_is_json"), type_="check")
        batch.drop_column("slot_ms")
    op.execute(BEFORE_SQLITE if is_sqlite() else BEFORE_POSTGRESQL)


def _from_results() -> None:
    columns = [sa.column(name, sa.JSON) for name in ("labels", "result", "slot_ms")]
    searches = sa.table("searches", sa.column("id"), *columns)
    connection = op.get_bind()
    known = searches.c.result["search"]["slot_ms"]
    rows = connection.execute(sa.select(searches.c.id, searches.c.labels, known.label("known")))
    for row in rows.all():
        found = _by_label(row.labels, row.known)
        if found is not None:
            connection.execute(sa.update(searches).where(searches.c.id == row.id).values(slot_ms=found))


def _by_label(labels: Sequence[str], known: Any) -> list[float] | None:
    """(K,) milliseconds of what a result tells; None where that lacks one."""
    return [known[label] for label in labels] if isinstance(known, dict) and set(labels) <= known.keys() else None
