"""The tables. Migrations make them; a test compares the two.

Ids are UUIDv7 as text, time stamps seconds since 1970 in UTC (db/clock.py). Large JSON columns stand last, because
SQLite reads a row from its beginning.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from db.stored import Words

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING_CONVENTION)

ID = String(36)


def _json(name: str, *, nullable: bool = True) -> Column[Any]:
    return Column(name, JSON(none_as_null=True), nullable=nullable)


def _json_checks(*names: str) -> list[CheckConstraint]:
    # PostgreSQL's own type checks; on SQLite one malformed text would break every query of the view.
    # json_valid(NULL) is 0 up to SQLite 3.40 and NULL later.
    return [
        CheckConstraint(f"{name} IS NULL OR json_valid({name})", name=f"{name}_is_json").ddl_if(dialect="sqlite")
        for name in names
    ]


def _search_id(**options: Any) -> Column[str]:
    return Column("search_id", ID, ForeignKey("searches.id", ondelete="CASCADE", **options), nullable=False)


latency_tables = Table(
    "latency_tables",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("key", String(64), nullable=False),
    Column("created_at", Double, nullable=False),
    _json("body", nullable=False),
    *_json_checks("body"),
    Index(None, "key", "created_at"),
)

searches = Table(
    "searches",
    metadata,
    Column("id", ID, primary_key=True),
    Column("name", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("stage", String(16)),
    Column("cancelling", Boolean, nullable=False),
    Column("reason", Words),
    Column("dataset", String(64), nullable=False),
    Column("tokenizer", String(64)),  # uploaded one that it needs
    Column("cpus", Double, nullable=False),
    Column("gpus", Double, nullable=False),
    Column("n_steps", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("fruitless_attempts", Integer, nullable=False),
    Column("last_event", BigInteger, nullable=False),
    Column("lease_token", BigInteger, nullable=False),
    Column("lease_owner", Text),
    Column("lease_expires_at", Double),
    Column("runner_host", Text),
    Column("runner_pid", BigInteger),
    Column("runner_started_at", Double),
    Column("created_at", Double, nullable=False),
    Column("queued_at", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("claimed_at", Double),
    Column("claimed_step", BigInteger, nullable=False),
    Column("latency_table_id", String(64), ForeignKey("latency_tables.id")),
    _json("labels", nullable=False),
    _json("slot_ms"),
    _json("request", nullable=False),
    _json("result"),
    CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name="state_is_known"),
    CheckConstraint("state <> 'failed' OR reason IS NOT NULL", name="failure_has_a_reason"),
    *_json_checks("labels", "slot_ms", "request", "result"),
    Index(None, "state", "queued_at"),  # the queue
    Index(None, "state", "id"),  # lists by state, newest first
    Index(None, "dataset", "id"),
)

trials = Table(
    "trials",
    metadata,
    Column("id", ID, primary_key=True),
    _search_id(),
    Column("kind", String(16), nullable=False),
    Column("sample", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Words),
    # no foreign key: architectures refer to trials already, and both go with their search
    Column("architecture_id", ID),
    Column("step", BigInteger, nullable=False),
    Column("n_steps", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("device", Text),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    _json("params", nullable=False),
    _json("result"),
    UniqueConstraint("search_id", "kind", "sample", "seed"),
    CheckConstraint("kind IN ('search', 'retrain')", name="kind_is_known"),
    CheckConstraint(
        "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'lost', 'pre-empted')",
        name="state_is_known",
    ),
    CheckConstraint("state <> 'failed' OR reason IS NOT NULL", name="failure_has_a_reason"),
    *_json_checks("params", "result"),
)

reports = Table(
    "reports",
    metadata,
    Column("trial_id", ID, ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("phase", String(16)),
    Column("train_loss", Double),
    Column("val_loss", Double),
    Column("val_loss_soft", Double),
    Column("val_loss_argmax", Double),
    Column("val_loss_sampled", Double),
    Column("tau", Double),
    Column("expected_ms", Double),
    Column("entropy", Double),
    Column("identity_share", Double),
    Column("alpha_velocity", Double),
    Column("dual", Double),
    Column("tokens_per_s", Double),
    Column("device", Text),
    Column("warning", Words),
    Column("not_learnt", Words),
    Column("cut_short", Words),
    Column("created_at", Double, nullable=False),
    _json("probabilities"),
    _json("null_gaps"),
    _json("updates"),
    _json("z"),
    _json("path"),
    _json("effect_nats"),
    _json("effect_se"),
    _json("finalists"),
    _json("finalist_nats"),
    *_json_checks(
        *(
            "probabilities",
            "null_gaps",
            "updates",
            "z",
            "path",
            "effect_nats",
            "effect_se",
            "finalists",
            "finalist_nats",
        )
    ),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("trial_id", ID, ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("path", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("search_id", ID, ForeignKey("searches.id", ondelete="CASCADE"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("type", String(16), nullable=False),
    Column("created_at", Double, nullable=False),
    _json("data", nullable=False),
    *_json_checks("data"),
)

architectures = Table(
    "architectures",
    metadata,
    Column("id", ID, primary_key=True),
    _search_id(),
    Column("trial_id", ID, ForeignKey("trials.id", ondelete="CASCADE")),
    Column("role", String(32), nullable=False),
    Column("string", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("predicted_ms", Double),
    Column("is_result", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    _json("body", nullable=False),
    *_json_checks("body"),
    Index(None, "search_id"),
    Index(None, "trial_id"),
)

rules = Table(
    "rules",
    metadata,
    Column("id", ID, primary_key=True),
    _search_id(),
    Column("statement", Text, nullable=False),
    Column("verdict", String(32), nullable=False),
    Column("created_at", Double, nullable=False),
    _json("body", nullable=False),
    UniqueConstraint("search_id", "statement"),
    *_json_checks("body"),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("id", ID, primary_key=True),
    _search_id(),
    Column("kind", String(32), nullable=False),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("n_bytes", BigInteger, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("search_id", "path"),
)

datasets = Table(
    "datasets",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("fingerprint", String(64), primary_key=True),
    Column("n_bytes", BigInteger, nullable=False),
    Column("path", Text),
    Column("created_at", Double, nullable=False),
    _json("card"),
    *_json_checks("card"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("key", String(255), primary_key=True),
    # deferred, so that the key can be taken before its search is made: of two equal requests at once, one waits here
    _search_id(deferrable=True, initially="DEFERRED"),
    Column("request_hash", String(64), nullable=False),
    Column("created_at", Double, nullable=False),
    Index(None, "search_id"),
)

# The view over reports.probabilities: one row per cell of each matrix, with the cell's evidence where there is any: z
# of its gradient, what held-out loss rises by when the path takes it, with the standard error, and what the candidate
# takes by the search's latency table. Not in `metadata`, for it is no table.
probability_cells = Table(
    "probability_cells",
    MetaData(),
    Column("search_id", ID),
    Column("trial_id", ID),
    Column("step", BigInteger),
    Column("slot", Integer),
    Column("label", Text),
    Column("probability", Double),
    Column("z", Double),
    Column("effect_nats", Double),
    Column("effect_se", Double),
    Column("slot_ms", Double),
)
