"""From a search's last record to an architecture: the best one, exactly, and honestly where the search could not tell.

By alpha, a slot is undecided where the gap between its two largest log-probabilities is within the gap that alpha
reaches by chance. All candidates within that gap of the top then count as tied: they score as the top does, the
cheapest of them is taken, and the slot is marked. Architectures are ordered by the sum of their scores, then by cost.
Every seed is derived on its own: averaged probabilities of equivalent solutions name none of them.

Behind a parsimony pass its path is the architecture; a slot is undecided where another candidate that was tried there
does as well within one standard error. Where the path is over a bound, the scores are minus the nats that each
candidate was measured to cost; one that was never tried costs nothing where alpha could not tell it from the path's,
and else as many nats as its log-probability lies behind. So the next best networks are first those that ties allow.

L slots, K candidates. Neither torch here, nor scipy before a budget binds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas import budgets, constrain
from nas.architecture import Architecture
from nas.budgets import BoundedCost
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.cost import LatencyTable
from nas.errors import Infeasible, InvalidInput, SearchFailed
from nas.exact.constraint import Frame, assemble
from nas.exact.solve import best
from nas.steps import StepRecord

Objective = Literal["probability", "nats"]

_SMALLEST = 1e-45  # a float32 softmax can underflow to 0; its logarithm must stay finite


def leaders(
    probabilities: ArrayLike,
    null_gaps: ArrayLike,
    slot_costs: ArrayLike,
    allowed: Sequence[Sequence[bool]] | None = None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The most probable candidate of each slot; the cheapest of the tied ones where a slot is undecided.

    Args:
        probabilities: softmax(alpha), (L, K).
        null_gaps: the gap in log-probability that each slot's two largest reach by chance, (L,) nats.
        slot_costs: what each candidate adds, (K,), in any unit; equal costs go to the candidate listed first.
        allowed: which candidate may stand in which slot, (L, K); None: each.

    Returns:
        The candidate's index per slot, (L,), and the numbers of the undecided slots.

    Raises:
        InvalidInput: the shapes do not fit each other.
        SearchFailed: a probability is not a number.
    """
    scores, tied, costs, _ = _scores(probabilities, null_gaps, slot_costs, allowed)
    return _cheapest_leaders(scores, costs), _undecided(tied)


def argmax_architecture(
    probabilities: ArrayLike, null_gaps: ArrayLike, space: SearchSpace, *, slot_costs: ArrayLike
) -> Architecture:
    """The architecture of `leaders`, whatever it costs.

    Raises:
        InvalidInput: the shapes do not fit the space.
        SearchFailed: a probability is not a number, or every slot is undecided.
    """
    return derive(probabilities, null_gaps, space, slot_costs=slot_costs)


def derive(
    probabilities: ArrayLike,
    null_gaps: ArrayLike,
    space: SearchSpace,
    *,
    slot_costs: ArrayLike,
    bounds: Sequence[BoundedCost] = (),
) -> Architecture:
    """The most probable architecture within all bounds, and of equally probable ones the cheapest.

    A slot whose leading candidates tie is marked undecided also where the budget leaves room for none of them.

    Args:
        probabilities: softmax(alpha), (L, K).
        null_gaps: the gap in log-probability that each slot's two largest reach by chance, (L,) nats.
        space: what the indices mean, and what may stand where.
        slot_costs: what each candidate adds, (K,) milliseconds, for ties.
        bounds: all of which hold.

    Raises:
        InvalidInput: the shapes do not fit the space.
        SearchFailed: a probability is not a number, or every slot that may differ is undecided.
        Infeasible: no architecture is within the bounds.
    """
    found = _by_alpha(probabilities, null_gaps, space, slot_costs)
    costs = np.asarray(slot_costs, np.float64)
    choices = _within(_cheapest_leaders(found.scores, costs), constrain.frame(space, found.scores, costs), bounds)
    return Architecture(tuple(space.labels[choice] for choice in choices), space.candidates, found.undecided)


def _by_alpha(probabilities: ArrayLike, null_gaps: ArrayLike, space: SearchSpace, slot_costs: ArrayLike) -> Ranked:
    """Raises: as `derive`, but Infeasible."""
    shape = (space.n_slots, len(space.candidates))
    if np.shape(probabilities) != shape:
        raise InvalidInput(
            f"probabilities have shape {np.shape(probabilities)}; a space of {shape[0]} slots and {shape[1]} "
            f"candidates needs {shape}"
        )
    scores, tied, _, usable = _scores(probabilities, null_gaps, slot_costs, space.allowed)
    undecided = _undecided(tied)
    free = int((usable.sum(axis=1) > 1).sum())
    if free and len(undecided) == free:
        # A candidate that fell behind decides nothing: among five, chance alone often leaves one behind.
        logs = np.where(usable, np.log(np.maximum(np.asarray(probabilities, np.float64), _SMALLEST)), -np.inf)
        logs = np.sort(logs[usable.sum(axis=1) > 1], axis=1)
        gap = float((logs[:, -1] - logs[:, -2]).max())
        raise SearchFailed(
            f"no slot's alpha moved beyond chance (largest gap {gap:.3g}, by chance {np.max(null_gaps):.3g} nats); "
            "search longer, with more method.n_steps"
        )
    return Ranked(scores, undecided, None, np.zeros(shape, np.bool_))


@dataclass(frozen=True)
class Ranked:
    """How a search's last record ranks the candidates of each slot.

    Args:
        scores: (L, K) nats, the larger the better; ties are equal.
        undecided: slots in which the search could not tell the best candidates apart.
        path: the architecture without any constraint; None: the cheapest of the best.
        guessed: (L, K) whether a score in nats was not measured but read from alpha; all False of log-probabilities.
    """

    scores: NDArray[np.float64]
    undecided: tuple[int, ...]
    path: tuple[int, ...] | None
    guessed: NDArray[np.bool_]


def ranked(space: SearchSpace, slot_costs: ArrayLike, record: StepRecord, objective: Objective) -> Ranked:
    """By log-probability, or by the measured nats of the parsimony pass.

    Args:
        space: what the indices mean, and what may stand where.
        slot_costs: what each candidate adds, (K,).
        record: the last one of a search.
        objective: what to rank by.

    Raises:
        InvalidInput: nats are asked for and no pass was made, or the shapes do not fit the space.
        SearchFailed: a probability is not a number, or alpha decided nothing and it is what is asked for.
    """
    assert record.probabilities is not None
    assert record.null_gaps is not None
    if objective == "probability":
        return _by_alpha(record.probabilities, record.null_gaps, space, slot_costs)
    if record.path is None:
        raise InvalidInput(
            f"no parsimony pass has measured nats by step {record.step}; rank by probability, or search with "
            "method.prune_steps"
        )
    _, tied, _, usable = _scores(record.probabilities, record.null_gaps, slot_costs, space.allowed)
    nats, ties = _measured(record, np.log(np.maximum(np.asarray(record.probabilities, np.float64), _SMALLEST)))
    measured = np.isfinite(ties)
    compared = (measured & usable).sum(axis=1) > 1
    as_good = np.where(compared[:, None], ties <= 0, tied) & usable
    with_path = tied & tied[np.arange(len(tied)), list(record.path)][:, None]
    scores = -np.where(with_path & ~measured, 0.0, nats)
    return Ranked(scores, _undecided(as_good), tuple(record.path), ~measured)


def derive_record(
    request: SearchRequest, table: LatencyTable, record: StepRecord, bounds: Sequence[BoundedCost]
) -> Architecture:
    """The architecture of a search's last record, within all bounds.

    Args:
        request: of the search.
        table: for ties.
        record: with a path behind a parsimony pass; without one, alpha decides.
        bounds: as `nas.budgets.bounds` has them, or corrected.

    Raises:
        SearchFailed: a probability is not a number, or alpha decided nothing and no pass did.
        Infeasible: no architecture is within the bounds.
    """
    assert record.probabilities is not None
    assert record.null_gaps is not None
    space, slot_costs = request.space, table.slot_ms(request.space)
    if record.path is None:
        return derive(record.probabilities, record.null_gaps, space, slot_costs=slot_costs, bounds=bounds)
    found = ranked(space, slot_costs, record, "nats")
    choices = _within(tuple(record.path), constrain.frame(space, found.scores, slot_costs), bounds)
    return Architecture(tuple(space.labels[choice] for choice in choices), space.candidates, found.undecided)


def leading(request: SearchRequest, table: LatencyTable, record: StepRecord) -> Architecture:
    """What alpha alone would take, whatever it costs and whatever a parsimony pass found. Raises: as `derive_record`.

    Where there was a pass, alpha need not have decided anything.
    """
    assert record.probabilities is not None
    assert record.null_gaps is not None
    space, slot_costs = request.space, table.slot_ms(request.space)
    if record.path is None:
        return argmax_architecture(record.probabilities, record.null_gaps, space, slot_costs=slot_costs)
    choices, undecided = leaders(record.probabilities, record.null_gaps, slot_costs, space.allowed)
    return Architecture(tuple(space.labels[choice] for choice in choices), space.candidates, undecided)


def check_budget(request: SearchRequest, bounds: Sequence[BoundedCost]) -> None:
    """Whether any architecture can meet a budget, before any training: the costs alone decide it.

    Raises:
        Infeasible: none does; with the bound that it fails at, its value and the smallest possible.
    """
    allowed = np.asarray(request.space.allowed)
    budgets.check_each(bounds, request.space.allowed)
    if len(bounds) > 1:  # each can be met; can all of them at once?
        costs = np.asarray(bounds[0].slot_costs)
        dearest = tuple(int(row.argmax()) for row in np.where(allowed, costs, -np.inf))
        _within(dearest, constrain.frame(request.space, np.tile(-costs, (len(allowed), 1)), costs), bounds)


def _measured(record: StepRecord, logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nats that each candidate costs in the path (L, K), and those beyond one standard error; inf: never tried."""
    assert record.path is not None
    none = [[None] * logs.shape[1]] * logs.shape[0]
    nats = np.array(record.effect_nats or none, np.float64)
    errors = np.array(record.effect_se or none, np.float64)
    own = np.arange(len(record.path)), np.asarray(record.path)
    nats[own] = errors[own] = 0.0
    beyond = np.where(np.isnan(nats), np.inf, nats - errors)
    behind = np.maximum(0.0, logs[own][:, None] - logs)
    # What was dropped as a tie may have been measured to gain a little: it counts as what stands there now.
    return np.where(np.isnan(nats), behind, np.maximum(0.0, nats)), beyond


def _scores(
    probabilities: ArrayLike, null_gaps: ArrayLike, slot_costs: ArrayLike, allowed: Sequence[Sequence[bool]] | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.bool_]]:
    """Log-probabilities with the tied ones raised to the top (L, K), which are tied (L, K), the costs (K,), and which
    candidates may be taken (L, K)."""
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
            raise SearchFailed(f"the probabilities of slot {slot + 1} are not numbers; the search has diverged")
    usable = np.ones(values.shape, np.bool_) if allowed is None else np.asarray(allowed, np.bool_)
    logs = np.where(usable, np.log(np.maximum(values, _SMALLEST)), -np.inf)
    top = logs.max(axis=1, keepdims=True)
    tied = usable & (top - logs <= gaps[:, None])
    return np.where(tied, top, logs), tied, costs, usable


def _cheapest_leaders(scores: NDArray[np.float64], costs: NDArray[np.float64]) -> tuple[int, ...]:
    cheapest_first = np.lexsort((np.broadcast_to(costs, scores.shape), -scores), axis=1)
    return tuple(int(first) for first in cheapest_first[:, 0])


def _undecided(tied: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(slot) for slot in np.flatnonzero(tied.sum(axis=1) > 1))


def _within(choices: tuple[int, ...], held: Frame, bounds: Sequence[BoundedCost]) -> tuple[int, ...]:
    """The choices where they are within all bounds; else of those that are the largest sum of scores, then the smallest
    sum of costs."""
    if all(bound.holds(choices) for bound in bounds):
        return choices
    budgets.check_each(bounds, np.isfinite(held.scores).tolist())
    found = best(assemble(held, [constrain.of_bound(bound) for bound in bounds]))
    if not found:
        each = ", ".join(f"{bound.name} {budgets.told(bound.target)} {bound.unit}" for bound in bounds)
        raise Infeasible(f"no architecture meets all bounds of the budget at once ({each}); each alone can be met")
    return found[0].choices
