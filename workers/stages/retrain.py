"""Retrain: every distinct derived architecture and its baselines, by one recipe and with the same seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from nas.architecture import Architecture
from nas.baselines import baseline
from nas.random_stacks import TOLERANCE, random_stacks
from workers.stages.derive import BASELINES, ROLES, keep
from workers.stages.numbering import Numbering
from workers.stages.passed_on import Derived, Inputs, Retrained, Searched, Trained
from workers.stages.power import tell_by_retrainings, tell_by_searches
from workers.stages.running import seeds_of
from workers.stages.training import Recipe, network_of, train
from workers.store import Store
from workers.trials import TrialRunner


def retrain(
    inputs: Inputs, searched: Searched, derived: Sequence[Derived], store: Store, trials: TrialRunner
) -> Trained:
    """Train every distinct derived architecture and the baselines afresh; equal networks are trained once.

    What the comparisons can show is told before they run. Random stacks are drawn when it is known which architecture
    is *the* derived one, since they cost what it does.

    Raises:
        TrainingFailed: a retraining failed, of a grid of learning rates all of an architecture.
    """
    request = inputs.request
    seeds = seeds_of(request, request.retrain.n_seeds)
    recipe = Recipe(searched.values, searched.sample, _teacher(inputs, store))
    wanted = [each for each in derived if each.role != "argmax"]
    draws = "random" in request.retrain.baselines
    distinct = {network_of(inputs, each.architecture) for each in wanted}
    power = [tell_by_searches(inputs, searched, len(seeds), store)] if draws or len(distinct) > 1 else []
    if request.retrain.start == "supernet":
        store.warn(
            "retrain.start is supernet: the search trained the blocks of what it derived most, which favours it over "
            "the baselines; to compare architectures alone, start from scratch"
        )
        if (n_searches := request.trials.n_seeds) < len(seeds):
            store.warn(
                f"retrain.start is supernet and retrain.n_seeds is {len(seeds)}, but trials.n_seeds is {n_searches}: "
                "seeds that begin with weights of the same search are not independent, so intervals over them are too "
                f"narrow; give at most {n_searches}"
            )
    trained = train(inputs, wanted, seeds, recipe, store, trials)
    own = _own(inputs, derived, trained)
    if _is_over(own[0].derived):
        store.warn("no derived architecture is within all bounds of the budget; the one that validates best is over")
    layouts = {f"derived {place}" if place > 1 else "derived": each for place, each in enumerate(own, 1)}
    store.chosen(own[0].derived.id)
    for each in derived:
        for name in BASELINES:
            if each.role == ROLES.get(name, name):
                layouts[name] = dataclasses.replace(trained[network_of(inputs, each.architecture)], derived=each)
    if draws:
        if len(trained) > 1 and len(seeds) > 1:
            power.append(tell_by_retrainings(inputs, [*trained.values()], len(seeds), store))
        stacks = _random(inputs, own, store)
        trained = train(inputs, stacks, seeds, recipe, store, trials)
        layouts |= {each.role: trained[network_of(inputs, each.architecture)] for each in stacks}
    parent = layouts.get("present", layouts.get("interleaved"))
    if recipe.teacher is not None:
        teacher = train(inputs, [recipe.teacher], seeds, recipe.plain, store, trials)
        layouts["teacher"] = teacher[network_of(inputs, recipe.teacher.architecture)]
    return Trained(layouts, parent, power)


def train_layouts(
    inputs: Inputs,
    layouts: Mapping[str, Architecture],
    seeds: Sequence[int],
    values: Mapping[str, float],
    store: Store,
    trials: TrialRunner,
    *,
    sample: int = 0,
) -> dict[str, Retrained]:
    """Train layouts of one's own by the recipe of the request; for stages behind `retrain`.

    Each distinct network is trained once. Trials are numbered on from those that the search has; a network that was
    trained before has its number, and of seeds that it was trained with nothing runs again.

    Args:
        inputs: of the search.
        layouts: by name. A new network's name becomes its role in the store, at most 32 characters: it must be one that
            no other architecture of the search has.
        seeds: the same of all; fresh ones confirm what others have found.
        values: of hyper-parameters, as the search has them (`Searched.values`).
        store: where trials are kept.
        trials: runs them.
        sample: of the search (`Searched.sample`), whose supernets a warm start is from.

    Raises:
        TrainingFailed: a retraining failed.
    """
    numbering = Numbering(store.folder)
    wanted = {
        name: keep(
            name, architecture, inputs, store, None, known=numbering.architecture_of(network_of(inputs, architecture))
        )
        for name, architecture in layouts.items()
    }
    recipe = Recipe(values, sample, _teacher(inputs, store))
    trained = train(inputs, [*wanted.values()], seeds, recipe, store, trials)
    return {
        name: dataclasses.replace(trained[network_of(inputs, each.architecture)], derived=each)
        for name, each in wanted.items()
    }


def _teacher(inputs: Inputs, store: Store) -> Derived | None:
    """The parent, as a teacher of all others; None where nobody is taught."""
    request = inputs.request
    if request.retrain.distil is None:
        return None
    name = "present" if "present" in request.retrain.baselines else "interleaved"
    return keep(ROLES.get(name, name), baseline(name, request.space), inputs, store, None)


def _own(inputs: Inputs, derived: Sequence[Derived], trained: Mapping[str, Retrained]) -> list[Retrained]:
    """The distinct derived architectures, best first: those over a bound behind all others, then by validation, never
    by test."""
    own = {
        network_of(inputs, each.architecture): each
        for each in reversed(derived)
        if each.seed is not None and each.role != "argmax"
    }
    found = [dataclasses.replace(trained[network], derived=each) for network, each in own.items()]
    return sorted(found, key=lambda each: (_is_over(each.derived), each.val_loss, each.derived.seed))


def _is_over(derived: Derived) -> bool:
    """Whether it is over any bound, as measured where it was timed; where that cannot be told, it is not."""
    return any(bound["verdict"] == "over" for bound in derived.entry["bounds"])


def _random(inputs: Inputs, own: Sequence[Retrained], store: Store) -> list[Derived]:
    """The random baselines; fewer, and told, where the space does not hold as many."""
    request, chosen = inputs.request, own[0].derived.architecture
    others = [each.derived.architecture for each in own[1:]]
    n = request.retrain.n_random
    stacks = random_stacks(request, inputs.table, chosen, n, seed=request.trials.seed, without=others)
    if len(stacks) < n:
        store.warn(
            f"retrain.n_random is {n}, but the space holds {len(stacks)} other stacks within {TOLERANCE:.0%} of the "
            "derived one's predicted latency"
        )
    return [keep(f"random {number}", each, inputs, store, None) for number, each in enumerate(stacks, 1)]
