"""The Pareto front of score against one cost: every point exact, as many as asked for, spread over the costs.

A point is the best network within its cost, and the cheapest of that score; so nothing beats it in both. L slots, K
candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nas.errors import InvalidInput
from nas.exact.problem import Problem
from nas.exact.program import EQUAL
from nas.exact.solve import Answer, best, with_objective

MOST_POINTS = 200
_BELOW = 1e-9  # of the range of costs: what is cheaper than a point costs less by at least this


@dataclass(frozen=True)
class Front:
    """Points by rising cost, and so by rising score.

    Args:
        points: `cost` of each is the cost in question.
        complete: whether these are all the points there are, of costs that differ by more than 1e-9 of their range.
    """

    points: tuple[Answer, ...]
    complete: bool


def front(problem: Problem, costs: Sequence[float], n_points: int) -> Front:
    """At most n points of the front of score against a cost; no points where nothing meets the rows.

    The two ends come first, then the widest gap in cost is halved, or shown to be empty, again and again.

    Args:
        problem: what must be met; its own second criterion is not looked at.
        costs: what each candidate adds to the cost, (K,).
        n_points: at least 2.

    Raises:
        InvalidInput: the number of points is out of range.
    """
    if not 2 <= n_points <= MOST_POINTS:
        raise InvalidInput(f"points is {n_points}; a front has 2 to {MOST_POINTS}")
    row = np.asarray(costs, np.float64)
    problem = replace(problem, costs=row)
    found = best(problem)
    if not found:
        return Front((), True)
    top = found[0]
    cheapest = best(with_objective(problem, -row))[0].cost
    bottom = _within(problem, cheapest, _BELOW * abs(cheapest))
    assert bottom is not None  # the cheapest itself is within
    width = top.cost - bottom.cost
    if bottom.score >= top.score - EQUAL or width <= 0:
        return Front((bottom,), True)
    points = [bottom, top]
    gaps = [_Gap(bottom.cost, bottom, top)]
    while gaps and len(points) < n_points:
        gaps.sort(key=lambda gap: gap.width)
        gap = gaps.pop()
        narrow = gap.width * 4 * n_points < width  # little of interest is left: is there anything at all?
        at = gap.high.cost - 2 * _BELOW * width if narrow else gap.high.cost - gap.width / 2
        middle = _within(problem, at, 0.0)
        if middle is not None and middle.score > gap.low.score + EQUAL:
            points.append(middle)
            gaps.append(_Gap(gap.empty, gap.low, middle))
            if not narrow:
                gaps.append(_Gap(at, middle, gap.high))
        elif not narrow:
            gaps.append(_Gap(at, gap.low, gap.high))
    gaps.sort(key=lambda gap: -gap.width)  # the widest is the likeliest to hold another point
    complete = all(_is_empty(problem, gap, gap.high.cost - 2 * _BELOW * width) for gap in gaps)
    return Front(tuple(sorted(points, key=lambda point: point.cost)), complete)


@dataclass(frozen=True)
class _Gap:
    """Between two points there may be more, but none that costs less than `empty`."""

    empty: float
    low: Answer
    high: Answer

    @property
    def width(self) -> float:
        return self.high.cost - self.empty


def _is_empty(problem: Problem, gap: _Gap, below: float) -> bool:
    found = _within(problem, below, 0.0)
    return found is None or found.score <= gap.low.score + EQUAL


def _within(problem: Problem, cost: float, slack: float) -> Answer | None:
    """The best within a cost."""
    found = best(problem.with_row(problem.costs, cost, slack))
    return found[0] if found else None
