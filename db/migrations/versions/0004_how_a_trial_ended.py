"""How a trial ended: that it has not learnt, or that its wall time ended it, each with its sentence.

Reports from before say it in the words of their warning alone: both read as NULL. On the way down the two are
forgotten; their words stay in the warning.

Revision: 0004.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import op
from alembic.operations import BatchOperations

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SENTENCES = ("not_learnt", "cut_short")


@contextmanager
def reports() -> Iterator[BatchOperations]:
    """The table, to be changed. SQLite makes it anew, and cannot while the view reads it; the view stays as it is."""
    if op.get_bind().dialect.name != "sqlite":
        with op.batch_alter_table("reports") as batch:
            yield batch
        return
    view = op.get_bind().scalar(sa.text("SELECT sql FROM sqlite_master WHERE name = 'probability_cells'"))
    op.execute("DROP VIEW probability_cells")
    with op.batch_alter_table("reports", recreate="always") as batch:
        yield batch
    op.execute(view)


def upgrade() -> None:
    with reports() as batch:
        for name in SENTENCES:
            batch.add_column(sa.Column(name, sa.Text))


def downgrade() -> None:
    with reports() as batch:
        for name in SENTENCES:
            batch.drop_column(name)
