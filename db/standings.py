"""Where searches stand: what a list shows of each beside its row, for a whole page in one statement.

L slots, K candidates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, ScalarSelect, Select, and_, bindparam, func, select

from db.models import architectures, reports, searches, trials


@dataclass(frozen=True)
class Standing:
    """How far the first search trial (sample, then seed) is, and what has come of the search so far.

    Args:
        step: of the first trial's newest report; None before the first one.
        probabilities: softmax(alpha) of that report, (L, K).
        null_gaps: of that report, (L,).
        path: candidate of each slot that the parsimony pass holds by that report, (L,); None before the pass.
        effect_nats, effect_se: of that report, (L, K): what each other candidate costs there, with its error.
        derived: `Architecture.to_json()` of the search's result, once it is chosen.
        val_loss: nats per token on validation: the lowest of that report's leading path and of the newest report of
            each retraining of what was derived.
        test_bits_per_byte: of the search's result.
    """

    step: int | None
    probabilities: list[list[float | None]] | None
    null_gaps: list[float | None] | None
    path: list[int] | None
    effect_nats: list[list[float | None]] | None
    effect_se: list[list[float | None]] | None
    derived: dict[str, Any] | None
    val_loss: float | None
    test_bits_per_byte: float | None


NONE = Standing(*[None] * 9)  # of a search that was made just now


def of_searches(connection: Connection, search_ids: Iterable[str]) -> dict[str, Standing]:
    """By id, of each search that exists; one statement, every row found by a key."""
    rows = connection.execute(_SELECT, {"search_ids": [*search_ids]})
    return {row.search_id: _standing(row) for row in rows}


def _standing(row: Any) -> Standing:
    losses = [loss for loss in (row.path_loss, row.retrained_loss) if loss is not None]
    return Standing(
        step=row.step,
        probabilities=row.probabilities,
        null_gaps=row.null_gaps,
        path=row.path,
        effect_nats=row.effect_nats,
        effect_se=row.effect_se,
        derived=row.derived,
        val_loss=min(losses, default=None),
        test_bits_per_byte=row.test_bits_per_byte,
    )


_first = trials.alias("first")
_retrained = trials.alias("retrained")
_newest = reports.alias("newest")
_of_retraining = reports.alias("of_retraining")
_what = architectures.alias("what")


def _first_trial() -> ScalarSelect[str]:
    """The id, by the unique key (search_id, kind, sample, seed)."""
    mine = select(trials.c.id).where(trials.c.search_id == searches.c.id, trials.c.kind == "search")
    return mine.order_by(trials.c.sample, trials.c.seed).limit(1).correlate(searches).scalar_subquery()


def _lowest_of_retrainings() -> ScalarSelect[float]:
    return (
        select(func.min(_of_retraining.c.val_loss))
        .select_from(_retrained)
        .join(_what, and_(_what.c.id == _retrained.c.architecture_id, _what.c.role.startswith("budget")))
        .join(_of_retraining, _is_newest(_of_retraining, _retrained))
        .where(_retrained.c.search_id == searches.c.id, _retrained.c.kind == "retrain")
        .correlate(searches)
        .scalar_subquery()
    )


def _is_newest(report: Any, trial: Any) -> Any:
    """A trial's `step` is that of its newest report: so it is found by the primary key."""
    return and_(report.c.trial_id == trial.c.id, report.c.step == trial.c.step)


# Built once: putting the statement together costs more than running it.
_SELECT: Select[Any] = (
    select(
        searches.c.id.label("search_id"),
        _newest.c.step,
        _newest.c.probabilities,
        _newest.c.null_gaps,
        _newest.c.path,
        _newest.c.effect_nats,
        _newest.c.effect_se,
        func.coalesce(_newest.c.val_loss_argmax, _newest.c.val_loss_soft).label("path_loss"),
        architectures.c.body.label("derived"),
        _lowest_of_retrainings().label("retrained_loss"),
        searches.c.result["quality", "derived_bits_per_byte"].as_float().label("test_bits_per_byte"),
    )
    .select_from(searches)
    .outerjoin(_first, _first.c.id == _first_trial())
    .outerjoin(_newest, _is_newest(_newest, _first))
    .outerjoin(architectures, and_(architectures.c.search_id == searches.c.id, architectures.c.is_result.is_(True)))
    .where(searches.c.id.in_(bindparam("search_ids", expanding=True)))
)
