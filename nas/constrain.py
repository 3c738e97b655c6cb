"""The constraints of a config as the solver takes them, held against a space and its costs. No torch here.

L slots, K candidates.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nas.budgets import ROUNDING, BoundedCost, bounds, told
from nas.config.budget import Bound, LatencyBudget
from nas.config.constraints import Constraints, Count, Cut, InSlots, Ratio
from nas.config.request import SearchRequest, read_request
from nas.config.space import SearchSpace
from nas.cost import LatencyTable
from nas.errors import InvalidInput
from nas.exact.constraint import Constraint, Frame
from nas.exact.problem import SKIPPED, Floats
from nas.rules import slots_text

_NO_MIXERS = ("ffn", "identity")
_WHOLE = 1e-6  # slack of sums of whole numbers
_SHARE = 1e-6  # of a slot: two thirds of 12 slots are 8, though 0.6666666666 x 12 is less


def frame(space: SearchSpace, scores: Floats, costs: Sequence[float] | Floats) -> Frame:
    """What constraints on a space are held against.

    Args:
        space: its layout says what may stand where.
        scores: of each candidate in each slot, (L, K).
        costs: second criterion, (K,).
    """
    codes: list[int] = []
    known: dict[str, int] = {}
    for candidate in space.candidates:
        if candidate.family == "identity":
            codes.append(SKIPPED)
            continue
        block = json.dumps([candidate.block, candidate.options], sort_keys=True)
        codes.append(known.setdefault(block, len(known) + 1))
    mixers = tuple(candidate.family not in _NO_MIXERS for candidate in space.candidates)
    allowed = np.asarray(space.allowed, np.bool_)
    return Frame(np.where(allowed, scores, -np.inf), np.asarray(costs, np.float64), tuple(codes), mixers)


def read(constraints: Constraints, request: SearchRequest, table: LatencyTable | None) -> list[Constraint]:
    """Every constraint of a config, a bound on each side apart.

    Args:
        constraints: to hold.
        request: of the search; its own budget is not looked at.
        table: for latency; None: there is none yet.

    Raises:
        InvalidInput: a label, family or slot that the space does not have, or a bound that it cannot have;
            one on latency without a table.
    """
    if constraints.budget.latency is not None and table is None:
        raise InvalidInput("budget.latency needs a latency table, and there is none; bound what is counted instead")
    space = request.space
    found = [_bounded(each, constraints) for each in bounds(_with_budget(request, constraints), table)]
    for number, count in enumerate(constraints.counts):
        found += _count(f"/counts/{number}", count, space)
    for number, ratio in enumerate(constraints.ratios):
        found += _ratio(f"/ratios/{number}", ratio, space)
    for number, placed in enumerate(constraints.forbidden):
        found.append(_placed(f"/forbidden/{number}", placed, space, forced=False))
    for number, placed in enumerate(constraints.forced):
        found.append(_placed(f"/forced/{number}", placed, space, forced=True))
    for number, cut in enumerate(constraints.cuts):
        found.append(_cut(f"/cuts/{number}", cut, space))
    if constraints.mixers_apart:
        found.append(Constraint("/mixers_apart", "no mixer directly behind a mixer", apart=True))
    return found


def of_bound(bound: BoundedCost) -> Constraint:
    """A bound on a cost, in the unit of the cost."""
    return Constraint(
        where=f"/budget/{bound.name}",
        words=f"{bound.name} at most {told(bound.target)} {bound.unit}",
        row=bound.slot_costs,
        limit=bound.target - bound.offset,
        slack=ROUNDING * abs(bound.target),
        value=lambda total: bound.offset + total,
        unit=bound.unit,
    )


def _with_budget(request: SearchRequest, constraints: Constraints) -> SearchRequest:
    if not constraints.budget.model_fields_set:
        return request.model_copy(update={"budget": constraints.budget})
    body = request.model_dump(mode="json")
    return read_request({**body, "budget": constraints.budget.model_dump(mode="json")})  # refuses what it must


def _bounded(bound: BoundedCost, constraints: Constraints) -> Constraint:
    asked: LatencyBudget | Bound = getattr(constraints.budget, bound.name)
    found = of_bound(bound)
    if asked.ratio_to_parent is None:
        return found
    parent = bound.parent
    assert parent is not None  # or there is no ratio to it
    words = f"{bound.name} at most {asked.ratio_to_parent:g} of the interleaved parent's {told(parent)} {bound.unit}"
    return Constraint(
        found.where, words, found.row, found.limit, found.slack,
        value=lambda total: (bound.offset + total) / parent, unit="of the parent's",
    )  # fmt: skip


def _count(where: str, count: Count, space: SearchSpace) -> list[Constraint]:
    named = _named(where, count.family, count.label, space)
    subject = count.family or count.label
    found = []
    for bound, sign, name in ((count.at_least, -1, "at_least"), (count.at_most, 1, "at_most")):
        if bound is not None:
            words = f"{name.replace('_', ' ')} {bound} {'slot' if bound == 1 else 'slots'} of {subject}"
            row = tuple(float(sign * each) for each in named)
            found.append(
                Constraint(
                    f"{where}/{name}", words, row, sign * bound, _WHOLE, _times(sign), unit="slots", upper=sign > 0
                )
            )
    return found


def _times(sign: int) -> Callable[[float], float]:
    return lambda total: sign * total + 0.0  # of no slot -1 makes -0.0


def _ratio(where: str, ratio: Ratio, space: SearchSpace) -> list[Constraint]:
    named = _named(where, ratio.family, None, space)
    blocks = [candidate.family != "identity" for candidate in space.candidates]
    found = []
    for p, sign, name in ((ratio.at_least, 1, "at_least"), (ratio.at_most, -1, "at_most")):
        if p is not None:
            words = f"all blocks : {ratio.family} blocks {name.replace('_', ' ')} {p:g} : 1"
            row = tuple(sign * (p * of_it - block) for of_it, block in zip(named, blocks, strict=True))
            found.append(
                Constraint(
                    f"{where}/{name}", words, row, 0.0, ROUNDING, ratio=sign, family=tuple(named), unit=": 1",
                    upper=sign < 0,
                )
            )  # fmt: skip
    return found


def _placed(where: str, placed: InSlots, space: SearchSpace, *, forced: bool) -> Constraint:
    last = space.n_slots - 1 if placed.last is None else placed.last
    for slot in (placed.first, last):
        _check_slot(where, slot, space.n_slots - 1, space)
    for label in placed.labels:
        if label not in space.labels:
            raise InvalidInput(f"{where[1:]} names label {label!r}; the space has {', '.join(space.labels)}")
    named = np.array([label in placed.labels for label in space.labels])
    mask = np.ones((space.n_slots, len(space.labels)), np.bool_)
    mask[placed.first : last + 1] = named if forced else ~named
    slots = slots_text(range(placed.first, last + 1))
    words = f"{' or '.join(placed.labels)} in {slots}" if forced else f"no {' or '.join(placed.labels)} in {slots}"
    return Constraint(where, words, mask=mask)


def _cut(where: str, cut: Cut, space: SearchSpace) -> Constraint:
    named = np.array(_named(where, cut.family, cut.label, space))
    subject, n_slots = cut.family or cut.label, space.n_slots
    before = cut.from_slot is None and cut.from_share is None
    slot = cut.before_slot if before else cut.from_slot
    share = cut.before_share if before else cut.from_share
    if slot is None:
        assert share is not None  # or the config is refused
        slot = math.floor(share * n_slots + _SHARE)
    else:
        _check_slot(where, slot, n_slots, space)

    def mask(at: int) -> NDArray[np.bool_]:
        numbers = np.arange(n_slots)[:, None]
        return ~named | (numbers < at if before else numbers >= at)

    looser = range(slot + 1, n_slots + 1) if before else range(slot - 1, -1, -1)
    words = f"{subject} only {'before' if before else 'from'} slot {slot + 1}"
    if share is not None:
        words += f", {share:.4g} of the depth"
    return Constraint(
        where, words, mask=mask(slot), looser=tuple((float(at), mask(at)) for at in looser), unit="slot",
        upper=before,
    )  # fmt: skip


def _named(where: str, family: str | None, label: str | None, space: SearchSpace) -> list[bool]:
    """Which candidates are of the family, or have the label, (K,)."""
    if label is not None:
        if label not in space.labels:
            raise InvalidInput(f"{where[1:]} names label {label!r}; the space has {', '.join(space.labels)}")
        return [each == label for each in space.labels]
    families = [candidate.family for candidate in space.candidates]
    if family not in families:
        known = ", ".join(dict.fromkeys(families))
        raise InvalidInput(f"{where[1:]} names family {family!r}; the space has {known}")
    return [each == family for each in families]


def _check_slot(where: str, slot: int, largest: int, space: SearchSpace) -> None:
    if slot > largest:
        raise InvalidInput(
            f"{where[1:]} names slot {slot + 1}, counted from 1; of {space.n_slots} slots, at most {largest + 1} is "
            "possible"
        )
