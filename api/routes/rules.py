"""Rules by their own id; a search lists its own. A rule is carried to another depth, never supported by that."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from sqlalchemy import Connection

from api import rule_schemas, views
from api.body import StrictRoute
from api.deps import Database, RuleId, tagged
from api.field_errors import field_errors, summary
from api.rule_schemas import Costs, KnownAtDepth
from db import latency_tables, rules, searches
from db.engine import reading
from db.rules import StoredRule
from nas.applied import costs, fixed
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.errors import InvalidInput
from nas.known_rules import SOURCES, Known, lay_out
from nas.placement import apply_rule, apply_statement
from nas.rules import RuleStatement, slots_text
from nas.statement import Statement

router = APIRouter(prefix="/api/v1/rules", tags=["rules"], route_class=StrictRoute)


class RuleNotApplicable(InvalidInput):
    """A rule that cannot be carried to the depth asked for."""

    code = "rule-not-applicable"


@router.get("/{rule_id}", response_model=rule_schemas.Rule)
def get_rule(rule_id: RuleId, request: Request, engine: Database) -> Response:
    """One rule, with its evidence."""
    with reading(engine) as connection:
        return tagged(request, views.rule(rules.get(connection, rule_id)))


@router.post("/par/apply", response_model=rule_schemas.Layout)
def apply_par(body: KnownAtDepth, request: Request, engine: Database) -> Response:
    """The PAR paper's layout at any depth, 5 : 1 by default, in the space of a search or of the defaults."""
    return _known("par", body, request, engine)


@router.post("/sandwich/apply", response_model=rule_schemas.Layout)
def apply_sandwich(body: KnownAtDepth, request: Request, engine: Database) -> Response:
    """The sandwich layout at any even depth, in the space of a search or of the defaults."""
    return _known("sandwich", body, request, engine)


@router.post("/{rule_id}/apply", response_model=rule_schemas.Layout)
def apply_stored_rule(rule_id: RuleId, body: rule_schemas.RuleAtDepth, request: Request, engine: Database) -> Response:
    """The layout of a rule at another depth and width. Nothing is stored; the same request gives the same layout.

    Where the layout is not the one that was retrained, the rule is suggested at best. The answer says what the rule was
    found at, what the layout costs, and the request that would train it.
    """
    with reading(engine) as connection:
        stored = rules.get(connection, rule_id)
        search = searches.get(connection, stored.search_id)
        beside = rules.of_search(connection, stored.search_id)
        tables = _tables(connection)
    return tagged(request, _layout(stored, beside, search.request, body, tables))


def _known(name: Known, asked: KnownAtDepth, request: Request, engine: Database) -> Response:
    with reading(engine) as connection:
        body = searches.get(connection, asked.search).request if asked.search is not None else {}
        tables = _tables(connection)
    searched = _read(body)
    try:
        labels = lay_out(name, searched.space, asked.n_slots, ratio=_meant(asked.ratio), spacing=asked.spacing)
        retrain = fixed(searched, labels, asked.d_model)
        told = costs(retrain, labels, tables)
    except InvalidInput as error:
        raise RuleNotApplicable(str(error)) from None
    families = {candidate.label: candidate.family for candidate in searched.space.candidates}
    attention = [slot for slot, label in enumerate(labels) if families[label] == "attention"]
    return tagged(
        request,
        rule_schemas.Layout(
            rule=name,
            search=asked.search,
            n_slots=asked.n_slots,
            d_model=retrain.space.d_model,
            slots=list(labels),
            string="".join(searched.space.candidate(label).letter for label in labels),
            attention=attention,
            ratio=len(labels) / len(attention),
            zone="paper",
            spacing=asked.spacing,
            statement=f"{slots_text(attention)} of {len(labels)} hold attention; {SOURCES[name]}",
            verdict="suggested",
            found_at=None,
            costs=Costs(**vars(told)),
            request=retrain.model_dump(mode="json"),
        ),
    )


def _tables(connection: Connection) -> list[LatencyTable]:
    """The newest tables; one that cannot be read here is none."""
    found = []
    for row in latency_tables.list(connection, limit=1000).items:
        with suppress(ValidationError):
            found.append(LatencyTable.model_validate(row.body))
    return found


def _read(request: dict[str, object]) -> SearchRequest:
    try:
        return SearchRequest.model_validate(request)
    except ValidationError as error:  # stored by a machine with other blocks
        raise RuleNotApplicable(
            f"the rule's search cannot be read here: {summary(field_errors(error.errors()))}"
        ) from None


def _meant(ratio: float | None) -> Fraction | None:
    """The number that was meant, 4.1 or 10/3, not the float nearest to it: of 10 blocks, that one leaves 2, not 3."""
    return None if ratio is None else Fraction(ratio).limit_denominator(1_000_000)


def _check_own_places(asked: rule_schemas.RuleAtDepth) -> None:
    for name, value, default in (("zone", asked.zone, "found"), ("spacing", asked.spacing, "uniform")):
        if value != default:
            raise InvalidInput(
                f"{name} is {value!r}, but a statement says itself where its blocks stand; leave {name} out, or apply "
                "the search's line about attention"
            )


def _layout(
    stored: StoredRule,
    beside: Sequence[StoredRule],
    request: dict[str, object],
    asked: rule_schemas.RuleAtDepth,
    tables: Sequence[LatencyTable],
) -> rule_schemas.Layout:
    """Raises: RuleNotApplicable: the rule places nothing, or not at this depth, width and ratio."""
    searched, ratio = _read(request), _meant(asked.ratio)
    described = next((each for each in (stored, *beside) if "attention_slots" in each.body), stored)
    try:
        rule = RuleStatement.from_json(described.body)
        statement = Statement.from_json(stored.body) if "kind" in stored.body else None
    except TypeError:  # of what other versions wrote
        detail = "the rule cannot be read here: it does not say all of what was placed where; search again for one"
        raise RuleNotApplicable(detail) from None
    try:
        if statement is not None:
            _check_own_places(asked)
            found = apply_statement(statement, rule, searched, asked.n_slots, ratio=ratio, d_model=asked.d_model)
        else:
            found = apply_rule(rule, searched, asked.n_slots, ratio=ratio, zone=asked.zone, spacing=asked.spacing)
        retrain = fixed(searched, found.labels, asked.d_model)
        told = costs(retrain, found.labels, tables)
    except InvalidInput as error:
        raise RuleNotApplicable(str(error)) from None
    return rule_schemas.Layout(
        rule=stored.id,
        search=stored.search_id,
        n_slots=asked.n_slots,
        d_model=retrain.space.d_model,
        slots=list(found.labels),
        string=found.string,
        attention=list(found.attention),
        ratio=float(found.ratio),
        zone=None if statement is not None else asked.zone,
        spacing=None if statement is not None else asked.spacing,
        statement=found.statement,
        verdict=found.verdict,
        costs=Costs(**vars(told)),
        request=retrain.model_dump(mode="json"),
        found_at=rule_schemas.FoundAt(
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
