"""Which of the trained layouts to take, in one sentence: not always the one that was derived.

A search can end in a layout that a baseline beats, or that is not told from the model its user has. Who asked for it
would have to find that in a table of comparisons, so the result says it. It is a reading of those comparisons and no
further test: each has its own 95%, uncorrected, and all are of one length of training.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas.report.words import decimals, interval

DERIVED = "derived"
_MANY = 3  # comparisons
_CALLED = {"interleaved": "the interleaved parent", "present": "the present model"}


@dataclass(frozen=True)
class Advice:
    """What to take.

    Args:
        take: name of a trained layout; None where quality and latency speak for different ones, or nothing for any.
        sentence: it with the figures behind it, for people.
    """

    take: str | None
    sentence: str


def advise(comparisons: Sequence[Mapping[str, Any]], parent: str | None, over: Collection[str] = ()) -> Advice | None:
    """What the comparisons of the derived architecture come to; None without any.

    Args:
        comparisons: of it against each other layout, as result.json tells them.
        parent: name of the one that is there without a search; None where it was not trained.
        over: names of layouts that are over the request's budget; `derived` where it is, as measured.
    """
    if not comparisons:
        return None
    better = [each for each in comparisons if each["verdict"] == "worse" and each["second"] not in over]
    beside = next((each for each in comparisons if each["second"] == parent), None)
    if better:
        advice = _beaten(sorted(better, key=lambda each: -float(each["difference"])))
    elif beside is not None:
        advice = _against_parent(beside, is_over=parent in over)
    elif any(each["verdict"] == "better" for each in comparisons):
        advice = Advice(DERIVED, "Take what was derived: some layouts trained beside it are worse, and none is better")
    else:
        advice = Advice(None, "In quality no layout trained beside the derived one is told from it")
    if advice.take == DERIVED and DERIVED in over:
        words = advice.sentence[0].lower() + advice.sentence[1:]
        advice = Advice(None, f"What was derived is over the budget as measured; but for that, {words}")
    doubt = ""
    if comparisons[0]["n_seeds"] == 1:
        doubt = "; this is of one seed each, and the next may say otherwise"
    elif better and len(comparisons) >= _MANY:
        doubt = f"; of {len(comparisons)} comparisons, each with its own 95%, one may be off by chance"
    return Advice(advice.take, f"{advice.sentence}{doubt}.")


def _beaten(better: Sequence[Mapping[str, Any]]) -> Advice:
    """Some layouts are better than the derived one, the best first."""
    for each in better:
        if not _is_faster(each):
            timed = f", and what was derived is not shown to be faster ({_time(each)})" if each["latency"] else ""
            return Advice(each["second"], f"Take {_who(each)}, not what was derived: it is {_better(each)}{timed}")
    each = better[0]
    return Advice(None, f"Against what was derived {_who(each)} is {_better(each)}, but slower ({_time(each)})")


def _against_parent(each: Mapping[str, Any], *, is_over: bool) -> Advice:
    """Within the budget nothing is better than the derived architecture: whether to leave the parent for it."""
    who, take = _who(each), "Take what was derived: "
    untold = f"not told apart in quality ({_difference(each)})"
    if not each["low"] < each["high"]:  # equal losses to the last bit
        return Advice(each["second"], f"What was derived is {who} itself")
    if is_over:
        quality = {"better": _better(each), "worse": f"worse ({_difference(each)})", "cannot tell": untold}
        return Advice(DERIVED, f"{take}{who} is over the budget, beside which it is {quality[each['verdict']]}")
    if each["verdict"] == "better":
        if _is_slower(each):
            return Advice(None, f"What was derived is {_better(each)} than {who}, but slower ({_time(each)})")
        return Advice(DERIVED, f"{take}it is {_better(each)} than {who}")
    if _is_faster(each):
        return Advice(DERIVED, f"{take}it is faster than {who} ({_time(each)}), and {untold}")
    timed = f", nor faster ({_time(each)})" if each["latency"] else ""
    return Advice(
        each["second"], f"Keep {who}: nothing shows what was derived to be better ({_difference(each)}){timed}"
    )


def _is_faster(each: Mapping[str, Any]) -> bool:
    return bool(each["latency"] and each["latency"]["high"] < 1)


def _is_slower(each: Mapping[str, Any]) -> bool:
    return bool(each["latency"] and each["latency"]["low"] > 1)


def _who(each: Mapping[str, Any]) -> str:
    return _CALLED.get(each["second"], f"layout {each['second']}")


def _better(each: Mapping[str, Any]) -> str:
    """Of whichever of the two is better, by how much."""
    low, high = sorted((abs(each["low"]), abs(each["high"])))
    digits = decimals(low, high)
    return f"better by {abs(each['difference']):.{digits}f} {each['unit']} ({interval(low, high, digits, sign=False)})"


def _difference(each: Mapping[str, Any]) -> str:
    digits = decimals(each["low"], each["high"])
    return f"{each['difference']:+.{digits}f} {each['unit']}, {interval(each['low'], each['high'], digits)}"


def _time(each: Mapping[str, Any]) -> str:
    """Of the derived one against the other."""
    latency = each["latency"]
    return f"the derived one takes {latency['ratio']:.3f} of its time, {latency['low']:.3f} to {latency['high']:.3f}"
