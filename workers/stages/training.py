"""Training of distinct networks by one recipe: with a grid of learning rates, a teacher, or a supernet's weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nas.architecture import Architecture
from nas.errors import SearchFailed
from nas.retrain import RetrainResult, read_result
from workers.stages.numbering import Numbered, Numbering
from workers.stages.passed_on import Derived, Inputs, Retrained
from workers.stages.running import Beginning, cut_short, finished, run
from workers.store import Planned, Saved, Store, TrialKey
from workers.trials import TrialRunner

LR = "/method/lr"
_GRID_WITH_ENDS = 3  # factors from which on the best one can lie inside


class TrainingFailed(SearchFailed):
    """A network does not train: what it was wanted for may do without it."""


@dataclass(frozen=True)
class Recipe:
    """How networks are trained beside what the request says.

    Args:
        values: of hyper-parameters, by JSON pointer.
        sample: of the search, whose supernets a warm start is from.
        teacher: whom all learn from; None: from nobody.
        teaches: what is trained is to be a teacher itself.
    """

    values: Mapping[str, float]
    sample: int
    teacher: Derived | None = None
    teaches: bool = False

    @property
    def plain(self) -> Recipe:
        """Of the teacher: the same, without one."""
        return dataclasses.replace(self, teacher=None, teaches=True)


def network_of(inputs: Inputs, architecture: Architecture) -> str:
    """What tells networks apart, of which equal ones are trained once.

    Skipped slots do not, except for a warm start, whose weights belong to slots.
    """
    return architecture.hash if inputs.request.retrain.start == "supernet" else architecture.network


def train(
    inputs: Inputs, wanted: Sequence[Derived], seeds: Sequence[int], recipe: Recipe, store: Store, trials: TrialRunner
) -> dict[str, Retrained]:
    """Train each distinct network with every seed; what has ended is read, what was cut off goes on.

    With a grid of learning rates, each is tried with the first `retrain.lr_seeds`, and the one that validates best gets
    the others. A rate with which training fails is out of the running.

    Args:
        inputs: of the search.
        wanted: in the order of their numbers; those of an equal network are trained once, under the first.
        seeds: at least one.
        recipe: of all.
        store: where trials are kept.
        trials: runs them.

    Returns:
        By `network_of`.

    Raises:
        TrainingFailed: a trial failed, of a grid all of a network.
    """
    distinct: dict[str, Derived] = {}
    for each in wanted:
        distinct.setdefault(network_of(inputs, each.architecture), each)
    teachers = train(inputs, [recipe.teacher], seeds, recipe.plain, store, trials) if recipe.teacher else {}
    beginnings = {seed: _beginning(inputs, seed, recipe, teachers, store) for seed in seeds}
    settings = _settings(inputs, recipe)
    numbering = Numbering(store.folder)
    numbers = {
        (network, place): numbering.give(network, values, recipe.teaches, each.id)
        for network, each in distinct.items()
        for place, values in enumerate(settings)
    }
    numbering.save()
    architectures = {numbers[network, place].number: distinct[network].architecture for network, place in numbers}

    def run_all(chosen: Sequence[tuple[str, int]], seeds: Sequence[int]) -> dict[str, str]:
        planned = [
            _planned(inputs, numbers[network, place], settings[place], seed)
            for network, place in chosen
            for seed in seeds
        ]
        return run(inputs, planned, architectures, store, trials, beginnings)

    if len(settings) == 1:
        chosen = dict.fromkeys(distinct, 0)
    else:
        first = seeds[: inputs.request.retrain.lr_seeds]
        failures = run_all([*numbers], first)
        chosen = {network: _best(network, numbers, first, failures, store) for network in distinct}
        _tell_ends(inputs, [(distinct[network], place) for network, place in chosen.items()], store)
    failures = run_all([*chosen.items()], seeds)
    if failures:
        key, why = next(iter(failures.items()))
        raise TrainingFailed(f"trial {key} failed: {why}")
    return {
        network: _retrained(inputs, distinct[network], numbers[network, place].number, seeds, settings[place], store)
        for network, place in chosen.items()
    }


def _settings(inputs: Inputs, recipe: Recipe) -> list[dict[str, float]]:
    """Values of hyper-parameters, one for each learning rate of the grid."""
    values = dict(recipe.values)
    lr = inputs.request.method_with(values).lr
    return [{**values, LR: lr * factor} for factor in inputs.request.retrain.lrs] or [values]


def _planned(inputs: Inputs, numbered: Numbered, values: Mapping[str, float], seed: int) -> Planned:
    key = TrialKey("retrain", numbered.number, seed)
    return Planned(key, inputs.request.retrain.n_steps, values, numbered.architecture_id)


def _beginning(inputs: Inputs, seed: int, recipe: Recipe, teachers: Mapping[str, Retrained], store: Store) -> Beginning:
    """Of a seed: the same for all networks, so that their differences stay paired."""
    request, supernet, teacher = inputs.request, None, None
    if request.retrain.start == "supernet":
        first = request.trials.seed
        own = first + (seed - first) % request.trials.n_seeds  # more seeds than searches go round
        supernet = str(finished(store, TrialKey("search", recipe.sample, own)).path)
    for each in teachers.values():
        saved = each.checkpoints[seed].path
        teacher = {"architecture": each.derived.architecture.to_json(), "checkpoint": str(saved)}
    return Beginning(supernet, teacher)


def _best(
    network: str,
    numbers: Mapping[tuple[str, int], Numbered],
    seeds: Sequence[int],
    failures: Mapping[str, str],
    store: Store,
) -> int:
    """The place in the grid that validates best on the mean of these seeds; of equals the first one.

    Raises:
        TrainingFailed: training failed at each.
    """
    losses, failed = dict[int, float](), list[str]()
    for (own, place), each in numbers.items():
        if own != network:
            continue
        keys = [TrialKey("retrain", each.number, seed) for seed in seeds]
        out = [str(key) for key in keys if str(key) in failures]
        failed += out
        if not out:
            losses[place] = float(np.mean([read_result(finished(store, key).path).val_loss for key in keys]))
    if not losses:
        last = failed[-1]
        raise TrainingFailed(f"trial {last} failed, as with every other of retrain.lrs: {failures[last]}")
    return min(losses, key=lambda place: (losses[place], place))


def _tell_ends(inputs: Inputs, chosen: Sequence[tuple[Derived, int]], store: Store) -> None:
    factors = inputs.request.retrain.lrs
    ends = {min(factors), max(factors)}
    at_end = [str(each.architecture) for each, place in chosen if factors[place] in ends]
    if len(factors) >= _GRID_WITH_ENDS and at_end:
        store.warn(
            f"{', '.join(at_end)}: the best learning rate is at an end of retrain.lrs, {min(factors):g} to "
            f"{max(factors):g}; one beyond may be better"
        )


def _retrained(
    inputs: Inputs, each: Derived, number: int, seeds: Sequence[int], values: Mapping[str, float], store: Store
) -> Retrained:
    keys = {seed: TrialKey("retrain", number, seed) for seed in seeds}
    checkpoints: dict[int, Saved] = {seed: finished(store, key) for seed, key in keys.items()}
    results: dict[int, RetrainResult] = {seed: read_result(Path(saved.path)) for seed, saved in checkpoints.items()}
    cut = [line for key in keys.values() for line in cut_short(key, store.records(key)[-1])]
    ids = [store.trial_id(keys[seed]) for seed in sorted(keys)]
    return Retrained(each, results, checkpoints, inputs.request.method_with(values).lr, ids, cut)
