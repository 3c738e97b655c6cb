"""Power: what a comparison can show, told before it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from statistics import stdev
from typing import Any

from nas.config.task import Task
from nas.power import foresee, spread_of_differences
from workers.stages.passed_on import Inputs, Retrained, Searched
from workers.store import Store


def tell_by_searches(inputs: Inputs, searched: Searched, n_seeds: int, store: Store) -> dict[str, Any]:
    """Tell what the retrainings can show, by the spread of the searches: nothing nearer has been seen yet.

    Search seeds have networks of their own, so their losses are not paired; differences of two then spread by the root
    of 2 more, which is rather too much for paired ones.
    """
    losses = searched.told[searched.sample].losses if searched.told else ()
    if len(losses) < 2:
        return _tell(inputs, None, n_seeds, "the search had one seed, and none was retrained before", store)
    source = f"the losses of {len(losses)} search seeds, which are not paired"
    return _tell(inputs, math.sqrt(2) * stdev(losses), n_seeds, source, store)


def tell_by_retrainings(
    inputs: Inputs, trained: Sequence[Retrained], n_seeds: int, store: Store, what: str = "retraining"
) -> dict[str, Any]:
    """Tell what further comparisons can show, by the differences of networks that were retrained with the same seeds.

    Args:
        inputs: of the search.
        trained: distinct networks.
        n_seeds: of the comparisons to come.
        store: where it is told.
        what: the comparisons, for people.

    Returns:
        As JSON: message, n_seeds, unit, sd, source and detectable (`nas.power.Foreseen`).
    """
    sd = spread_of_differences([[result.val_loss for result in each.in_order] for each in trained])
    if sd is None:
        return _tell(inputs, None, n_seeds, "too little was retrained before", store, what)
    source = f"{len(trained)} networks retrained before, on validation"
    return _tell(inputs, sd, n_seeds, source, store, what)


def _tell(
    inputs: Inputs, sd_nats: float | None, n_seeds: int, source: str, store: Store, what: str = "retraining"
) -> dict[str, Any]:
    task = inputs.request.task
    found = foresee(None if sd_nats is None else bits_per_unit(sd_nats, task), n_seeds, task.quality_unit, source)
    told = {"message": f"{what}: {found.sentence}", **asdict(found)}
    store.power(told)
    return told


def bits_per_unit(nats_per_token: float, task: Task) -> float:
    """In the unit that the task's quality is told in."""
    return nats_per_token / task.units_per_token / math.log(2)
