"""Cost against quality: every layout that was trained, and which of them no other one beats in both."""

from __future__ import annotations

from collections.abc import Sequence

from nas.report import plot, read, words
from nas.report.data import ReportData
from nas.report.document import Line, Picture, Section, Table, commas
from nas.report.layouts import Layout, search_of, trained
from nas.report.outcome import compared


def unbeaten(found: Sequence[Layout]) -> list[Layout]:
    """Layouts to which no other one is at least as good in cost and quality and better in one; the cheapest first.

    By the means alone: whether one is better than another is told by the comparisons.
    """
    kept = []
    for each in found:
        others = [
            other
            for other in found
            if (other.cost_ms, other.mean) != (each.cost_ms, each.mean)
            and _most(other.cost_ms, each.cost_ms)
            and _most(other.mean, each.mean)
        ]
        if not others:
            kept.append(each)
    return sorted(kept, key=lambda each: (each.cost_ms or 0.0, each.mean or 0.0))


def _most(value: float | None, bound: float | None) -> bool:
    return value is not None and bound is not None and value <= bound


def section(data: ReportData) -> Section | None:
    """None where fewer than two layouts have both figures."""
    found = [each for each in trained(data) if each.mean is not None and each.cost_ms is not None]
    if len(found) < 2:
        return None
    listed = bool(data.found.get("retrained"))
    best = unbeaten(found)
    unit = next((str(each["unit"]) for each in compared(data) if read.text(each.get("unit"))), "bits per byte")
    cost = "predicted milliseconds" if listed else "milliseconds, as timed in turns"
    points = [(each.name, each.cost_ms or 0.0, each.mean or 0.0, each.low, each.high) for each in found]
    title = "Cost against quality"
    bars = "bars are 95% intervals of the mean over seeds" if listed else "this result has no interval of each alone"
    meaning = (
        f"Further left is cheaper, further down is better; {bars}. The dashed line joins the layouts that no other "
        "beats in both means."
    )
    drawing = plot.dots(
        "front", title, meaning, points, cost, unit, [(each.cost_ms or 0.0, each.mean or 0.0) for each in best]
    )
    rows: list[tuple[Line, ...]] = [
        (
            each.name,
            words.fixed(each.cost_ms),
            words.fixed(each.mean, 4),
            words.interval(each.low, each.high, 4, sign=False),
            str(len(each.seeds)) if each.seeds else words.NONE,
            "yes" if each in best else "no",
            commas(each.origin[:1] or (search_of(data),)),
        )
        for each in sorted(found, key=lambda each: each.cost_ms or 0.0)
    ]
    head = ("layout", cost, unit, "95% interval", "seeds", "on the front", "from")
    table = Table(f"cost and {unit} on the test part", head, tuple(rows), frozenset(range(1, 5)))
    path = f"/api/v1/searches/{data.search_id}/report"
    return Section("front", "Cost and quality", (Picture(title, meaning, drawing, (table,)),), (path,))
