"""The budget as measured, not as predicted: derive, time, correct the bound, derive again.

An additive table predicts within some percent; a bound that is met on paper can be missed on the machine. So each
derived architecture is timed before it is retrained, and where it is over, the bound shrinks by what it was over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nas.architecture import Architecture, interleaved
from nas.config import SearchRequest
from nas.cost import LatencyTable
from nas.derive import derive_by_table
from nas.errors import Infeasible
from nas.measure import PairedLatency
from nas.pressure import target_ms
from nas.steps import StepRecord

_MOST_CORRECTIONS = 3

Timing = Callable[[Sequence[str], Sequence[str]], PairedLatency]


def derive_within(
    request: SearchRequest, table: LatencyTable, record: StepRecord, time_beside: Timing
) -> tuple[Architecture, list[str]]:
    """The most probable architecture within the request's budget, as measured up to the repeatability.

    Args:
        request: with its budget; without one nothing is timed.
        table: predicts.
        record: the last one of a search.
        time_beside: times the network of the first labels in turns with that of the second.

    Returns:
        The architecture, and a line for each one that was over the budget as measured; where the last of these
        lines names the architecture itself, no correction helped.

    Raises:
        Infeasible: no architecture is predicted to meet the budget.
        SearchFailed: nothing moved beyond chance.
    """
    budget = request.budget.latency
    architecture = derive_by_table(request, table, record, target_ms(request, table))
    if budget is None:
        return architecture, []
    missed: list[str] = []
    for n_corrected in range(_MOST_CORRECTIONS + 1):
        beside = architecture if budget.ratio_to_parent is None else interleaved(request.space)
        timed = time_beside(architecture.labels, beside.labels)
        allowed = budget.ms if budget.ms is not None else budget.ratio_to_parent
        assert allowed is not None
        taken = timed.ms["derived"] if budget.ms is not None else timed.ratio
        if taken <= allowed * (1 + timed.repeatability):
            return architecture, missed
        predicted = table.predict_ms(architecture, request.space)
        unit = "ms" if budget.ms is not None else "of the parent's latency"
        missed.append(
            f"{architecture}, predicted to run within the budget in {predicted:.4g} ms, takes {taken:.4g} {unit} as "
            f"measured; the budget is {allowed:.4g}, repeatability {timed.repeatability:.2g}"
        )
        if n_corrected == _MOST_CORRECTIONS:
            break  # another one would go untimed
        try:
            corrected = predicted * allowed / taken
            architecture = derive_by_table(request, table, record, corrected)
        except Infeasible:
            break
    return architecture, missed
