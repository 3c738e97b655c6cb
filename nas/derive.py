"""From probabilities to an architecture: the best one, exactly, and honestly where the search could not tell.

A slot is undecided where the gap between its two largest log-probabilities is within the gap that alpha reaches by
chance. All candidates within that gap of the top then count as tied: they score as the top does, the cheapest of them
is taken, and the slot is marked. Architectures are ordered by the sum of their log-probabilities, then by cost.
Every seed is derived on its own: averaged probabilities of equivalent solutions name none of them.

L slots, K candidates. Neither torch here, nor scipy before a budget binds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas.architecture import Architecture
from nas.config import SearchRequest, SearchSpace
from nas.cost import LatencyTable
from nas.errors import Infeasible, InvalidInput, SearchFailed
from nas.steps import StepRecord

_SMALLEST = 1e-45  # a float32 softmax can underflow to 0; its logarithm must stay finite
_EQUAL = 1e-9  # nats, or a share of the budget: sums in another order differ by less
_FINE = 1e3  # HiGHS stops at absolute gaps and row errors of 1e-6; rows and objectives are scaled up to reach _EQUAL


def leaders(
    probabilities: ArrayLike, null_gaps: ArrayLike, slot_costs: ArrayLike
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The most probable candidate of each slot; the cheapest of the tied ones where a slot is undecided.

    Args:
        probabilities: softmax(alpha), (L, K).
        null_gaps: the gap in log-probability that each slot's two largest reach by chance, (L,) nats.
        slot_costs: what each candidate adds, (K,), in any unit; equal costs go to the candidate listed first.

    Returns:
        The candidate's index per slot, (L,), and the numbers of the undecided slots.

    Raises:
        InvalidInput: the shapes do not fit each other.
        SearchFailed: a probability is not a number.
    """
    scores, tied, costs = _scores(probabilities, null_gaps, slot_costs)
    cheapest_first = np.lexsort((np.broadcast_to(costs, scores.shape), -scores), axis=1)
    return tuple(int(first) for first in cheapest_first[:, 0]), _undecided(tied)


def argmax_architecture(
    probabilities: ArrayLike, null_gaps: ArrayLike, space: SearchSpace, *, slot_costs: ArrayLike
) -> Architecture:
    """The architecture of `leaders`, whatever it costs.

    Raises:
        InvalidInput: the shapes do not fit the space.
        SearchFailed: a probability is not a number, or every slot is undecided.
    """
    return derive(probabilities, null_gaps, space, slot_costs=slot_costs, offset=0.0, budget_ms=None)


def derive(
    probabilities: ArrayLike,
    null_gaps: ArrayLike,
    space: SearchSpace,
    *,
    slot_costs: ArrayLike,
    offset: float,
    budget_ms: float | None,
) -> Architecture:
    """The most probable architecture within a budget, and of equally probable ones the cheapest.

    A slot whose leading candidates tie is marked undecided also where the budget leaves room for none of them.

    Args:
        probabilities: softmax(alpha), (L, K).
        null_gaps: the gap in log-probability that each slot's two largest reach by chance, (L,) nats.
        space: what the indices mean.
        slot_costs: what each candidate adds, (K,) milliseconds.
        offset: what everything else takes, milliseconds.
        budget_ms: bound on offset + the sum over slots; None for no bound.

    Raises:
        InvalidInput: the shapes do not fit the space.
        SearchFailed: a probability is not a number, or every slot is undecided.
        Infeasible: even the fastest architecture is over the budget.
    """
    shape = (space.n_slots, len(space.candidates))
    if np.shape(probabilities) != shape:
        raise InvalidInput(
            f"probabilities have shape {np.shape(probabilities)}; a space of {shape[0]} slots and {shape[1]} "
            f"candidates needs {shape}"
        )
    scores, tied, costs = _scores(probabilities, null_gaps, slot_costs)
    if shape[1] > 1 and len(_undecided(tied)) == shape[0]:
        # A candidate that fell behind decides nothing: among five, chance alone often leaves one behind.
        logs = np.sort(np.log(np.maximum(np.asarray(probabilities, np.float64), _SMALLEST)), axis=1)
        gap = float((logs[:, -1] - logs[:, -2]).max())
        raise SearchFailed(
            f"no slot's alpha moved beyond chance (largest gap {gap:.3g}, by chance {np.max(null_gaps):.3g} nats); "
            "search longer, with more method.n_steps"
        )
    choices, undecided = leaders(probabilities, null_gaps, slot_costs)
    if budget_ms is not None:
        fastest = offset + shape[0] * float(costs.min())
        if fastest > budget_ms * (1 + _EQUAL):
            raise Infeasible(f"no architecture runs within {budget_ms:.4g} ms; the fastest takes {fastest:.4g} ms")
        if offset + costs[list(choices)].sum() > budget_ms * (1 + _EQUAL):
            choices = _best_within(scores, costs, budget_ms - offset)
    return Architecture(tuple(space.labels[choice] for choice in choices), space.candidates, undecided)


def _scores(
    probabilities: ArrayLike, null_gaps: ArrayLike, slot_costs: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Log-probabilities with the tied ones raised to the top (L, K), which are tied (L, K), and the costs (K,)."""
    values = np.asarray(probabilities, dtype=np.float64)
    gaps = np.asarray(null_gaps, dtype=np.float64)
    costs = np.asarray(slot_costs, dtype=np.float64)
    if values.ndim != 2 or gaps.shape != values.shape[:1] or costs.shape != values.shape[1:]:
        raise InvalidInput(
            f"probabilities {values.shape}, null gaps {gaps.shape} and slot costs {costs.shape} do not fit: "
            "they must be (L, K), (L,) and (K,)"
        )
    for slot in range(len(values)):
        if not np.isfinite(values[slot]).all():
            raise SearchFailed(f"the probabilities of slot {slot} are not numbers; the search has diverged")
    logs = np.log(np.maximum(values, _SMALLEST))
    top = logs.max(axis=1, keepdims=True)
    tied = top - logs <= gaps[:, None]
    return np.where(tied, top, logs), tied, costs


def _undecided(tied: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(slot) for slot in np.flatnonzero(tied.sum(axis=1) > 1))


def _best_within(scores: NDArray[np.float64], costs: NDArray[np.float64], budget: float) -> tuple[int, ...]:
    """One candidate per slot: the largest sum of scores within the budget, then the smallest sum of costs.

    Two integer programs over x[i, b] in {0, 1}: the second minimises cost with the first one's score as a bound.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    n_slots, n_candidates = scores.shape
    one_each = LinearConstraint(np.kron(np.eye(n_slots), np.ones(n_candidates)), 1, 1)
    score_row = _FINE * scores.ravel()
    excess = costs - costs.min()  # over the fastest architecture, in shares of the largest excess that has room
    room = max(0.0, budget - n_slots * float(costs.min()))  # the fastest may be over by _EQUAL
    usable = excess <= room + _EQUAL * abs(budget)
    unit = float(excess[usable].max()) or 1.0
    cost_row = _FINE * np.tile(np.where(usable, excess, 0.0), n_slots) / unit
    within = LinearConstraint(cost_row[None], -np.inf, _FINE * (room / unit + _EQUAL))
    choosable = Bounds(0, np.tile(usable.astype(np.float64), n_slots))

    def solve(objective: NDArray[np.float64], *constraints: LinearConstraint) -> NDArray[np.int64]:
        result = milp(
            objective,
            integrality=np.ones(objective.size, dtype=np.int64),
            bounds=choosable,
            constraints=[one_each, *constraints],
            options={"mip_rel_gap": 0.0},
        )
        assert result.x is not None, result.message  # the fastest architecture is within the budget
        choices: NDArray[np.int64] = np.reshape(result.x, scores.shape).argmax(axis=1)
        return choices

    best = solve(-score_row, within)
    reached = _FINE * (scores[np.arange(n_slots), best].sum() - _EQUAL)
    cheapest = solve(cost_row, within, LinearConstraint(score_row[None], reached, np.inf))
    return tuple(int(choice) for choice in cheapest)


def derive_by_table(
    request: SearchRequest, table: LatencyTable, record: StepRecord, budget_ms: float | None
) -> Architecture:
    """The most probable architecture that the table predicts within a bound. Raises: as `derive`."""
    assert record.probabilities is not None
    assert record.null_gaps is not None
    return derive(
        record.probabilities,
        record.null_gaps,
        request.space,
        slot_costs=table.slot_ms(request.space),
        offset=table.offset_ms,
        budget_ms=budget_ms,
    )


def check_budget(request: SearchRequest, table: LatencyTable, budget_ms: float | None) -> None:
    """Whether any architecture can meet a budget, before any training: the costs alone decide it.

    Raises:
        Infeasible: none does.
    """
    row = np.arange(len(request.space.candidates), 0, -1, dtype=float)  # distinct: no slot is undecided
    probabilities = np.tile(row / row.sum(), (request.space.n_slots, 1)).tolist()
    record = StepRecord(0, probabilities=probabilities, null_gaps=[0.0] * request.space.n_slots)
    derive_by_table(request, table, record, budget_ms)
