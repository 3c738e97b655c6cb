"""Which trained layout to take: what each kind of comparison comes to, and what is never said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.advice import Advice, advise

FASTER, SLOWER, EITHER = (0.78, 0.74, 0.82), (1.1, 1.06, 1.14), (1.03, 0.98, 1.08)


def against(
    second: str, low: float, high: float, latency: tuple[float, float, float] | None = EITHER, n_seeds: int = 6
) -> dict[str, Any]:
    """The derived architecture against another, as result.json tells it; below 0 the derived one is better."""
    verdict = "better" if high < 0 else "worse" if low > 0 else "cannot tell"
    told = None if latency is None else dict(zip(("ratio", "low", "high"), latency, strict=True))
    return {
        "first": "derived", "second": second, "unit": "bits per byte", "difference": (low + high) / 2, "low": low,
        "high": high, "verdict": verdict, "n_seeds": n_seeds, "detectable": None, "latency": told,
    }  # fmt: skip


def said(*comparisons: dict[str, Any], parent: str | None = "interleaved", over: tuple[str, ...] = ()) -> Advice:
    found = advise(comparisons, parent, over)
    assert found is not None
    return found


BETTER = against("sandwich", 0.045, 0.105)
UNTOLD = against("interleaved", -0.006, 0.056)
CASES = {
    "a baseline that is better and no slower": (
        said(UNTOLD, BETTER),
        "sandwich",
        "Take layout sandwich, not what was derived: it is better by 0.075 bits per byte (0.045 to 0.105), and what "
        "was derived is not shown to be faster (the derived one takes 1.030 of its time, 0.980 to 1.080).",
    ),
    "the best of several": (
        said(UNTOLD, against("random 1", 0.01, 0.05, None), BETTER, against("par", -0.2, -0.1)),
        "sandwich",
        "to 1.080); of 4 comparisons, each with its own 95%, one may be off by chance.",
    ),
    "a baseline that is better and slower": (
        said(UNTOLD, against("sandwich", 0.045, 0.105, FASTER)),
        None,
        "Against what was derived layout sandwich is better by 0.075 bits per byte (0.045 to 0.105), but slower (the "
        "derived one takes 0.780 of its time, 0.740 to 0.820).",
    ),
    "the best that is no slower": (
        said(UNTOLD, against("sandwich", 0.045, 0.105, FASTER), against("par", 0.02, 0.04)),
        "par",
        "Take layout par, not what was derived: it is better by 0.030 bits per byte (0.020 to 0.040)",
    ),
    "a better baseline that is over the budget": (
        said(UNTOLD, BETTER, over=("sandwich", "interleaved")),
        "derived",
        "Take what was derived: the interleaved parent is over the budget, beside which it is not told apart in "
        "quality (+0.025 bits per byte, -0.006 to +0.056).",
    ),
    "a better parent that is over the budget": (
        said(against("interleaved", 0.01, 0.05), over=("interleaved",)),
        "derived",
        "Take what was derived: the interleaved parent is over the budget, beside which it is worse (+0.030 bits per "
        "byte, +0.010 to +0.050).",
    ),
    "better than the parent": (
        said(against("present", -0.06, -0.02), parent="present"),
        "derived",
        "Take what was derived: it is better by 0.040 bits per byte (0.020 to 0.060) than the present model.",
    ),
    "better than a parent that is over the budget": (
        said(against("interleaved", -0.06, -0.02, SLOWER), over=("interleaved",)),
        "derived",
        "over the budget, beside which it is better by 0.040 bits per byte (0.020 to 0.060).",
    ),
    "what was derived is over the budget as measured": (
        said(against("interleaved", -0.06, -0.02), over=("derived",)),
        None,
        "What was derived is over the budget as measured; but for that, take what was derived: it is better by 0.040 "
        "bits per byte (0.020 to 0.060) than the interleaved parent.",
    ),
    "better than the parent, and slower": (
        said(against("interleaved", -0.06, -0.02, SLOWER)),
        None,
        "What was derived is better by 0.040 bits per byte (0.020 to 0.060) than the interleaved parent, but slower "
        "(the derived one takes 1.100 of its time, 1.060 to 1.140).",
    ),
    "as good, and faster": (
        said(against("interleaved", -0.02, 0.03, FASTER)),
        "derived",
        "Take what was derived: it is faster than the interleaved parent (the derived one takes 0.780 of its time, "
        "0.740 to 0.820), and not told apart in quality (+0.005 bits per byte, -0.020 to +0.030).",
    ),
    "nothing gained": (
        said(UNTOLD),
        "interleaved",
        "Keep the interleaved parent: nothing shows what was derived to be better (+0.025 bits per byte, -0.006 to "
        "+0.056), nor faster (the derived one takes 1.030 of its time, 0.980 to 1.080).",
    ),
    "the parent itself": (
        said(against("interleaved", 0.0, 0.0)),
        "interleaved",
        "What was derived is the interleaved parent itself.",
    ),
    "one seed": (
        said(against("interleaved", -0.06, -0.02, n_seeds=1)),
        "derived",
        "than the interleaved parent; this is of one seed each, and the next may say otherwise.",
    ),
    "no parent, some worse": (
        said(against("par", -0.06, -0.02), against("sandwich", -0.01, 0.02), parent=None),
        "derived",
        "Take what was derived: some layouts trained beside it are worse, and none is better.",
    ),
    "no parent, none told": (
        said(against("sandwich", -0.01, 0.02), parent=None),
        None,
        "In quality no layout trained beside the derived one is told from it.",
    ),
}


@pytest.mark.parametrize(("advice", "take", "sentence"), CASES.values(), ids=CASES)
def test_the_advice_is_what_the_comparisons_come_to(advice: Advice, take: str | None, sentence: str) -> None:
    assert advice.take == take
    assert sentence in advice.sentence


def test_without_a_comparison_there_is_nothing_to_advise() -> None:
    assert advise([], "interleaved") is None


ENDS = st.floats(-1, 1).flatmap(lambda low: st.tuples(st.just(low), st.floats(low, 1.5)))
TIMED = st.none() | st.tuples(st.floats(0.5, 0.99), st.floats(0.3, 0.5), st.floats(0.99, 2.0))
NAMES = ("interleaved", "sandwich", "par", "random 1")


@given(
    st.lists(st.tuples(ENDS, TIMED), min_size=1, max_size=4),
    st.sampled_from([None, "interleaved"]),
    st.sets(st.sampled_from(NAMES)),
)
def test_what_is_over_the_budget_worse_or_slower_is_never_taken(
    drawn: list[tuple[tuple[float, float], tuple[float, float, float] | None]], parent: str | None, over: set[str]
) -> None:
    rows = [against(name, *ends, timed) for name, (ends, timed) in zip(NAMES, drawn, strict=False)]
    found = said(*rows, parent=parent, over=tuple(over))
    assert found.take not in over
    taken = next((row for row in rows if row["second"] == found.take), None)
    if taken is not None:
        assert taken["verdict"] != "better"  # the derived one than it
        assert taken["latency"] is None or taken["latency"]["high"] >= 1
    elif found.take == "derived":
        beating = [row for row in rows if row["verdict"] == "worse" and row["second"] not in over]
        assert beating == []
