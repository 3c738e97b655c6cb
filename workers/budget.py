"""The budget as measured, not as predicted: derive, time, correct the bound, derive again.

An additive table predicts within some percent; a bound that is met on paper can be missed on the machine. So each
derived architecture is timed before it is retrained, and where it is over, the bound shrinks by what it was over.
What is counted, as parameters are, is known exactly and needs no look. A table of another device than the trials run on
says what a bound holds for, and no timing here can confirm or correct that: what it predicts stands, and is said to be
a prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from nas.architecture import Architecture, interleaved
from nas.budgets import BoundedCost, bounds
from nas.config.budget import LatencyBudget
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.derive import derive_record
from nas.errors import Infeasible
from nas.k_best import k_best
from nas.measure import PairedLatency, Verdict, elsewhere, verdict
from nas.steps import StepRecord

_MOST_CORRECTIONS = 3
INTERLEAVED = "interleaved parent"  # what a ratio is of, as a comparison names it
_LOOKS = 3  # architectures that may be timed for each of the k best

Timing = Callable[[Sequence[str], Sequence[str]], PairedLatency]


@dataclass(frozen=True)
class Kept:
    """One bound and what an architecture does with it, as result.json tells it.

    Args:
        name: latency, parameters, flops or cache_bytes.
        unit: of all figures here; a bound on the ratio of latencies is told as `of the parent`.
        target: what the bound allows.
        predicted: by the latency table or by formula.
        expected: the same of paths drawn from softmax(alpha), where the search ended; None of a parent.
        measured: of latency alone, timed in turns; None: not timed.
        low: lower end of its 95% interval.
        high: upper end.
        verdict: by the interval where there is one; what is counted is within or over.
        reason: why the verdict cannot be told, where no timing was made that could; else None.
    """

    name: str
    unit: str
    target: float
    predicted: float
    expected: float | None
    measured: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str | None


@dataclass(frozen=True)
class Within:
    """What was derived within a budget.

    Args:
        architecture: the last one that was derived.
        timed: it as timed; None without a bound on latency, and with a table of another device.
        missed: a line for each architecture that was over the bound as measured; where the last of these names the
            architecture itself, no correction helped.
    """

    architecture: Architecture
    timed: PairedLatency | None
    missed: tuple[str, ...]


def unconfirmed(request: SearchRequest, table: LatencyTable, here: Mapping[str, str]) -> str | None:
    """Why timing cannot confirm a bound on latency, nor correct it: the table is of another device; None where it can.

    Args:
        request: with its budget.
        table: that the bound holds for.
        here: where trials run, as a table describes it.
    """
    differing = elsewhere(table.device, here)
    if request.budget.latency is None or differing is None:
        return None
    return (
        f"latency table {table.id} is of another device than the trials run on ({differing}), so budget.latency is met "
        "by its prediction alone: timing here would neither confirm nor correct it"
    )


def derive_within(
    request: SearchRequest,
    table: LatencyTable,
    record: StepRecord,
    time_beside: Timing,
    reason: str | None = None,
) -> Within:
    """The best architecture within the request's budget, as measured up to the repeatability.

    Args:
        request: with its budget; without a bound on latency nothing is timed.
        table: predicts.
        record: the last one of a search.
        time_beside: times the network of the first labels in turns with that of the second.
        reason: why it cannot be asked about a bound on latency (`unconfirmed`); None: it can.

    Raises:
        Infeasible: no architecture is predicted to meet the budget.
        SearchFailed: nothing moved beyond chance, and no parsimony pass was made.
    """
    budget, bounded = request.budget.latency, bounds(request, table)
    architecture = derive_record(request, table, record, bounded)
    if budget is None or reason is not None:
        return Within(architecture, None, ())
    missed: list[str] = []
    for n_corrected in range(_MOST_CORRECTIONS + 1):
        timed = _beside_parent(request, budget, architecture, time_beside)
        taken, low, high, allowed, unit = _taken(timed, budget)
        if not _is_over(timed, budget):
            break
        predicted = table.predict_ms(architecture, request.space)
        missed.append(
            f"{architecture}, predicted to run within the budget in {predicted:.4g} ms, takes {taken:.4g} {unit} as "
            f"measured ({low:.4g} to {high:.4g}); the budget is {allowed:.4g}, repeatability {timed.repeatability:.2g}"
        )
        if n_corrected == _MOST_CORRECTIONS:
            break  # another one would go untimed
        corrected = predicted * allowed / taken
        try:
            architecture = derive_record(request, table, record, _corrected(bounded, corrected))
        except Infeasible:
            break
    return Within(architecture, timed, tuple(missed))


def more_within(
    request: SearchRequest,
    table: LatencyTable,
    record: StepRecord,
    time_beside: Timing,
    first: Within,
    k: int,
    reason: str | None = None,
) -> list[Within]:
    """The next best architectures within the request's budget, as measured too; at most k with the first.

    One that is over the bound as measured is left out, and the next one takes its place.

    Args:
        request: with its budget.
        table: predicts.
        record: the last one of a search.
        time_beside: times the network of the first labels in turns with that of the second.
        first: what `derive_within` found.
        k: how many, the first one counted.
        reason: as in `derive_within`.

    Raises:
        InvalidInput: under several bounds so many tie that the next best cannot be told apart (nas.exact.solve).
    """
    if k == 1:
        return []
    budget, found = None if reason else request.budget.latency, list[Within]()
    for architecture in k_best(request, table, record, bounds(request, table), _LOOKS * k + len(first.missed)):
        if len(found) == k - 1:
            break
        if architecture.word == first.architecture.word:
            continue
        timed = None if budget is None else _beside_parent(request, budget, architecture, time_beside)
        if budget is None or timed is None or not _is_over(timed, budget):
            found.append(Within(architecture, timed, ()))
    return found


def timed_again(
    budget: LatencyBudget | None, told: Sequence[Mapping[str, Any]], timed: PairedLatency, against: str
) -> str | None:
    """What to say where a network that was timed when it was derived is timed once more at the end, and the two differ.

    Args:
        budget: on latency, if any.
        told: its bounds as it was derived (`kept`).
        timed: the later timing, at the first serve mode.
        against: what the later timing is beside.

    Returns:
        One line where the intervals lie apart, or the later one lies beyond the bound; None: they agree, or there is
        nothing to compare.
    """
    before = next((each for each in told if each["name"] == "latency" and each["measured"] is not None), None)
    if budget is None or before is None or before["low"] == before["high"]:  # the parent itself has no interval
        return None
    if budget.ms is None and against != INTERLEAVED:
        return None
    taken, low, high, allowed, unit = _taken(timed, budget)
    apart, over = low > before["high"] or high < before["low"], verdict(low, high, allowed) == "over"
    if not apart and (not over or before["verdict"] == "over"):
        return None
    meaning = (
        "the machine was not the same in both, so the truth may lie anywhere between; a quiet machine tells it"
        if apart
        else "the two agree, and the later, longer timing lies beyond the budget"
    )
    return (
        f"the derived network took {before['measured']:.3f} {unit} when it was derived ({before['low']:.3f} to "
        f"{before['high']:.3f}) and {taken:.3f} at the end ({low:.3f} to {high:.3f}), the budget is {allowed:.4g}: "
        f"{meaning}"
    )


def is_over(request: SearchRequest, table: LatencyTable, architecture: Architecture) -> bool:
    """Whether an architecture is beyond a bound of the budget, as predicted and counted."""
    choices = [request.space.labels.index(label) for label in architecture.labels]
    return not all(bound.holds(choices) for bound in bounds(request, table))


def _beside_parent(
    request: SearchRequest, budget: LatencyBudget, architecture: Architecture, time_beside: Timing
) -> PairedLatency:
    """Timed beside what the budget is a ratio to; without a ratio, beside a twin."""
    beside = architecture if budget.ratio_to_parent is None else interleaved(request.space)
    timed = time_beside(architecture.labels, beside.labels)
    if architecture.labels == beside.labels:  # as long by definition; timing tells its milliseconds alone
        timed = replace(timed, ratio=1.0, low=1.0, high=1.0)
    return timed


def _is_over(timed: PairedLatency, budget: LatencyBudget) -> bool:
    taken, low, high, allowed, _ = _taken(timed, budget)
    # The interval of a mean can lie wholly within the bound while the same measurement of a twin strays beyond.
    return verdict(low, high, allowed) == "over" or taken > allowed * (1 + timed.repeatability)


def _corrected(bounded: Sequence[BoundedCost], ms: float) -> list[BoundedCost]:
    return [replace(bound, target=ms) if bound.name == "latency" else bound for bound in bounded]


def _taken(timed: PairedLatency, budget: LatencyBudget) -> tuple[float, float, float, float, str]:
    """What a network takes in the budget's own terms, the ends of the interval, what is allowed, and the unit."""
    if budget.ms is not None:
        return timed.ms["derived"], *timed.ms_interval["derived"], budget.ms, "ms"
    assert budget.ratio_to_parent is not None
    return timed.ratio, timed.low, timed.high, budget.ratio_to_parent, "of the parent's latency"


def kept(
    request: SearchRequest,
    table: LatencyTable,
    architecture: Architecture,
    record: StepRecord | None,
    timed: PairedLatency | None,
    reason: str | None = None,
) -> list[dict[str, Any]]:
    """Each bound of the budget and what an architecture does with it, as JSON (`Kept`).

    Args:
        request: with its budget.
        table: predicts.
        architecture: in question.
        record: the last one of the search that it is from; None of a parent.
        timed: it as timed; None: it was not.
        reason: why a bound on latency is not confirmed by timing, where that is known.
    """
    choices = [request.space.labels.index(label) for label in architecture.labels]
    found = []
    for bound in bounds(request, table):
        cost, expected = bound.of(choices), None
        if record is not None and record.probabilities is not None:
            expected = bound.expected(record.probabilities)
        unit, scale = bound.unit, 1.0
        measured = low = high = None
        reached: Verdict = "within" if bound.holds(choices) else "over"
        latency = request.budget.latency
        if bound.name == "latency" and latency is not None:
            if latency.ratio_to_parent is not None:
                assert bound.parent is not None
                unit, scale = "of the parent", bound.parent
            reached = "cannot tell"  # a prediction is none
            if timed is not None:
                measured, low, high, allowed, _ = _taken(timed, latency)
                reached = verdict(low, high, allowed)
        found.append(
            asdict(
                Kept(
                    bound.name, unit, bound.target / scale, cost / scale,
                    None if expected is None else expected / scale, measured, low, high, reached,
                    reason if bound.name == "latency" else None,
                )
            )
        )  # fmt: skip
    return found
