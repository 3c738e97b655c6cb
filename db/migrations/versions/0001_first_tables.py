"""The tables of the path from a request to an exported model, and the view over the probabilities.

Revision: 0001.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# JSON matrices (L slots, K candidates) unnested to one row per cell; the labels come from the search.
CELLS_SQLITE = """
CREATE VIEW probability_cells AS
SELECT trials.search_id AS search_id,
       reports.trial_id AS trial_id,
       reports.step AS step,
       slots.key AS slot,
       json_extract(searches.labels, '$[' || cells.key || ']') AS label,
       cells.value AS probability
FROM reports
JOIN trials ON trials.id = reports.trial_id
JOIN searches ON searches.id = trials.search_id
JOIN json_each(reports.probabilities) AS slots
JOIN json_each(slots.value) AS cells
"""
CELLS_POSTGRESQL = """
CREATE VIEW probability_cells AS
SELECT trials.search_id AS search_id,
       reports.trial_id AS trial_id,
       reports.step AS step,
       CAST(slots.place - 1 AS integer) AS slot,
       searches.labels ->> CAST(cells.place - 1 AS integer) AS label,
       CAST(cells.value AS double precision) AS probability
FROM reports
JOIN trials ON trials.id = reports.trial_id
JOIN searches ON searches.id = trials.search_id
CROSS JOIN LATERAL json_array_elements(reports.probabilities) WITH ORDINALITY AS slots (value, place)
CROSS JOIN LATERAL json_array_elements_text(slots.value) WITH ORDINALITY AS cells (value, place)
"""


def json_checks(table: str, *names: str) -> list[sa.CheckConstraint]:
    if op.get_bind().dialect.name != "sqlite":
        return []
    return [
        sa.CheckConstraint(f"{name} IS NULL OR json_valid({name})", name=op.f(f"ck_{table}_{name}_is_json"))
        for name in names
    ]


def search_id(table: str, **options: Any) -> list[Any]:
    name = op.f(f"fk_{table}_search_id")
    return [
        sa.Column("search_id", sa.String(36), nullable=False),
        sa.ForeignKeyConstraint(["search_id"], ["searches.id"], name=name, ondelete="CASCADE", **options),
    ]


def trial_id(table: str, *, nullable: bool) -> list[Any]:
    return [
        sa.Column("trial_id", sa.String(36), nullable=nullable),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name=op.f(f"fk_{table}_trial_id"), ondelete="CASCADE"),
    ]


def upgrade() -> None:
    op.create_table(
        "latency_tables",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_latency_tables")),
        *json_checks("latency_tables", "body"),
    )
    op.create_index(op.f("ix_latency_tables_key_created_at"), "latency_tables", ["key", "created_at"])

    op.create_table(
        "searches",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("stage", sa.String(16)),
        sa.Column("cancelling", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("cpus", sa.Double, nullable=False),
        sa.Column("gpus", sa.Double, nullable=False),
        sa.Column("n_steps", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("fruitless_attempts", sa.Integer, nullable=False),
        sa.Column("last_event", sa.BigInteger, nullable=False),
        sa.Column("lease_token", sa.BigInteger, nullable=False),
        sa.Column("lease_owner", sa.Text),
        sa.Column("lease_expires_at", sa.Double),
        sa.Column("runner_host", sa.Text),
        sa.Column("runner_pid", sa.BigInteger),
        sa.Column("runner_started_at", sa.Double),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("queued_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("claimed_at", sa.Double),
        sa.Column("claimed_step", sa.BigInteger, nullable=False),
        sa.Column("latency_table_id", sa.String(64)),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_searches")),
        sa.ForeignKeyConstraint(["latency_table_id"], ["latency_tables.id"], name=op.f("fk_searches_latency_table_id")),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')",
            name=op.f("ck_searches_state_is_known"),
        ),
        sa.CheckConstraint("state <> 'failed' OR reason IS NOT NULL", name=op.f("ck_searches_failure_has_a_reason")),
        *json_checks("searches", "labels", "request", "result"),
    )
    op.create_index(op.f("ix_searches_state_queued_at"), "searches", ["state", "queued_at"])
    op.create_index(op.f("ix_searches_state_id"), "searches", ["state", "id"])
    op.create_index(op.f("ix_searches_dataset_id"), "searches", ["dataset", "id"])

    op.create_table(
        "trials",
        sa.Column("id", sa.String(36), nullable=False),
        *search_id("trials"),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("sample", sa.Integer, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("architecture_id", sa.String(36)),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("n_steps", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("device", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trials")),
        sa.UniqueConstraint("search_id", "kind", "sample", "seed", name=op.f("uq_trials_search_id_kind_sample_seed")),
        sa.CheckConstraint("kind IN ('search', 'retrain')", name=op.f("ck_trials_kind_is_known")),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'lost', 'pre-empted')",
            name=op.f("ck_trials_state_is_known"),
        ),
        sa.CheckConstraint("state <> 'failed' OR reason IS NOT NULL", name=op.f("ck_trials_failure_has_a_reason")),
        *json_checks("trials", "params", "result"),
    )

    op.create_table(
        "reports",
        *trial_id("reports", nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("train_loss", sa.Double),
        sa.Column("val_loss", sa.Double),
        sa.Column("val_loss_soft", sa.Double),
        sa.Column("val_loss_argmax", sa.Double),
        sa.Column("tau", sa.Double),
        sa.Column("expected_ms", sa.Double),
        sa.Column("entropy", sa.Double),
        sa.Column("tokens_per_s", sa.Double),
        sa.Column("device", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("probabilities", sa.JSON),
        sa.Column("null_gaps", sa.JSON),
        sa.Column("updates", sa.JSON),
        sa.PrimaryKeyConstraint("trial_id", "step", name=op.f("pk_reports")),
        *json_checks("reports", "probabilities", "null_gaps", "updates"),
    )

    op.create_table(
        "checkpoints",
        *trial_id("checkpoints", nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("trial_id", "step", name=op.f("pk_checkpoints")),
    )

    op.create_table(
        "events",
        *search_id("events"),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("search_id", "number", name=op.f("pk_events")),
        *json_checks("events", "data"),
    )

    op.create_table(
        "architectures",
        sa.Column("id", sa.String(36), nullable=False),
        *search_id("architectures"),
        *trial_id("architectures", nullable=True),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("string", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("predicted_ms", sa.Double),
        sa.Column("is_result", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_architectures")),
        *json_checks("architectures", "body"),
    )
    op.create_index(op.f("ix_architectures_search_id"), "architectures", ["search_id"])
    op.create_index(op.f("ix_architectures_trial_id"), "architectures", ["trial_id"])

    op.create_table(
        "rules",
        sa.Column("id", sa.String(36), nullable=False),
        *search_id("rules"),
        sa.Column("statement", sa.Text, nullable=False),
        sa.Column("verdict", sa.String(32), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rules")),
        sa.UniqueConstraint("search_id", "statement", name=op.f("uq_rules_search_id_statement")),
        *json_checks("rules", "body"),
    )

    op.create_table(
        "artifacts",
        sa.Column("id", sa.String(36), nullable=False),
        *search_id("artifacts"),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("n_bytes", sa.BigInteger, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifacts")),
        sa.UniqueConstraint("search_id", "path", name=op.f("uq_artifacts_search_id_path")),
    )

    op.create_table(
        "datasets",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("n_bytes", sa.BigInteger, nullable=False),
        sa.Column("path", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("name", "fingerprint", name=op.f("pk_datasets")),
    )

    op.create_table(
        "idempotency_keys",
        sa.Column("key", sa.String(255), nullable=False),
        *search_id("idempotency_keys", deferrable=True, initially="DEFERRED"),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(op.f("ix_idempotency_keys_search_id"), "idempotency_keys", ["search_id"])

    op.execute(CELLS_SQLITE if op.get_bind().dialect.name == "sqlite" else CELLS_POSTGRESQL)


def downgrade() -> None:
    op.execute("DROP VIEW probability_cells")
    for table in (
        "idempotency_keys",
        "datasets",
        "artifacts",
        "rules",
        "architectures",
        "events",
        "checkpoints",
        "reports",
        "trials",
        "searches",
        "latency_tables",
    ):
        op.drop_table(table)
