"""What a search tells beside alpha: its phase, guards, the evidence per cell and what each block buys.

Reports from before have none of it: they read as NULL. On the way down it is forgotten, and everything else stays.

Revision: 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BESIDE = ("z", "effect_nats", "effect_se")

# One row per cell of each matrix. What stands beside a probability is looked up in its own matrix, not joined, so that
# a query that does not ask for it does not pay for it; where a matrix is NULL, so are its cells.
VIEW_SQLITE = """
CREATE VIEW probability_cells AS
SELECT trials.search_id AS search_id,
       reports.trial_id AS trial_id,
       reports.step AS step,
       slots.key AS slot,
       json_extract(searches.labels, '$[' || cells.key || ']') AS label,
       cells.value AS probability{evidence}
FROM reports
JOIN trials ON trials.id = reports.trial_id
JOIN searches ON searches.id = trials.search_id
JOIN json_each(reports.probabilities) AS slots
JOIN json_each(slots.value) AS cells
"""
CELL_SQLITE = """,
       json_extract(reports.{name}, '$[' || slots.key || '][' || cells.key || ']') AS {name}"""
CELLS_SQLITE = VIEW_SQLITE.format(evidence="".join(CELL_SQLITE.format(name=name) for name in BESIDE))

VIEW_POSTGRESQL = """
CREATE VIEW probability_cells AS
SELECT trials.search_id AS search_id,
       reports.trial_id AS trial_id,
       reports.step AS step,
       CAST(slots.place - 1 AS integer) AS slot,
       searches.labels ->> CAST(cells.place - 1 AS integer) AS label,
       CAST(cells.value AS double precision) AS probability{evidence}
FROM reports
JOIN trials ON trials.id = reports.trial_id
JOIN searches ON searches.id = trials.search_id
CROSS JOIN LATERAL json_array_elements(reports.probabilities) WITH ORDINALITY AS slots (value, place){rows}
CROSS JOIN LATERAL json_array_elements_text(slots.value) WITH ORDINALITY AS cells (value, place)
"""
# PostgreSQL reads the whole text for each look-up: so once a slot, which OFFSET 0 keeps apart, and not once a cell
# (all of one step of 32 x 5 cells: 2.0 ms, and 9.9 cell by cell; on SQLite 0.8).
ROWS_POSTGRESQL = """
CROSS JOIN LATERAL (SELECT {rows} OFFSET 0) AS beside"""
ROW_POSTGRESQL = "reports.{name} -> CAST(slots.place - 1 AS integer) AS {name}"
CELL_POSTGRESQL = """,
       CAST(beside.{name} ->> CAST(cells.place - 1 AS integer) AS double precision) AS {name}"""
CELLS_POSTGRESQL = VIEW_POSTGRESQL.format(
    evidence="".join(CELL_POSTGRESQL.format(name=name) for name in BESIDE),
    rows=ROWS_POSTGRESQL.format(rows=", ".join(ROW_POSTGRESQL.format(name=name) for name in BESIDE)),
)

# As revision 0001 made it.
BEFORE_SQLITE = VIEW_SQLITE.format(evidence="")
BEFORE_POSTGRESQL = VIEW_POSTGRESQL.format(evidence="", rows="")

NUMBERS = ("val_loss_sampled", "identity_share", "alpha_velocity", "dual")
MATRICES = ("z", "path", "effect_nats", "effect_se")


def is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"


def upgrade() -> None:
    op.execute("DROP VIEW probability_cells")
    with op.batch_alter_table("reports") as batch:
        batch.add_column(sa.Column("phase", sa.String(16)))
        for name in NUMBERS:
            batch.add_column(sa.Column(name, sa.Double))
        batch.add_column(sa.Column("warning", sa.Text))
        for name in MATRICES:
            batch.add_column(sa.Column(name, sa.JSON))
            if is_sqlite():
                batch.create_check_constraint(
                    op.f(f"ck_reports_{name}_is_json"), f"{name} IS NULL OR json_valid({name})"
                )
    op.execute(CELLS_SQLITE if is_sqlite() else CELLS_POSTGRESQL)


def downgrade() -> None:
    op.execute("DROP VIEW probability_cells")
    with op.batch_alter_table("reports") as batch:
        for name in MATRICES:
            if is_sqlite():
                batch.drop_constraint(op.f(f"ck_reports_{name}_is_json"), type_="check")
            batch.drop_column(name)
        for name in ("phase", *NUMBERS, "warning"):
            batch.drop_column(name)
    op.execute(BEFORE_SQLITE if is_sqlite() else BEFORE_POSTGRESQL)
