"""The table of reports, changed under the view that reads it; for revisions behind 0003."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import op
from alembic.operations import BatchOperations


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
