"""Rules: what the seeds' derived architectures have in common, and what retraining their layout says of it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas import rules
from nas.architecture import Architecture, interleaved
from nas.baselines import baseline
from nas.config.retrain import FEWEST
from nas.confirmation import Confirmation, confirm
from nas.errors import InvalidInput
from nas.random_stacks import TOLERANCE, random_placements
from nas.rule_layout import at_same_cost, broken
from nas.statement import Statement
from nas.statements import countable, exchangeable, found_at, state
from nas.verdicts import confirmed, judge, worth_confirming
from workers.stages.passed_on import Derived, Inputs, Retrained, Searched, Trained
from workers.stages.power import tell_by_retrainings
from workers.stages.retrain import train_layouts
from workers.stages.training import TrainingFailed
from workers.store import Store
from workers.trials import TrialRunner

LAYOUT = "rule"  # name of the layout that the statements make
_GAPS_NEED = 3  # blocks; between two there is one gap, which is neither even nor uneven


@dataclass(frozen=True)
class Confirmed:
    """What became of the statements.

    Args:
        statements: all, as result.json lists them.
        layouts: what was trained for them by name: `rule`, `rule random 1`.., `rule parent`, `rule par`..
        power: what that could show, told before.
    """

    statements: list[dict[str, Any]]
    layouts: Mapping[str, Retrained]
    power: Sequence[dict[str, Any]]


def infer_statements(inputs: Inputs, derived: Sequence[Derived]) -> list[Statement]:
    """What the seeds say, with verdicts."""
    space = inputs.request.space
    families = [each.families for each in _architectures(derived)]
    return judge(state(families, exchangeable(space), countable(space)), found_at(inputs.request))


def keep_rules(
    inputs: Inputs, derived: Sequence[Derived], statements: Sequence[Statement], store: Store
) -> dict[str, Any]:
    """The line over the seeds' architectures, which describes what was found; kept, and behind it the statements, but
    for those that will be retrained: they are kept once that is done."""
    request = inputs.request
    found = rules.held_against(rules.describe(_architectures(derived)), statements, found_at(request))
    line: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(found)))  # lists, as a reader of JSON gets
    line |= {"id": store.rule(line)}
    for each in statements:
        if not (request.retrain.confirm_seeds and worth_confirming(each)):
            store.rule(told(each))
    return line


def confirm_statements(
    inputs: Inputs,
    searched: Searched,
    statements: Sequence[Statement],
    trained: Trained,
    store: Store,
    trials: TrialRunner,
) -> Confirmed:
    """All statements as result.json lists them, after retraining the layout of those that it may support.

    The layout holds the blocks of *the* derived architecture; a statement that it cannot keep is not confirmed. It is
    trained beside random placements of them, the interleaved parent and the request's other baselines, on seeds that
    neither the searches nor the retrainings had. Placements and parent give the verdict.
    """
    request = inputs.request
    worth = [each for each in statements if worth_confirming(each)]
    outcome, tried, layouts, power = None, list[Statement](), dict[str, Retrained](), list[dict[str, Any]]()
    if request.retrain.confirm_seeds:
        chosen = trained.derived.derived.architecture
        for each in worth:
            if (lack := _lack(each, chosen, inputs)) is None:
                tried.append(each)
            else:
                store.warn(f"the {each.kind} of {each.family} was not confirmed: {lack}")
        tried, labels = _laid_out(tried, chosen, inputs, store)
        if tried:
            seen = [each for name, each in trained.layouts.items() if name != "teacher"]
            power.append(tell_by_retrainings(inputs, seen, request.retrain.confirm_seeds, store, "confirming rules"))
        try:
            layouts = _layouts(inputs, searched, tried, labels, store, trials) if tried else {}
        except TrainingFailed as error:  # a random placement may not train at all; all that was found before stands
            store.warn(f"the rules were not confirmed: {error}")
        outcome = _confirmation(inputs, layouts) if layouts else None
    found = []
    for each in statements:
        judged = confirmed(each, outcome) if outcome is not None and each in tried else each
        body = told(judged)
        found.append(body | {"id": store.rule(body)})  # once: most are kept since they were inferred
    return Confirmed(found, layouts, power)


def told(statement: Statement) -> dict[str, Any]:
    """A statement as JSON."""
    body: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(statement)))
    return body


def _architectures(derived: Sequence[Derived]) -> list[Architecture]:
    return [each.architecture for each in derived if each.role == "budget"]


def _lack(statement: Statement, chosen: Architecture, inputs: Inputs) -> str | None:
    """Why the blocks of the derived architecture cannot confirm a statement; None where they can."""
    needed = _GAPS_NEED if statement.kind == "spacing" else 1
    for family in filter(None, (statement.family, statement.other)):
        if (has := chosen.families.count(family)) < needed:
            return f"the derived architecture has {has} blocks of {family}; it takes {needed}"
    if statement.kind != "ratio":
        return None
    assert statement.low is not None  # or it is not worth confirming
    assert statement.high is not None
    space, table = inputs.request.space, inputs.table
    k, n = chosen.families.count(statement.family), space.n_slots - chosen.families.count("identity")
    if not statement.low <= n / k <= statement.high:
        held = f"{statement.low:.1f} to {statement.high:.1f} : 1"
        return f"{k} of {n} blocks of the derived architecture are {statement.family}, which is not within {held}"
    if {"attention", "ffn"} <= {candidate.family for candidate in space.candidates}:
        own, parent = (table.predict_ms(each, space) for each in (chosen, interleaved(space)))
        if own > parent * (1 + TOLERANCE):
            costs = f"{own:.4g} ms against {parent:.4g}, as predicted"
            return f"the derived architecture costs more than the parent that it is held against, {costs}"
    return None


def _laid_out(
    statements: Sequence[Statement], chosen: Architecture, inputs: Inputs, store: Store
) -> tuple[list[Statement], tuple[str, ...]]:
    """Statements whose common layout keeps every one of them, and its labels; a warning tells of each of the others."""
    space, kept = inputs.request.space, list(statements)
    while kept:
        try:
            labels = at_same_cost(kept, chosen.labels, space)
        except InvalidInput as error:
            store.warn(f"the rules were not confirmed: {error}")
            break
        families = Architecture(labels, space.candidates).families
        lacks = [broken(each, families) for each in kept]
        if not any(lacks):
            return kept, labels
        for each, lack in zip(kept, lacks, strict=True):
            if lack is not None:
                store.warn(f"the {each.kind} of {each.family} was not confirmed: {lack}")
        kept = [each for each, lack in zip(kept, lacks, strict=True) if lack is None]
    return [], ()


def _layouts(
    inputs: Inputs,
    searched: Searched,
    statements: Sequence[Statement],
    labels: tuple[str, ...],
    store: Store,
    trials: TrialRunner,
) -> dict[str, Retrained]:
    """The layout of the statements and what it is held against; {} where there is nothing, and a warning says why."""
    request, space = inputs.request, inputs.request.space
    others = random_placements(labels, space, request.retrain.confirm_placements, seed=request.trials.seed)
    if len(others) < FEWEST:  # a ratio is held against the parent alone
        if any(each.kind != "ratio" for each in statements):
            lack = f"their blocks have {len(others)} other placements; {FEWEST} are needed"
            store.warn(f"no placement was confirmed: {lack}")
        if all(each.kind != "ratio" for each in statements):
            return {}
        others = []
    layouts = {LAYOUT: Architecture(labels, space.candidates)}
    layouts |= {f"{LAYOUT} random {n}": Architecture(each, space.candidates) for n, each in enumerate(others, 1)}
    if {"attention", "ffn"} <= {candidate.family for candidate in space.candidates}:
        layouts[f"{LAYOUT} parent"] = interleaved(space)
    for name in request.retrain.fixed_baselines:
        layouts[f"{LAYOUT} {name}"] = baseline(name, space)
    first = request.trials.seed + max(request.trials.n_seeds, request.retrain.n_seeds)
    seeds = range(first, first + request.retrain.confirm_seeds)
    return train_layouts(inputs, layouts, seeds, searched.values, store, trials, sample=searched.sample)


def _confirmation(inputs: Inputs, layouts: Mapping[str, Retrained]) -> Confirmation:
    bits = {name: _bits(each, inputs) for name, each in layouts.items()}
    random = [losses for name, losses in bits.items() if name.startswith(f"{LAYOUT} random")]
    return confirm(
        bits[LAYOUT],
        random or None,
        bits.get(f"{LAYOUT} parent"),
        layout=str(layouts[LAYOUT].derived.architecture),
        unit=inputs.request.task.quality_unit,
        seeds=sorted(layouts[LAYOUT].results),
        slots=layouts[LAYOUT].derived.architecture.labels,
    )


def _bits(trained: Retrained, inputs: Inputs) -> NDArray[np.float64]:
    """Mean test loss of each seed, bits per unit of the task, (S,)."""
    losses: NDArray[np.float64] = trained.test_nats(inputs.request.task).mean(axis=1) / math.log(2)
    return losses
