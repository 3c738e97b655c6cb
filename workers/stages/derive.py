"""Derive: an architecture of each seed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from nas.architecture import Architecture
from nas.baselines import baseline
from nas.derive import leading
from nas.errors import InvalidInput, SearchFailed
from nas.guards import untrained
from nas.measure import PairedLatency
from nas.steps import StepRecord
from workers.budget import Within, derive_within, kept, more_within, unconfirmed
from workers.folder import write_json
from workers.stages.compare import time_in_turns
from workers.stages.passed_on import Derived, Inputs, Searched
from workers.store import Store, TrialKey
from workers.trials import TrialRunner

BASELINES = ("interleaved", "present", "sandwich", "par", "all-ffn", "all-attention")  # in the order they are trained
ROLES = {"interleaved": "parent"}  # where a layout's role in the store is not its name
_CORRECTION_ROUNDS = 64  # of each look at a derived architecture, before it is retrained


def derive_all(inputs: Inputs, searched: Searched, store: Store, trials: TrialRunner) -> list[Derived]:
    """Two architectures per seed, what alpha alone would take and the one within the budget, with the next best where
    they are asked for, and the baselines; seed by seed, never on averages.

    A seed that has learnt or decided nothing has no architecture; a warning says so.

    Raises:
        SearchFailed: no seed learnt and decided anything.
    """
    request, table = inputs.request, inputs.table
    derived = []
    reasons = []
    for seed, record in sorted(searched.last.items()):
        key = TrialKey("search", searched.sample, seed)
        try:
            if (reason := untrained(record)) is not None:
                raise SearchFailed(reason)
            best = leading(request, table, record)
            within, *more = _within_budget(inputs, record, key, store, trials)
        except SearchFailed as error:
            reasons.append(f"seed {seed}: {error}")
            continue
        n_free = request.space.n_free
        if record.path is not None and n_free and len(best.undecided) == n_free:
            store.warn(
                f"seed {seed}: no slot's alpha moved beyond chance; the parsimony pass began at a path that chance "
                "drew, and its comparisons alone decide"
            )
        derived.append(keep("argmax", best, inputs, store, key, record))
        for place, each in enumerate((within, *more), 1):
            role = f"budget {place}" if place > 1 else "budget"
            derived.append(keep(role, each.architecture, inputs, store, key, record, each.timed))
    if not derived:
        raise SearchFailed(reasons[0])
    for reason in filter(None, (*reasons, unconfirmed(request, table, inputs.device))):
        store.warn(reason)
    for name in BASELINES:  # random ones are drawn beside what is chosen of these
        if name in request.retrain.baselines:
            derived.append(keep(ROLES.get(name, name), baseline(name, request.space), inputs, store, None))
    return derived


def _within_budget(
    inputs: Inputs, record: StepRecord, key: TrialKey, store: Store, trials: TrialRunner
) -> list[Within]:
    """As `derive_within`, behind it what `more_within` finds; remembered in the folder, since a second timing could end
    elsewhere."""
    path = store.folder / f"derived-{key}.json"
    if path.exists():
        known = json.loads(path.read_text())
        return [_remembered(each) for each in (known, *known.get("more", ()))]
    request, table = inputs.request, inputs.table

    def time_beside(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        return trials.call(
            request.resources, time_in_turns, request.model_dump(mode="json"), labels, others, _CORRECTION_ROUNDS
        )

    reason = unconfirmed(request, table, inputs.device)
    within = derive_within(request, table, record, time_beside, reason)
    for line in within.missed:
        store.warn(f"seed {key.seed}: {line}")
    k = request.retrain.k_best
    try:
        more = more_within(request, table, record, time_beside, within, k, reason)
        if len(more) < k - 1:
            store.warn(f"seed {key.seed}: retrain.k_best is {k}, but {len(more) + 1} distinct networks meet the budget")
    except InvalidInput as error:  # too many tie: what is derived is the best all the same
        more = []
        store.warn(f"seed {key.seed}: retrain.k_best is {k}, but only the best is derived: {error}")
    write_json(path, {**_to_remember(within), "more": [_to_remember(each) for each in more]})
    return [within, *more]


def _to_remember(within: Within) -> dict[str, Any]:
    timed = None if within.timed is None else dataclasses.asdict(within.timed)
    return {"architecture": within.architecture.to_json(), "timed": timed}


def _remembered(known: Mapping[str, Any]) -> Within:
    timed = None if known["timed"] is None else PairedLatency(**known["timed"])
    return Within(Architecture.from_json(known["architecture"]), timed, ())


def keep(
    role: str,
    architecture: Architecture,
    inputs: Inputs,
    store: Store,
    key: TrialKey | None,
    record: StepRecord | None = None,
    timed: PairedLatency | None = None,
    known: str | None = None,
) -> Derived:
    """An architecture in the store, with its line of result.json.

    Args:
        role: how it came to be; of a search, one architecture has it, or one of each trial.
        architecture: what is kept.
        inputs: of the search.
        store: where it is kept.
        key: of the trial that it was derived from; None: from none.
        record: the last one of that trial.
        timed: it beside its parent.
        known: its id, where the store has it already, under whatever role.
    """
    request, table = inputs.request, inputs.table
    entry: dict[str, Any] = {
        "role": role,
        "string": str(architecture),
        "slots": list(architecture.labels),
        "undecided": list(architecture.undecided),
        "sample": key.sample if key else None,
        "seed": key.seed if key else None,
        "predicted_ms": table.predict_ms(architecture, request.space),
        "expected_ms": record.expected_ms if record else None,  # of alpha: how far its mixture is from what is built
        "bounds": kept(request, table, architecture, record, timed, unconfirmed(request, table, inputs.device)),
    }
    found = known or store.architecture(entry, architecture.to_json(request.space.shape()), key)
    return Derived(found, role, architecture, entry, key.seed if key else None)
