"""Alembic's entry point, on the connection that `db.migrate` hands over, inside its transaction."""

from __future__ import annotations

from alembic import context

from db.models import metadata
from db.revision import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite changes tables by copying them
    version_table=VERSION_TABLE,  # Optuna's tables bring an alembic_version of their own
)
with context.begin_transaction():
    context.run_migrations()
