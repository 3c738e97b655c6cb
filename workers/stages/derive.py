"""Derive: an architecture of each seed, and the rule line over them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from nas import rules
from nas.architecture import Architecture, interleaved
from nas.derive import derive_by_table
from nas.errors import SearchFailed
from nas.measure import PairedLatency
from nas.steps import StepRecord
from workers.budget import derive_within
from workers.folder import write_json
from workers.stages.compare import time_in_turns
from workers.stages.passed_on import Derived, Inputs, Searched
from workers.store import Store, TrialKey
from workers.trials import TrialRunner

_CORRECTION_ROUNDS = 64  # of each look at a derived architecture, before it is retrained


def derive_all(inputs: Inputs, searched: Searched, store: Store, trials: TrialRunner) -> list[Derived]:
    """Two architectures per seed, by argmax and within the budget, and the parent; seed by seed, never on averages.

    A seed in which nothing moved beyond chance has no architecture; a warning says so.

    Raises:
        SearchFailed: no seed moved.
    """
    request, table = inputs.request, inputs.table
    derived = []
    reasons = []
    for seed, record in sorted(searched.last.items()):
        key = TrialKey("search", searched.sample, seed)
        try:
            best = derive_by_table(request, table, record, None)
            within = _within_budget(inputs, record, key, store, trials)
        except SearchFailed as error:
            reasons.append(f"seed {seed}: {error}")
            continue
        derived.append(_keep("argmax", best, inputs, store, key))
        derived.append(_keep("budget", within, inputs, store, key))
    if not derived:
        raise SearchFailed(reasons[0])
    for reason in reasons:
        store.warn(reason)
    if request.retrain.baselines:
        derived.append(_keep("parent", interleaved(request.space), inputs, store, None))
    return derived


def _within_budget(
    inputs: Inputs, record: StepRecord, key: TrialKey, store: Store, trials: TrialRunner
) -> Architecture:
    """As `derive_within`; remembered in the folder, since a second timing could end elsewhere."""
    path = store.folder / f"derived-{key}.json"
    if path.exists():
        return Architecture.from_json(json.loads(path.read_text()))

    def time_beside(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        request = inputs.request
        return trials.call(
            request.resources, time_in_turns, request.model_dump(mode="json"), labels, others, _CORRECTION_ROUNDS
        )

    architecture, missed = derive_within(inputs.request, inputs.table, record, time_beside)
    for line in missed:
        store.warn(f"seed {key.seed}: {line}")
    write_json(path, architecture.to_json())
    return architecture


def _keep(role: str, architecture: Architecture, inputs: Inputs, store: Store, key: TrialKey | None) -> Derived:
    entry: dict[str, Any] = {
        "role": role,
        "string": str(architecture),
        "slots": list(architecture.labels),
        "undecided": list(architecture.undecided),
        "sample": key.sample if key else None,
        "seed": key.seed if key else None,
        "predicted_ms": inputs.table.predict_ms(architecture, inputs.request.space),
    }
    found = store.architecture(entry, architecture.to_json(inputs.request.space.shape()), key)
    return Derived(found, role, architecture, entry, key.seed if key else None)


def infer_rule(derived: Sequence[Derived], store: Store) -> dict[str, Any]:
    """The rule line over the seeds' architectures, with its evidence."""
    found = rules.describe([each.architecture for each in derived if each.role == "budget"])
    statement: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(found)))  # lists, as a reader of JSON gets
    store.rule(statement)
    return statement
