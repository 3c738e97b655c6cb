"""Which sample of hyper-parameters won, and by how much: what result.json says of them.

Two samples are held against each other seed by seed: data and draws of a seed are the same in both, so its differences
are paired. S seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from nas.budgets import BoundedCost
from nas.budgets import told as in_words
from nas.student import critical
from workers.samples import Told
from workers.stages.passed_on import Inputs, Searched
from workers.stages.running import seeds_of
from workers.stages.search import best, bounded, excess


def describe_samples(inputs: Inputs, searched: Searched) -> dict[str, Any]:
    """`samples`, what came of each in order, and `winner`; of a single sample an empty list and None."""
    request, told, bound = inputs.request, searched.told, bounded(inputs)
    if len(told) < 2:
        return {"samples": [], "winner": None}
    seeds = seeds_of(request, request.trials.n_seeds)
    samples = [
        {
            "sample": number,
            "values": sample.values,
            "state": sample.state,
            "reason": sample.reason,
            "seeds": seeds,
            "losses": list(sample.losses),
            "loss": sample.loss if sample.losses else None,
            "sd": stdev(sample.losses) if len(sample.losses) > 1 else None,
            "cost": sample.cost,
        }
        for number, sample in enumerate(told)
    ]
    return {"samples": samples, "winner": _winner(told, bound)}


def _winner(told: Sequence[Told], bound: BoundedCost | None) -> dict[str, Any]:
    first = best(told, bound)
    others = [Told(each.values, "failed") if number == first else each for number, each in enumerate(told)]
    second = best(others, bound) if any(each.state == "succeeded" for each in others) else None
    won: dict[str, Any] = {"sample": first, "values": told[first].values, "runner_up": second}
    name = f"sample {first} ({_values(told[first])})"
    if second is None:
        alone = {"margin": None, "se": None, "low": None, "high": None, "clear": False}
        return {**won, **alone, "sentence": f"{name} is the only one of {len(told)} samples that came to its end"}
    margin, se, half = paired(told[first].losses, told[second].losses)
    low, high = (None, None) if half is None else (margin - half, margin + half)
    over = [excess(told[number].cost, bound) for number in (first, second)]
    clear = over[0] < over[1] or (low is not None and low > 0)
    figures = {"margin": margin, "se": se, "low": low, "high": high, "clear": clear}
    if bound is not None and over[0] < over[1]:
        sentence = f"{name} won: {_by_cost(told[first], told[second], second, bound, over[0])}"
    elif clear:
        sentence = f"{name} won: {_apart(margin, low, high, len(told[first].losses))} below sample {second}"
    else:
        apart = _apart(margin, low, high, len(told[first].losses))
        sentence = f"cannot tell {name} from sample {second}: {apart} apart"
    return {**won, **figures, "sentence": f"{sentence}; {_others(told)}"}


def paired(losses: Sequence[float], others: Sequence[float]) -> tuple[float, float | None, float | None]:
    """How far the first losses lie below the others, seed by seed.

    Args:
        losses: (S,) of one sample, nats per token.
        others: (S,) of another one with the same seeds.

    Returns:
        Mean of the differences, its standard error, and half the width of its 95% interval by Student's t; the last two
        are None of one seed.
    """
    differences = [other - loss for loss, other in zip(losses, others, strict=True)]
    if len(differences) < 2:
        return fmean(differences), None, None
    se = stdev(differences) / math.sqrt(len(differences))
    return fmean(differences), se, critical(len(differences) - 1) * se


def _apart(margin: float, low: float | None, high: float | None, n_seeds: int) -> str:
    if low is None or high is None:
        return f"{margin:.4f} nats per token on one seed, which tells no interval,"
    return f"{margin:.4f} nats per token (95% interval {low:+.4f} to {high:+.4f}, {n_seeds} paired seeds)"


def _by_cost(first: Told, second: Told, number: int, bound: BoundedCost, over: float) -> str:
    assert first.cost is not None
    assert second.cost is not None
    costs = f"{in_words(first.cost)} {bound.unit} against {in_words(second.cost)} of sample {number}"
    allowed = f"{in_words(bound.target)} {bound.unit} of budget.{bound.name}"
    if over:
        return f"no sample meets the {allowed}, and it is nearest, with {costs}"
    return f"it alone meets the {allowed}, with {costs}"


def _others(told: Sequence[Told]) -> str:
    counts = {state: sum(each.state == state for each in told) for state in ("succeeded", "pruned", "failed")}
    ended = [f"{counts['succeeded']} of {len(told)} samples came to their end"]
    return ", ".join([*ended, *(f"{counts[state]} {state}" for state in ("pruned", "failed") if counts[state])])


def _values(sample: Told) -> str:
    return ", ".join(f"{pointer.removeprefix('/method/')} {value:.4g}" for pointer, value in sample.values.items())
