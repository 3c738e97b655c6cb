"""The problem as a flow through its states, for HiGHS: its relaxation gives multipliers, its integer program an answer.

Without integrality the flow is a mixture of whole architectures, so the multipliers of its rows are those of the best
Lagrangian bound. HiGHS works to absolute errors of 1e-7; what must be exact is computed from its answers elsewhere.
L slots, K candidates, R rows, S states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas.exact.clock import left_s
from nas.exact.problem import Floats, Problem

_FINE = 1e3  # HiGHS stops at absolute gaps and row errors of 1e-6; rows and objectives are scaled up to reach 1e-9
_LOOSER = 1e-6  # of a row's largest entry, beyond the limits of the relaxation, so that rounding forbids nothing
_AGES_S = 1e9  # without a limit
_OUT_OF_TIME, _INFEASIBLE = 1, 2  # statuses of scipy.optimize
EQUAL = 1e-9  # nats: sums in another order differ by less


@dataclass(frozen=True)
class Flow:
    """One variable for each way to leave a state in a slot.

    Args:
        slot: of each variable, (V,).
        candidate: that it takes, (V,).
        nodes: (V, 2) where it leaves and where it ends, as numbers of (slot, state); -1: behind the last slot.
        n_nodes: numbers in use, the first of which everything leaves.
    """

    slot: NDArray[np.int64]
    candidate: NDArray[np.int64]
    nodes: NDArray[np.int64]
    n_nodes: int

    @classmethod
    def of(cls, problem: Problem) -> Flow:
        """Of what may stand where."""
        n_slots, _ = problem.scores.shape
        n_states = len(problem.steps)
        takes = problem.usable[:, None, :] & (problem.steps >= 0)[None]  # (L, S, K)
        takes[0, 1:] = False
        slot, state, candidate = np.nonzero(takes)
        ends = (slot + 1) * n_states + problem.steps[state, candidate]
        ends[slot == n_slots - 1] = -1
        return cls(slot, candidate, np.stack([slot * n_states + state, ends], axis=1), n_slots * n_states)


def multipliers(problem: Problem) -> Floats | None:
    """Multipliers of the rows, (R,), not negative, of the tightest Lagrangian bound; None: no mixture is within."""
    from scipy.optimize import linprog

    flow = Flow.of(problem)
    rows, limits, units = _scaled(problem, flow)
    balance, starts = _balance(flow)
    found = linprog(
        -problem.scores[flow.slot, flow.candidate],
        A_ub=rows,
        b_ub=limits + _LOOSER,
        A_eq=balance,
        b_eq=starts,
        bounds=(0, None),
        method="highs",
        options={"time_limit": min(left_s(), _AGES_S)},
    )
    if found.status == _INFEASIBLE:
        return None
    if found.x is None:  # given up; poorer multipliers only take longer
        return np.zeros(len(rows))
    return np.maximum(0.0, -np.asarray(found.ineqlin.marginals, np.float64)) / units


def integer(problem: Problem) -> tuple[int, ...] | None:
    """The choices of the largest sum of scores, then the smallest sum of costs; None: no architecture is within.

    Two integer programs: the second minimises cost with the first one's score as a bound.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    flow = Flow.of(problem)
    rows, limits, _ = _scaled(problem, flow)
    balance, starts = _balance(flow)
    within = [LinearConstraint(balance, starts, starts)]
    if len(rows):
        within.append(LinearConstraint(_FINE * rows, -np.inf, _FINE * limits))
    scores = problem.scores[flow.slot, flow.candidate]
    costs = problem.costs[flow.candidate]
    costs = costs / (float(np.abs(costs).max(initial=0.0)) or 1.0)

    def solve(objective: Floats, *more: LinearConstraint) -> tuple[int, ...] | None:
        found = milp(
            objective,
            integrality=np.ones(objective.size, dtype=np.int64),
            bounds=Bounds(0, 1),
            constraints=[*within, *more],
            options={"mip_rel_gap": 0.0, "time_limit": min(left_s(), _AGES_S)},
        )
        if found.status == _OUT_OF_TIME:
            left_s()  # says so
        if found.x is None:
            assert found.status == _INFEASIBLE, found.message
            return None
        choices = np.zeros(len(problem.scores), np.int64)
        taken = np.asarray(found.x) > 0.5
        choices[flow.slot[taken]] = flow.candidate[taken]
        return tuple(int(choice) for choice in choices)

    best = solve(-_FINE * scores)
    if best is None:
        return None
    reached = _FINE * (problem.score(best) - EQUAL)
    return solve(_FINE * costs, LinearConstraint((_FINE * scores)[None], reached, np.inf)) or best


def _scaled(problem: Problem, flow: Flow) -> tuple[Floats, Floats, Floats]:
    """Rows over the variables (R, V) and limits (R,), in units (R,) of the row's largest entry."""
    rows = problem.rows[:, flow.candidate]
    units = np.abs(rows).max(axis=1, initial=0.0)
    units[units == 0] = 1.0
    return rows / units[:, None], (problem.limits + problem.slack) / units, units


def _balance(flow: Flow) -> tuple[Any, Floats]:
    """What leaves every node but has not come in, (N, V): one from the first, none from the others."""
    from scipy.sparse import csr_array

    variable = np.arange(len(flow.slot))
    inner = flow.nodes[:, 1] >= 0
    places = np.concatenate([flow.nodes[:, 0], flow.nodes[inner, 1]])
    columns = np.concatenate([variable, variable[inner]])
    signs = np.concatenate([np.ones(len(variable)), -np.ones(int(inner.sum()))])
    starts = np.zeros(flow.n_nodes)
    starts[0] = 1.0
    return csr_array((signs, (places, columns)), shape=(flow.n_nodes, len(variable))), starts
