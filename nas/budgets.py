"""The bounds of a budget as numbers: what each candidate costs in each of them, and what they allow. No torch here.

Every cost is additive: offset + the sum of what the slots' candidates cost. Latency is the table's prediction; what is
counted follows the formulas of nas.specs, of one sequence at the first serve mode's lengths. L slots, K candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nas import catalog
from nas.architecture import interleaved
from nas.config import Bound, Candidate, LatencyBudget, SearchRequest, SearchSpace
from nas.cost import LatencyTable, norm_parameters
from nas.errors import Infeasible, InvalidInput
from nas.specs.probe import blame

ROUNDING = 1e-9  # of a target: sums in another order differ by less


@dataclass(frozen=True)
class BoundedCost:
    """One bound.

    Args:
        name: latency, parameters, flops or cache_bytes, as in the request's budget.
        unit: what it is told in.
        slot_costs: what each candidate adds in any slot, (K,).
        offset: what everything else costs; 0 of what is counted, which is of the slots' blocks alone.
        target: what offset and slots together may cost.
        parent: what the interleaved parent costs; None where the space cannot build it.
    """

    name: str
    unit: str
    slot_costs: tuple[float, ...]
    offset: float
    target: float
    parent: float | None

    def of(self, choices: Sequence[int]) -> float:
        """Cost of one candidate per slot, by their indices (L,)."""
        return self.offset + sum(self.slot_costs[choice] for choice in choices)

    def expected(self, probabilities: Sequence[Sequence[float]]) -> float:
        """Mean cost of paths that are drawn slot by slot from (L, K) probabilities."""
        pairs = (zip(row, self.slot_costs, strict=True) for row in probabilities)
        return self.offset + sum(share * cost for row in pairs for share, cost in row)

    def holds(self, choices: Sequence[int]) -> bool:
        """Whether these candidates are within the target, up to rounding."""
        return self.of(choices) <= self.target * (1 + ROUNDING)


def bounds(request: SearchRequest, table: LatencyTable | None) -> list[BoundedCost]:
    """All bounds of a request's budget; none without a budget.

    Args:
        request: with its budget.
        table: for latency; None: there is none yet.

    Raises:
        InvalidInput: the table lacks a candidate or is not there, a block does not tell what is bounded, or a ratio is
            of nothing.
    """
    budget, space = request.budget, request.space
    found = []
    if budget.latency is not None:
        if table is None:
            raise InvalidInput("budget.latency needs a latency table, and there is none; bound what is counted instead")
        found.append(_bounded("latency", "ms", budget.latency, table.slot_ms(space), table.offset_ms, space))
    for name, unit, bound in (
        ("parameters", "parameters", budget.parameters),
        ("flops", "FLOPs", budget.flops),
        ("cache_bytes", "bytes", budget.cache_bytes),
    ):
        if bound is not None:
            found.append(_bounded(name, unit, bound, counted(name, request), 0.0, space))
    return found


def counted(name: str, request: SearchRequest) -> list[float]:
    """What each candidate's slot costs by formula, (K,): parameters with the norm, flops or cache_bytes.

    FLOPs are of the forward pass of one sequence, bytes are what decoding keeps of one: of the first serve mode's query
    with its memory, whatever the mode.

    Raises:
        InvalidInput: a block does not tell it, or fails to.
    """
    space, serve = request.space, request.task.serve[0]
    shape, tokens, memory = space.shape(), serve.query_length, serve.memory_length

    def parameters(candidate: Candidate) -> int:
        spec = catalog.block(candidate.block)
        return spec.parameters(shape, candidate.built_options()) + norm_parameters(spec.family, space)

    def flops(candidate: Candidate) -> int:
        return catalog.block(candidate.block).flops(shape, candidate.built_options(), tokens, memory)

    def cache_bytes(candidate: Candidate) -> int:
        formula = catalog.block(candidate.block).cache_bytes
        if formula is None:
            raise InvalidInput(
                f"block {candidate.block!r} does not tell its cache_bytes, so budget.cache_bytes cannot bound it; "
                "take the bound or the candidate out"
            )
        return formula(shape, candidate.built_options(), tokens + memory, 1)

    formulas: dict[str, Callable[[Candidate], int]] = {
        "parameters": parameters,
        "flops": flops,
        "cache_bytes": cache_bytes,
    }
    costs = []
    for candidate in space.candidates:
        with blame(candidate.block, f"count its {name}"):
            costs.append(float(formulas[name](candidate)))
    return costs


def check_each(bounded: Sequence[BoundedCost], allowed: Sequence[Sequence[bool]]) -> None:
    """Whether each bound can be met on its own, before any training.

    Args:
        bounded: of a request.
        allowed: which candidate may stand in which slot, (L, K).

    Raises:
        Infeasible: even the smallest architecture is over one of them.
    """
    for each in bounded:
        smallest = each.offset + sum(
            min(cost for cost, may in zip(each.slot_costs, row, strict=True) if may) for row in allowed
        )
        if smallest > each.target * (1 + ROUNDING):
            raise Infeasible(
                f"budget.{each.name} allows {told(each.target)} {each.unit}; "
                f"the smallest architecture has {told(smallest)} {each.unit}"
            )


def told(value: float) -> str:
    """A cost for people: four digits, or all of a whole number."""
    return f"{value:,.0f}" if value >= 1e4 else f"{value:.4g}"


def _bounded(
    name: str, unit: str, bound: LatencyBudget | Bound, slot_costs: list[float], offset: float, space: SearchSpace
) -> BoundedCost:
    parent = None
    if {"attention", "ffn"} <= {candidate.family for candidate in space.candidates}:
        costs = dict(zip(space.labels, slot_costs, strict=True))
        parent = offset + sum(costs[label] for label in interleaved(space).labels)
    absolute = bound.ms if isinstance(bound, LatencyBudget) else bound.at_most
    if absolute is None:
        assert parent is not None  # a request with a ratio and without a parent is refused
        assert bound.ratio_to_parent is not None
        if parent <= 0:
            raise InvalidInput(
                f"budget.{name}.ratio_to_parent is {bound.ratio_to_parent:g}, but the interleaved parent costs "
                f"{told(parent)} {unit}, so no ratio to it says anything; give the bound in {unit}"
                + (", or another latency table" if isinstance(bound, LatencyBudget) else "")
            )
        absolute = bound.ratio_to_parent * parent
    return BoundedCost(name, unit, tuple(slot_costs), offset, absolute, parent)
