"""Retrain: every distinct derived architecture and the parent, by one recipe and the same seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from nas.errors import SearchFailed
from nas.retrain import read_result
from workers.stages.passed_on import Derived, Inputs, Retrained, Searched
from workers.stages.running import cut_short, finished, run, seeds_of
from workers.store import Planned, Store, TrialKey
from workers.trials import TrialRunner


def retrain(
    inputs: Inputs, searched: Searched, derived: Sequence[Derived], store: Store, trials: TrialRunner
) -> tuple[Retrained, Retrained | None]:
    """Train every distinct derived architecture and the parent afresh, by one recipe and with the same seeds.

    Returns:
        The derived one that validates best, and what it is held against: the present model where the request asks for
        it, else the parent; None where it asks for no baseline.

    Raises:
        SearchFailed: a retraining failed.
    """
    request = inputs.request
    distinct: list[Derived] = []
    for each in derived:
        # Equal networks are trained once; a parent that was also derived stands for both.
        if each.role != "argmax" and each.architecture.hash not in [known.architecture.hash for known in distinct]:
            distinct.append(each)
    seeds = seeds_of(request, request.retrain.n_seeds)
    planned = [
        Planned(TrialKey("retrain", number, seed), request.retrain.n_steps, searched.values, each.id)
        for number, each in enumerate(distinct)
        for seed in seeds
    ]
    architectures = {number: each.architecture for number, each in enumerate(distinct)}
    failures = run(inputs, planned, architectures, store, trials)
    if failures:
        key, why = next(iter(failures.items()))
        raise SearchFailed(f"trial {key} failed: {why}")
    trained: dict[str, Retrained] = {}
    for number, each in enumerate(distinct):
        keys = {seed: TrialKey("retrain", number, seed) for seed in seeds}
        checkpoints = {seed: finished(store, key) for seed, key in keys.items()}
        results = {seed: read_result(saved.path) for seed, saved in checkpoints.items()}
        cut = [line for key in keys.values() for line in cut_short(key, store.records(key)[-1])]
        trained[each.architecture.hash] = Retrained(each, results, checkpoints, cut)
    candidates = [trained[each.architecture.hash] for each in derived if each.role == "budget"]
    winner = min(candidates, key=lambda each: (each.val_loss, each.derived.seed))
    store.chosen(winner.derived.id)
    baselines = {each.role: each for each in derived if each.role in ("present", "parent")}
    against = baselines.get("present", baselines.get("parent"))
    if against is None:
        return winner, None
    return winner, dataclasses.replace(trained[against.architecture.hash], derived=against)
