"""Random stacks of about the cost of another: what a search must beat to be worth its own. L slots, K candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.cost import LatencyTable
from nas.statements import exchangeable

TOLERANCE = 0.05  # of the predicted latency; stacks within it count as of equal cost
_BINS = 2  # per slot, of what the tolerance spans: sums of rounded costs are then off by a quarter of it at most
_TRIES = 100  # draws per stack that is asked for; small spaces hold few


def random_stacks(
    request: SearchRequest,
    table: LatencyTable,
    like: Architecture,
    n: int,
    *,
    seed: int,
    without: Sequence[Architecture] = (),
) -> list[Architecture]:
    """Distinct stacks of about the predicted latency of another one, each equally likely among all that there are.

    Only what `space.layout` allows stands in a slot. Stacks are equal here where the same blocks follow each other,
    wherever between them slots are skipped.

    Args:
        request: its space.
        table: predicts; within TOLERANCE of `like` is equal.
        like: whose latency they have; never drawn itself.
        n: how many; fewer come back where the space does not hold as many.
        seed: of the draws.
        without: others that are not drawn.
    """
    space = request.space
    costs, target = np.asarray(table.slot_ms(space)), table.predict_ms(like, space)
    low, high = target * (1 - TOLERANCE) - table.offset_ms, target * (1 + TOLERANCE) - table.offset_ms
    ways, bins, unit = _ways(costs, space.allowed, high - low, high)
    first = max(0, int(low / unit - space.n_slots / 2))
    rng = np.random.default_rng(seed)
    taken, found = {each.word for each in (like, *without)}, []
    for _ in range(_TRIES * n):
        choices = _draw(ways, bins, space.allowed, first, rng)
        if choices is None:
            break
        drawn = Architecture(tuple(space.labels[choice] for choice in choices), space.candidates)
        if low <= float(costs[choices].sum()) <= high and drawn.word not in taken:
            taken.add(drawn.word)
            found.append(drawn)
            if len(found) == n:
                break
    return found


def random_placements(labels: Sequence[str], space: SearchSpace, n: int, *, seed: int) -> list[tuple[str, ...]]:
    """Different networks of the same blocks in other places than these; fewer than n where there are no more.

    Args:
        labels: of the slots, (L,).
        space: which slots may trade places (nas.statements.exchangeable).
        n: how many.
        seed: of the draws.
    """
    generator = np.random.default_rng(seed)
    groups = np.asarray(exchangeable(space))
    slots = [np.flatnonzero(groups == group) for group in sorted(set(groups.tolist()))]
    skipped = {candidate.label for candidate in space.candidates if candidate.family == "identity"}
    known = {tuple(label for label in labels if label not in skipped)}  # where skipped slots are changes no network
    found: list[tuple[str, ...]] = []
    for _ in range(100 * n):
        drawn = list(labels)
        for group in slots:
            for slot, source in zip(group, generator.permutation(group), strict=True):
                drawn[slot] = labels[source]
        chain = tuple(label for label in drawn if label not in skipped)
        if chain not in known and len(found) < n:
            known.add(chain)
            found.append(tuple(drawn))
    return found


def _ways(
    costs: NDArray[np.float64],
    allowed: Sequence[Sequence[bool]],
    width: float,
    most: float,
) -> tuple[list[NDArray[np.float64]], list[int], float]:
    """How many ways lead from each slot to each sum of what is still to come, (L + 1) x (bins,); scaled slot by slot,
    since 5^512 is no float. With the bins of each candidate, and what a bin is in milliseconds."""
    n_slots = len(allowed)
    unit = width / (_BINS * n_slots) if width > 0 else 1.0
    bins = [round(float(cost) / unit) for cost in costs]
    size = max(1, int(most / unit + n_slots / 2) + 1)
    after = np.zeros(size)
    after[0] = 1.0
    ways = [after]
    for row in reversed(allowed):
        here = np.zeros(size)
        for step, may in zip(bins, row, strict=True):
            if may and step < size:
                here[step:] += ways[0][: size - step]
        ways.insert(0, here / (here.max() or 1.0))
    return ways, bins, unit


def _draw(
    ways: Sequence[NDArray[np.float64]],
    bins: Sequence[int],
    allowed: Sequence[Sequence[bool]],
    first: int,
    rng: np.random.Generator,
) -> list[int] | None:
    """A candidate of each slot, all stacks from the bin `first` on equally likely; None where there is none."""
    total = ways[0][first:]
    if total.sum() <= 0:
        return None
    left = first + int(rng.choice(len(total), p=total / total.sum()))
    choices = []
    for row, after in zip(allowed, ways[1:], strict=True):
        weights = np.array(
            [after[left - step] if may and step <= left else 0.0 for step, may in zip(bins, row, strict=True)]
        )
        choices.append(int(rng.choice(len(weights), p=weights / weights.sum())))
        left -= bins[choices[-1]]
    return choices
