"""What reading a dataset told, and the uploaded tokenizer that a search needs.

Rows from before have neither. On the way down both are forgotten; the datasets themselves, their files and the
searches' own requests stay, and a dataset gets its card again when it is uploaded again.

Revision: 0002.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


@contextmanager
def without_view() -> Iterator[None]:
    """SQLite changes a table by copying it, which a view over it forbids; PostgreSQL minds neither change."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        yield
        return
    view = connection.scalar(sa.text("SELECT sql FROM sqlite_master WHERE name = 'probability_cells'"))
    op.execute("DROP VIEW probability_cells")
    yield
    connection.exec_driver_sql(view)


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    with op.batch_alter_table("datasets") as batch:
        batch.add_column(sa.Column("card", sa.JSON))
        if sqlite:
            batch.create_check_constraint(op.f("ck_datasets_card_is_json"), "card IS NULL OR json_valid(card)")
    with without_view(), op.batch_alter_table("searches", recreate="always" if sqlite else "auto") as batch:
        batch.add_column(sa.Column("tokenizer", sa.String(64)))


def downgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    with without_view(), op.batch_alter_table("searches") as batch:
        batch.drop_column("tokenizer")
    with op.batch_alter_table("datasets") as batch:
        if sqlite:
            batch.drop_constraint(op.f("ck_datasets_card_is_json"), type_="check")
        batch.drop_column("card")
