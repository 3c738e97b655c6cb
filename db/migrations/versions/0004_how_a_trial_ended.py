"""How a trial ended: that it has not learnt, or that its wall time ended it, each with its sentence.

Reports from before say it in the words of their warning alone: both read as NULL. On the way down the two are
forgotten; their words stay in the warning.

Revision: 0004.
"""

from __future__ import annotations

import sqlalchemy as sa

from db.migrations.reports_table import reports

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SENTENCES = ("not_learnt", "cut_short")


def upgrade() -> None:
    with reports() as batch:
        for name in SENTENCES:
            batch.add_column(sa.Column(name, sa.Text))


def downgrade() -> None:
    with reports() as batch:
        for name in SENTENCES:
            batch.drop_column(name)
