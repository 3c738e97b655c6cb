"""Rules by their own id; a search lists its own. A rule is carried to another depth, never confirmed by that."""

from __future__ import annotations

from fractions import Fraction

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from api import schemas, views
from api.body import StrictRoute
from api.deps import Database, RuleId, tagged
from api.field_errors import field_errors, summary
from db import rules, searches
from db.engine import reading
from db.rules import StoredRule
from nas.config.request import SearchRequest
from nas.errors import InvalidInput
from nas.placement import apply_rule
from nas.rules import RuleStatement

router = APIRouter(prefix="/api/v1/rules", tags=["rules"], route_class=StrictRoute)


class RuleNotApplicable(InvalidInput):
    """A rule that cannot be carried to the depth asked for."""

    code = "rule-not-applicable"


@router.get("/{rule_id}", response_model=schemas.Rule)
def get_rule(rule_id: RuleId, request: Request, engine: Database) -> Response:
    """One rule, with its evidence."""
    with reading(engine) as connection:
        return tagged(request, views.rule(rules.get(connection, rule_id)))


@router.post("/{rule_id}/apply", response_model=schemas.Layout)
def apply_stored_rule(rule_id: RuleId, body: schemas.RuleAtDepth, request: Request, engine: Database) -> Response:
    """The layout of a rule at another depth. Nothing is stored; the same request gives the same layout.

    The verdict stays that of the rule: nobody has trained the layout, and the answer says what the rule was found at.
    """
    with reading(engine) as connection:
        stored = rules.get(connection, rule_id)
        search = searches.get(connection, stored.search_id)
    return tagged(request, _layout(stored, search.request, body))


def _layout(stored: StoredRule, request: dict[str, object], asked: schemas.RuleAtDepth) -> schemas.Layout:
    """Raises: RuleNotApplicable: the rule places nothing, or not at this depth and ratio."""
    rule = RuleStatement.from_json(stored.body)
    # The number that was meant, 4.1 or 10/3, and not the float nearest to it: of 10 blocks, that one leaves 2, not 3.
    ratio = None if asked.ratio is None else Fraction(asked.ratio).limit_denominator(1_000_000)
    try:
        searched = SearchRequest.model_validate(request)
        found = apply_rule(rule, searched, asked.n_slots, ratio=ratio, zone=asked.zone, spacing=asked.spacing)
    except ValidationError as error:  # stored by a machine with other blocks
        raise RuleNotApplicable(
            f"the rule's search cannot be read here: {summary(field_errors(error.errors()))}"
        ) from None
    except InvalidInput as error:
        raise RuleNotApplicable(str(error)) from None
    return schemas.Layout(
        rule=stored.id,
        search=stored.search_id,
        n_slots=asked.n_slots,
        slots=list(found.labels),
        string=found.string,
        attention=list(found.attention),
        ratio=float(found.ratio),
        zone=asked.zone,
        spacing=asked.spacing,
        statement=found.statement,
        verdict=found.verdict,
        found_at=schemas.FoundAt(
            n_slots=rule.n_slots,
            d_model=searched.space.d_model,
            train_length=searched.task.train_length,
            dataset=searched.task.dataset,
            dataset_fingerprint=searched.task.dataset_fingerprint,
            n_steps=searched.method.n_steps,
            budget=searched.budget.model_dump(mode="json"),
            n_searches=rule.n_searches,
            n_seeds=rule.n_seeds,
            undecided=rule.undecided,
        ),
    )
