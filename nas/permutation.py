"""Exact permutation tests of where a family stands: its blocks trade places within each seed, summed over seeds.

The null hypothesis: within a seed every placement of the same blocks is as likely as any other. It is tested by the
statistic's own distribution over those placements; seeds are independent, so distributions convolve. Costs do not
depend on the slot, so a placement of the same blocks costs the same, and stays within every budget.

A skipped slot changes nothing in a network, wherever it stands: statistics are of the chain of blocks without them, so
that two stacks which are the same network have the same statistic. All statistics are whole numbers, and all
distributions lie on them. Closed forms: rank sums (Wilcoxon 1945) and gaps by counting, the last third by binomials.
Ours otherwise. L slots, S seeds, M placements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations
from math import comb, factorial, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Statistic = Literal["ranks", "beyond", "gaps"]
Codes = NDArray[np.int8]
SKIPPED, OTHER, FAMILY = 0, 1, 2

N_DRAWS = 19_999  # where counting is too long: 1/20,000 is the smallest p value, and Holm over 100 statements can pass
_MOST_PLACEMENTS = 20_000  # that are written out for a seed whose slots are not all free
_MOST_SUMS = 200_000_000  # that a distribution may take


@dataclass(frozen=True)
class Stack:
    """One seed's stack, as the test of one family sees it.

    Args:
        codes: (L,) SKIPPED, OTHER or FAMILY.
        groups: (L,) slots of an equal number trade places; those of -1 stay as they are.
    """

    codes: Codes
    groups: NDArray[np.int64]


@dataclass(frozen=True)
class Tails:
    """How often placements have a sum like the observed one.

    Args:
        observed: the sum.
        low: chance of this sum or a smaller one.
        high: chance of this sum or a larger one.
        n_draws: placements that were drawn; None: all were counted.
    """

    observed: int
    low: float
    high: float
    n_draws: int | None

    @property
    def both(self) -> float:
        """Of a test in both directions: twice the smaller tail."""
        return min(1.0, 2 * min(self.low, self.high))


@dataclass(frozen=True)
class Null:
    """What one seed's statistic may be: `chances[i]` that it is `first` + i."""

    first: int
    chances: NDArray[np.float64]


def values(statistic: Statistic, codes: Codes) -> NDArray[np.int64]:
    """The statistic of each placement: (M, L) -> (M,).

    "ranks": the sum of the family's places in the chain, counted from 0. "beyond": its blocks in the last third, from
    place floor(2 N / 3) of N on. "gaps": the sum over the distances between its neighbours of how far each is from the
    even one, times their number; 0 where all are even.
    """
    places = np.cumsum(codes > SKIPPED, axis=1, dtype=np.int64) - 1
    family = codes == FAMILY
    if statistic == "ranks":
        ranks: NDArray[np.int64] = np.where(family, places, 0).sum(axis=1)
        return ranks
    if statistic == "beyond":
        beyond: NDArray[np.int64] = (family & (places >= 2 * (places[:, -1:] + 1) // 3)).sum(axis=1)
        return beyond
    gaps = np.diff(places[family].reshape(len(codes), -1), axis=1)
    uneven: NDArray[np.int64] = np.abs(gaps * gaps.shape[1] - gaps.sum(axis=1, keepdims=True)).sum(axis=1)
    return uneven


def tails(statistic: Statistic, stacks: Sequence[Stack], *, seed: int = 0) -> Tails:
    """Where the observed sum over the seeds lies among all placements within each.

    Args:
        statistic: as in `values`.
        stacks: of the seeds; each holds the family.
        seed: of the draws, where there are too many placements to count.
    """
    observed = sum(int(values(statistic, stack.codes[None])[0]) for stack in stacks)
    nulls = [null(statistic, stack) for stack in stacks]
    known = [each for each in nulls if each is not None]
    if len(known) < len(nulls) or sum(len(each.chances) for each in known) ** 2 > _MOST_SUMS:
        return _drawn(statistic, stacks, observed, seed)
    chances = reduce(np.convolve, [each.chances for each in known], np.ones(1))
    at = observed - sum(each.first for each in known)
    return Tails(observed, min(1.0, float(chances[: at + 1].sum())), min(1.0, float(chances[at:].sum())), None)


def null(statistic: Statistic, stack: Stack) -> Null | None:
    """The statistic's distribution over the placements of one seed; None where they are too many to count."""
    moving = stack.codes > SKIPPED
    family = np.flatnonzero(stack.codes == FAMILY)
    if statistic == "gaps":
        moving[: family[0] + 1] = moving[family[-1] :] = False
    groups = set(stack.groups[moving].tolist())
    if len(groups) == 1 and -1 not in groups:  # every moving block may stand in the place of every other
        n_moving, k = int(moving.sum()), len(family)
        if statistic == "ranks":
            return rank_sums(n_moving, k)
        if statistic == "beyond":
            return beyonds(n_moving, k)
        return uneven_gaps(n_moving + 1, k - 1)
    return _counted(statistic, stack)


@lru_cache(maxsize=4096)
def rank_sums(n: int, k: int) -> Null | None:
    """Of the sum of k different places out of 0..n-1, each choice as likely; None where counting is too long."""
    first, last = k * (k - 1) // 2, k * (2 * n - k - 1) // 2
    if n * k * last > _MOST_SUMS:
        return None
    ways = np.zeros((k + 1, last + 1))
    ways[0, 0] = 1
    for place in range(n):
        ways[1:, place:] += ways[:-1, : last + 1 - place].copy()
    return Null(first, ways[k, first:] / ways[k].sum())


@lru_cache(maxsize=4096)
def beyonds(n: int, k: int) -> Null:
    """Of how many of k different places out of n are in the last third."""
    last = n - 2 * n // 3
    return Null(0, np.array([comb(last, j) * comb(n - last, k - j) / comb(n, k) for j in range(min(last, k) + 1)]))


@lru_cache(maxsize=4096)
def uneven_gaps(span: int, n_gaps: int) -> Null | None:
    """Of n_gaps gaps, each at least 1, that add up to span: how far they are from even; None where it is too long."""
    most = 2 * (n_gaps - 1) * (span - n_gaps)  # one gap takes all that the others can spare
    if n_gaps * span**2 * (most + 1) > _MOST_SUMS:
        return None
    ways = np.zeros((span + 1, most + 1))
    ways[0, 0] = 1
    for _ in range(n_gaps):
        longer = np.zeros_like(ways)
        for gap in range(1, span - n_gaps + 2):
            uneven = abs(gap * n_gaps - span)
            longer[gap:, uneven:] += ways[:-gap, : most + 1 - uneven]
        ways = longer
    return Null(0, ways[span] / ways[span].sum())


def placements(stack: Stack) -> Iterator[Codes]:
    """Each placement of the stack's blocks once, (L,)."""
    found = [stack.codes]
    for group in _groups(stack):
        found = [_put(codes, group, order) for codes in found for order in _orders(stack.codes[group].tolist())]
    return iter(found)


def _groups(stack: Stack) -> list[NDArray[np.int64]]:
    """The slots of each group that anything can change in."""
    every = [np.flatnonzero(stack.groups == group) for group in sorted(set(stack.groups.tolist()) - {-1})]
    return [group for group in every if len(set(stack.codes[group].tolist())) > 1]


def _put(codes: Codes, group: NDArray[np.int64], order: Sequence[int]) -> Codes:
    changed = codes.copy()
    changed[group] = order
    return changed


def _orders(codes: Sequence[int]) -> Iterator[list[int]]:
    """Each different order of these codes once."""
    counts = Counter(codes)
    code, *others = counts
    rest = [each for each in codes if each != code]
    for at in combinations(range(len(codes)), counts[code]):
        for order in _orders(rest) if others else [[]]:
            remaining = iter(order)
            yield [code if slot in at else next(remaining) for slot in range(len(codes))]


def _counted(statistic: Statistic, stack: Stack) -> Null | None:
    counts = [Counter(stack.codes[group].tolist()).values() for group in _groups(stack)]
    if prod(factorial(sum(each)) // prod(map(factorial, each)) for each in counts) > _MOST_PLACEMENTS:
        return None
    found = values(statistic, np.array(list(placements(stack))))
    first = int(found.min())
    return Null(first, np.bincount(found - first) / len(found))


def _drawn(statistic: Statistic, stacks: Sequence[Stack], observed: int, seed: int) -> Tails:
    """From N_DRAWS placements of all seeds; the observed one counts as one more, so that no p value is 0."""
    generator = np.random.default_rng(seed)
    sums = np.zeros(N_DRAWS, np.int64)
    for stack in stacks:
        drawn = np.tile(stack.codes, (N_DRAWS, 1))
        for group in _groups(stack):
            drawn[:, group] = generator.permuted(drawn[:, group], axis=1)
        sums += values(statistic, drawn)
    low, high = int((sums <= observed).sum()), int((sums >= observed).sum())
    return Tails(observed, (low + 1) / (N_DRAWS + 1), (high + 1) / (N_DRAWS + 1), N_DRAWS)
