"""Whole networks that a search trial scored by shared weights, and their losses.

Reports from before have none: both read as NULL. On the way down they are forgotten.

Revision: 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.migrations.reports_table import reports

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

MATRICES = ("finalists", "finalist_nats")


def upgrade() -> None:
    with reports() as batch:
        for name in MATRICES:
            batch.add_column(sa.Column(name, sa.JSON))
            if op.get_bind().dialect.name == "sqlite":
                batch.create_check_constraint(
                    op.f(f"ck_reports_{name}_is_json"), f"{name} IS NULL OR json_valid({name})"
                )


def downgrade() -> None:
    with reports() as batch:
        for name in MATRICES:
            if op.get_bind().dialect.name == "sqlite":
                batch.drop_constraint(op.f(f"ck_reports_{name}_is_json"), type_="check")
            batch.drop_column(name)
