"""What shared weights go by, and trainings do not: of stacks scored and trained apart, what their blocks explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

FAMILIES = "AFSM"
FEWEST = 2 * (len(FAMILIES) + 1)  # stacks for a least-squares fit of five numbers


@dataclass(frozen=True)
class Account:
    """Of losses by one way, nats.

    Args:
        explained: share of their variance that a sum over blocks explains, by least squares.
        buys: nats that one more block of a family takes off, by the same fit.
        by_count: Kendall's tau of the loss with the number of blocks, most first.
        by_order: tau of the loss with how far SGU stands before attention and MGK, in slots between their means, over
            the stacks that have both; None with fewer than two of them.
    """

    explained: float
    buys: dict[str, float]
    by_count: float
    by_order: float | None


def account(losses: Mapping[str, float]) -> Account | None:
    """By stack, a letter a slot; None of too few, or where all are the same."""
    stacks, nats = list(losses), np.array(list(losses.values()))
    if len(stacks) < FEWEST or not nats.std():
        return None
    counts = np.array([[*(stack.count(letter) for letter in FAMILIES), 1] for stack in stacks], dtype=float)
    fit = np.linalg.lstsq(counts, nats, rcond=None)[0]
    both = [stack for stack in stacks if "S" in stack and {*"AM"} & {*stack}]
    return Account(
        explained=float(1 - (nats - counts @ fit).var() / nats.var()),
        buys={letter: -float(each) for letter, each in zip(FAMILIES, fit, strict=False)},
        by_count=_tau(-counts[:, :-1].sum(axis=1), nats),
        by_order=_tau(np.array([_mean_slot(stack, "S") - _mean_slot(stack, "AM") for stack in both]),
                      np.array([losses[stack] for stack in both])) if len(both) > 1 else None,
    )  # fmt: skip


def _mean_slot(stack: str, letters: str) -> float:
    return float(np.mean([slot for slot, letter in enumerate(stack) if letter in letters]))


def _tau(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    return float(kendalltau(first, second).statistic)
