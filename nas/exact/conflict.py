"""Why nothing is feasible: the smallest set of constraints that no architecture meets together, and what each could be.

The smallest set is found by hitting sets (Ignatiev et al. 2015, "Smallest MUS extraction with minimal hitting set
dualization"): whatever can be met together leaves out at least one member of every conflict, so a conflict hits all
that was left out so far; the smallest set that hits them, once it cannot be met, is a smallest conflict. Among dozens
of constraints there can be thousands of conflicts, and that takes minutes: then one in which none is idle will do.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nas.budgets import told
from nas.errors import Conflict, Infeasible, InvalidInput
from nas.exact import clock
from nas.exact.constraint import Constraint, Frame, assemble
from nas.exact.problem import Floats, Problem
from nas.exact.solve import best, feasible, with_objective

SMALLEST_S = 20.0  # for which the smallest conflict is looked for


def explain(frame: Frame, constraints: Sequence[Constraint]) -> Infeasible:
    """The smallest conflict among constraints that no architecture meets together, with its nearest feasible values.

    Where it takes too long to find: one that need not be the smallest, which the words then say.
    """
    doubt = ""
    try:
        with clock.within(SMALLEST_S):
            members = smallest(frame, constraints)
    except InvalidInput:
        members = irreducible(frame, constraints)
        doubt = f"; there may be a conflict of fewer constraints, {SMALLEST_S:g} s did not tell"
    found = tuple(_nearest(frame, constraints, members, index) for index in members)
    return Infeasible(_in_words(found) + doubt, found)


def smallest(frame: Frame, constraints: Sequence[Constraint]) -> tuple[int, ...]:
    """Numbers of the fewest constraints that cannot be met together; of all of them nothing is feasible."""
    left_out: list[frozenset[int]] = []
    while True:
        wanted = _hitting(left_out, len(constraints))
        met = _grown(frame, constraints, wanted)
        if met is None or len(met) == len(constraints):  # the latter by rounding alone
            return tuple(sorted(wanted)) if met is None else tuple(range(len(constraints)))
        left_out.append(frozenset(range(len(constraints))) - met)


def irreducible(frame: Frame, constraints: Sequence[Constraint]) -> tuple[int, ...]:
    """Numbers of constraints that cannot be met together, and could be without any one of them; of all of them nothing
    is feasible. One solution a constraint."""
    kept = list(range(len(constraints)))
    for index in range(len(constraints)):
        others = [other for other in kept if other != index]
        if feasible(assemble(frame, [constraints[other] for other in others])) is None:
            kept = others
    return tuple(kept)


def _grown(frame: Frame, constraints: Sequence[Constraint], wanted: frozenset[int]) -> frozenset[int] | None:
    """As many constraints as can be met beside the wanted ones, found one by one; None: not even those can."""
    choices = feasible(assemble(frame, [constraints[index] for index in sorted(wanted)]))
    if choices is None:
        return None
    met = set(wanted)
    for index in range(len(constraints)):
        if index in met:
            continue
        if assemble(frame, [constraints[index]]).holds(choices):
            met.add(index)
            continue
        tried = feasible(assemble(frame, [constraints[other] for other in sorted({*met, index})]))
        if tried is not None:
            met.add(index)
            choices = tried
    return frozenset(met)


def _hitting(sets: Sequence[frozenset[int]], n: int) -> frozenset[int]:
    """The fewest of n members of which each set has one."""
    if not sets:
        return frozenset()
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = np.array([[index in each for index in range(n)] for each in sets], np.float64)
    once_each = LinearConstraint(rows, 1, np.inf)
    found = milp(np.ones(n), integrality=np.ones(n, dtype=np.int64), bounds=Bounds(0, 1), constraints=once_each)
    return frozenset(int(index) for index in np.flatnonzero(np.asarray(found.x) > 0.5))


def _nearest(frame: Frame, constraints: Sequence[Constraint], members: Sequence[int], index: int) -> Conflict:
    constraint = constraints[index]
    nearest, alone = None, True
    for alone in (True, False):
        others = range(len(constraints)) if alone else members
        rest = [constraints[other] for other in others if other != index]
        nearest = _value(frame, rest, constraint)
        if nearest is not None:
            break
    return Conflict(constraint.where, constraint.words, nearest, constraint.unit, constraint.upper, alone)


def _value(frame: Frame, rest: Sequence[Constraint], constraint: Constraint) -> float | None:
    """The nearest feasible value of a constraint beside others; None: there is none."""
    if constraint.row is None:  # each looser mask allows what the one before it does

        def met(looser: tuple[float, NDArray[np.bool_]]) -> bool:
            return feasible(assemble(frame, [*rest, replace(constraint, mask=looser[1])])) is not None

        first = bisect.bisect_left(constraint.looser, True, key=met)
        return constraint.looser[first][0] if first < len(constraint.looser) else None
    problem = assemble(frame, rest)
    if constraint.ratio:
        return _ratio(problem, constraint)
    row = np.array(constraint.row)
    found = best(with_objective(problem, -row))
    if not found or constraint.value is None:
        return None
    return constraint.value(float(row[list(found[0].choices)].sum()))


def _ratio(problem: Problem, constraint: Constraint) -> float | None:
    """The largest ratio of all architectures where it is to be at least something, the smallest where at most.

    Dinkelbach 1967: maximise blocks - p . family; its solution has a better ratio than p, or p is the best one.
    """
    family = np.array(constraint.family, np.float64)
    blocks = np.array([code != 0 for code in problem.codes], np.float64)
    problem = problem.with_row(-family, -1.0, 0.5)
    choices = feasible(problem)
    if choices is None:
        return None
    ratio = _of(choices, blocks, family)
    while True:
        found = best(with_objective(problem, constraint.ratio * (blocks - ratio * family)))
        better = _of(found[0].choices, blocks, family)
        if constraint.ratio * (better - ratio) <= 1e-12 * ratio:
            return ratio
        ratio = better


def _of(choices: Sequence[int], blocks: Floats, family: Floats) -> float:
    chosen = list(choices)
    return float(blocks[chosen].sum() / family[chosen].sum())


def _in_words(found: Sequence[Conflict]) -> str:
    parts = [each.words + _would_do(each) for each in found]
    if len(parts) == 1:
        return f"no architecture has {parts[0]}"
    return f"no architecture has all of: {'; '.join(parts)}; without any one of them the others can be met"


def _would_do(found: Conflict) -> str:
    if found.nearest is None:
        return ""
    value = _rounded(found.nearest, found.upper)
    if found.unit == "slot":  # of a cut: which one, not how many; people count from 1
        value = f"slot {found.nearest + 1:.0f}"
    elif found.unit:
        value += f" {found.unit[:-1] if found.unit == 'slots' and found.nearest == 1 else found.unit}"
    besides = "" if found.alone else ", were it not for other constraints"
    return f" ({value} can be met{besides})"


def _rounded(value: float, upper: bool) -> str:
    """A value for people, rounded to the side on which it can still be met."""
    if value == round(value):
        return told(value)
    digits = 0 if abs(value) >= 1e4 else 3 - math.floor(math.log10(abs(value)))
    away = math.ceil if upper else math.floor
    return told(away(value * 10**digits) / 10**digits)
