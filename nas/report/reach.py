"""Beyond the trained length: quality by length of the input, and loss at each place of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nas.report import plot, read, words
from nas.report.data import ReportData, evenly
from nas.report.document import Line, Part, Picture, Section, Strong, Table
from nas.report.layouts import both_sides, n_seeds_of, parent_name

_PLACES = 32


def section(data: ReportData) -> Section | None:
    """None in results of older versions."""
    parts: list[Part] = [*_lengths(data), *_positions(data)]
    path = f"/api/v1/searches/{data.search_id}/report"
    return Section("lengths", "Lengths and positions", tuple(parts), (path,)) if parts else None


def _lengths(data: ReportData) -> list[Part]:
    found = read.mappings(data.found.get("lengths"))
    if not found:
        return []
    sides = {"derived": "derived", "parent": parent_name(data)}
    unit = read.text(found[0].get("unit")) or "bits per byte"
    curves = []
    for number, (side, name) in enumerate(sides.items()):
        points = [
            (length, bits) for each in found
            if (bits := read.number(read.at(each, side, "bits"))) is not None
            and (length := read.number(each.get("length"))) is not None
        ]  # fmt: skip
        if points:
            curves.append(plot.Curve(name, points, f"s{number}"))
    rows = [_length_row(each) for each in found]
    trained = read.whole(read.at(data.found, "search", "train_length"))
    seeds = n_seeds_of(data)
    of = "" if seeds is None else f", {words.count(seeds, 'seed')}"
    caption: Line = [
        f"{unit} on the test part in windows of each length ± one standard error over windows of the seeds' means{of}; "
        f"trained at {trained or '?'} tokens; 95% intervals; ",
        *both_sides(data),
    ]
    head = ("tokens", "windows", "derived", sides["parent"], "difference", "interval", "verdict", "why no figure")
    table = Table(caption, head, tuple(rows), frozenset(range(6)))
    if not curves:
        return [table]
    title = "Quality by length of the input"
    meaning = (
        f"{unit}, lower is better. A point is missing where a layout cannot run at that length; the table says why."
    )
    drawing = plot.lines("by-length", title, meaning, curves, "tokens of the input", unit)
    return [Picture(title, meaning, drawing, (table,))]


def _length_row(each: Mapping[str, Any]) -> tuple[Line, ...]:
    difference = read.mapping(each.get("difference"))
    bits, low, high = (read.number(difference.get(name)) for name in ("bits", "low", "high"))
    digits = max(4, words.decimals(bits, low, high))
    return (
        str(read.whole(each.get("length")) or "?"),
        str(read.whole(each.get("n_windows")) or words.NONE),
        _score(each.get("derived")),
        _score(each.get("parent")),
        words.signed(bits, digits),
        words.interval(low, high, digits) if difference else words.NONE,
        [Strong(read.text(difference.get("verdict")) or "")] if difference else "",
        "; ".join(
            dict.fromkeys(why for side in ("derived", "parent") if (why := read.text(read.at(each, side, "why"))))
        ),
    )


def _score(score: object) -> str:
    bits, error = read.number(read.at(score, "bits")), read.number(read.at(score, "se"))
    if bits is None:
        return words.NONE
    return f"{bits:.4f}" + ("" if error is None else f" ± {error:.4f}")


def _positions(data: ReportData) -> list[Part]:
    sides = {"derived": "derived", "parent": parent_name(data)}
    told = {side: read.numbers(read.at(data.found, "positions", side)) for side in sides}
    shown = evenly(range(max(map(len, told.values()))), _PLACES)
    values = {side: [row[at] if at < len(row) else None for at in shown] for side, row in told.items()}
    curves = [
        plot.Curve(name, points, f"s{number}")
        for number, (side, name) in enumerate(sides.items())
        if (points := _points(shown, values[side]))
    ]
    if not curves:
        return []
    title = "Loss by position in the window"
    meaning = (
        "Mean loss at a position over all test windows and seeds, nats per token; of one position no interval is kept."
    )
    drawing = plot.lines("by-position", title, meaning, curves, "position, from 1", "nats per token")
    rows: list[tuple[Line, ...]] = [
        (str(at + 1), *(words.fixed(values[side][number], 4) for side in sides)) for number, at in enumerate(shown)
    ]
    seeds = n_seeds_of(data)
    over = "seeds" if seeds is None else words.count(seeds, "seed")
    caption: Line = [f"loss by position, nats per token, mean over windows and {over}; ", *both_sides(data)]
    table = Table(caption, ("position", *sides.values()), tuple(rows), frozenset(range(3)), folded=True)
    return [Picture(title, meaning, drawing, (table,))]


def _points(shown: Sequence[int], values: Sequence[float | None]) -> list[tuple[float, float]]:
    return [(float(at + 1), value) for at, value in zip(shown, values, strict=True) if value is not None]
