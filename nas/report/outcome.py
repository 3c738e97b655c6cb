"""What came out: every architecture as a strip, the trained layouts with their figures, and who is better than whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nas.report import read, svg, words
from nas.report.axis import STRIP, Axis
from nas.report.data import ReportData
from nas.report.document import Code, Line, Paragraph, Part, Picture, Ref, Section, Strong, Table, commas
from nas.report.layouts import Layout, both_sides, n_seeds_of, origins, parent_name, search_of, trained
from nas.report.looks import UNKNOWN, string
from nas.report.seeds import looks_of


def architectures(data: ReportData) -> Section | None:
    """Every stored architecture and every trained layout, on the axis of slots; None before one was derived."""
    drawn = looks_of(data)
    rows = [*_stored(data), *((each.name, each) for each in trained(data) if data.found.get("retrained"))]
    rows = [(name, each) for name, each in rows if each.slots]
    if not rows:
        return None
    axis = Axis(max(len(each.slots) for _, each in rows))
    parts = []
    for number, (name, each) in enumerate(rows):
        y = 4 + number * (STRIP + 4)
        parts += [axis.name(y + 14, name), *axis.strip(y, each.slots, drawn, each.undecided)]
    bottom = 4 + len(rows) * (STRIP + 4)
    families = sorted({(drawn.get(x, UNKNOWN).letter, x) for _, each in rows for x in each.slots})
    key = ", ".join(f"{letter} {label}" for letter, label in families)
    title = "Layouts, first slot to last"
    meaning = f"{key}. ? and a stroke mark an undecided slot, which has its cheapest tied candidate."
    drawing = svg.drawing("layouts", axis.width, bottom + 20, title, meaning, [*parts, *axis.numbers(bottom + 14)])
    cells: list[tuple[Line, ...]] = [
        (
            name,
            [Code(string(each.slots, drawn))],
            words.slots(each.undecided) if each.undecided else "none",
            words.fixed(each.cost_ms),
            commas(each.origin or (search_of(data),)),
        )
        for name, each in rows
    ]
    head = ("layout", "slots", "undecided", "predicted ms", "from")
    table = Table("each layout a letter a slot; milliseconds by the latency table", head, tuple(cells), frozenset((3,)))
    path = f"/api/v1/searches/{data.search_id}/architectures"
    return Section("architectures", "Architectures", (Picture(title, meaning, drawing, (table,)),), (path,))


def _stored(data: ReportData) -> list[tuple[str, Layout]]:
    seeds = {each.id: each.seed for each in data.trials}
    found = []
    for each in data.architectures:
        name = each.role if each.trial is None else f"{each.role}, seed {seeds.get(each.trial, '?')}"
        refs = [Ref("architecture", each.id), *([Ref("trial", each.trial)] if each.trial else [])]
        found.append(
            (
                f"result: {name}" if each.is_result else name,
                Layout(name, each.slots, each.undecided, tuple(refs), cost_ms=each.predicted_ms),
            )
        )
    return found


def comparisons(data: ReportData) -> Section | None:
    """Derived and rule layouts against the baselines; None before there is a result."""
    if data.result is None:
        return None
    parts: list[Part] = []
    if not read.mappings(data.found.get("comparisons")) and data.found.get("quality") is None:
        parts.append(Paragraph("The request asked for no baseline, so nothing is compared."))
    else:
        parts.append(_quality(data))
        power = [text for each in read.mappings(data.found.get("power")) if (text := read.text(each.get("message")))]
        parts += [Paragraph(f"Told before the comparisons ran: {'; '.join(dict.fromkeys(power))}.")] if power else []
    parts += [*_latency(data), *_budget(data), *_trained(data), *_metrics(data)]
    path = f"/api/v1/searches/{data.search_id}/report"
    return Section("comparisons", "Against the baselines", tuple(parts), (path,))


def compared(data: ReportData) -> list[Mapping[str, Any]]:
    """The comparisons of the result; of an older one its single comparison in the same shape."""
    found = read.mappings(data.found.get("comparisons"))
    quality = read.mapping(data.found.get("quality"))
    if found or not quality:
        return found
    return [{**quality, "first": "derived", "second": parent_name(data), "latency": data.found.get("latency")}]


def _quality(data: ReportData) -> Table:
    by_name = {each.name: each for each in trained(data)}
    rows: list[tuple[Line, ...]] = []
    unit = "bits per byte"
    for each in compared(data):
        unit = read.text(each.get("unit")) or unit
        low, high, difference = (read.number(each.get(name)) for name in ("low", "high", "difference"))
        digits = max(4, words.decimals(difference, low, high))
        first, second = str(each.get("first", "?")), str(each.get("second", "?"))
        latency = read.mapping(each.get("latency"))
        ratio, from_, to = (read.number(latency.get(name)) for name in ("ratio", "low", "high"))
        rows.append(
            (
                f"{first} against {second}",
                _mean(by_name.get(first)),
                _mean(by_name.get(second)),
                words.signed(difference, digits),
                words.interval(low, high, digits),
                [Strong(read.text(each.get("verdict")) or "cannot tell")],
                words.fixed(read.number(each.get("detectable")), 4),
                _whole(each.get("n_seeds")),
                words.NONE if ratio is None else f"{ratio:.3f} ({words.interval(from_, to, 3, sign=False)})",
                commas(origins((first, second), data)),
            )
        )
    windows = read.whole(read.at(data.found, "quality", "n_windows"))
    over = f", {words.count(windows, counted(data))} of the test part" if windows else ""
    caption = (
        f"{unit} on the test part{over}: the first minus the second, paired over seeds, so below 0 the first is "
        "better; 95% intervals; detectable: the smallest difference found at 80% power; latency: ratio of timings"
    )
    figures = ("first", "second", "difference", "interval", "verdict", "detectable", "seeds", "latency")
    head = ("comparison", *figures, "from")
    return Table(caption, head, tuple(rows), frozenset((1, 2, 3, 4, 6, 7, 8)))


def counted(data: ReportData) -> str:
    return "example" if str(read.at(data.request, "task", "objective")).endswith("_classification") else "window"


def _mean(layout: Layout | None) -> str:
    return words.NONE if layout is None else words.fixed(layout.mean, 4)


def _whole(value: object) -> str:
    found = read.whole(value)
    return words.NONE if found is None else str(found)


def modes(data: ReportData) -> list[Mapping[str, Any]]:
    """The timings of each serve mode; of an older result those of the first one."""
    found = read.mappings(data.found.get("latencies"))
    single = read.mapping(data.found.get("latency"))
    first = read.mappings(read.at(data.found, "search", "serve"))[:1]
    return found or ([{**single, "serve": first[0] if first else {}}] if single else [])


def serve_words(serve: object) -> str:
    found = read.mapping(serve)
    if not found:
        return "first serve mode"
    return words.serve(
        found.get("mode", "prefill"),
        found.get("batch", "?"),
        found.get("query_length", "?"),
        found.get("memory_length", 0),
    )


def table_of(serve: object, data: ReportData) -> Ref | None:
    """The latency table of a serve mode; of older versions, which had one table, that one."""
    listed = read.mappings(read.at(data.found, "search", "latency_tables"))
    modes_of = {read.text(each.get("id")): each.get("serve") for each in listed}
    modes_of |= {each.id: each.body.get("serve") for each in data.tables}
    own = next((own for own, mode in modes_of.items() if mode and serve_words(mode) == serve_words(serve)), None)
    if not any(modes_of.values()):
        own = read.text(read.at(data.found, "search", "latency_table"))
    return Ref("table", own) if own else None


def _latency(data: ReportData) -> list[Table]:
    rows: list[tuple[Line, ...]] = []
    for each in modes(data):
        ratio, low, high = (read.number(each.get(name)) for name in ("ratio", "low", "high"))
        rows.append(
            (
                serve_words(each.get("serve")),
                words.fixed(read.number(each.get("derived_ms"))),
                words.fixed(read.number(each.get("parent_ms"))),
                words.fixed(ratio),
                words.interval(low, high, 3, sign=False),
                [Strong(latency_verdict(low, high))],
                words.fixed(read.number(each.get("repeatability"))),
                [table] if (table := table_of(each.get("serve"), data)) else words.NONE,
            )
        )
    if not rows:
        return []
    caption: Line = [
        f"milliseconds of derived and {parent_name(data)} (",
        *commas(origins(("derived", parent_name(data)), data)),
        "), timed in turns in one process: median of paired ratios with its 95% interval; repeats to: how far the "
        "ratio of a network to its own twin is from 1; table: the latency table of that serve mode",
    ]
    head = ("latency", "derived, ms", f"{parent_name(data)}, ms", "ratio", "interval", "verdict", "repeats to", "table")
    return [Table(caption, head, tuple(rows), frozenset((1, 2, 3, 4, 6)))]


def latency_verdict(low: float | None, high: float | None) -> str:
    """Of a ratio: faster is below 1."""
    if low is None or high is None:
        return "cannot tell"
    return "better" if high < 1 else "worse" if low > 1 else "cannot tell"


def _budget(data: ReportData) -> list[Table]:
    rows: list[tuple[Line, ...]] = []
    for each in read.mappings(read.at(data.found, "derived", "bounds")):
        low, high = read.number(each.get("low")), read.number(each.get("high"))
        rows.append(
            (
                f"{str(each.get('name', '?')).replace('_', ' ')}, {each.get('unit', '')}",
                *(words.short(read.number(each.get(name))) for name in ("target", "expected", "predicted", "measured")),
                words.NONE if low is None or high is None else f"{low:.5g} to {high:.5g}",
                [Strong(read.text(each.get("verdict")) or "cannot tell")],
            )
        )
    head = ("bound", "at most", "expected of alpha", "predicted", "measured", "interval", "verdict")
    table = read.text(read.at(data.found, "search", "latency_table"))
    caption: Line = [
        "the budget's bounds, and what the derived architecture (",
        *commas([*origins(("derived",), data), *([Ref("table", table)] if table else [])]),
        ") does with them; 95% interval of what was measured",
    ]
    return [Table(caption, head, tuple(rows), frozenset((1, 2, 3, 4, 5)))] if rows else []


def _trained(data: ReportData) -> list[Table]:
    listed = trained(data) if data.found.get("retrained") else []
    if not listed:
        return []
    unit = _unit(data)
    rows: list[tuple[Line, ...]] = [
        (
            each.name,
            words.fixed(each.mean, 4),
            words.interval(each.low, each.high, 4, sign=False),
            str(len(each.seeds)) if each.seeds else words.NONE,
            words.short(each.lr),
            words.fixed(each.cost_ms),
            words.whole(each.parameters),
            words.whole(each.flops),
            words.whole(each.cache_bytes),
            commas(each.origin[:1] or (search_of(data),)),
        )
        for each in listed
    ]
    head = ("layout", unit, "95% interval", "seeds", "lr", "predicted ms", "parameters", "FLOPs", "cache bytes", "from")
    caption = f"each layout retrained: {unit} on the test part, mean of the seeds"
    shown = [Table(caption, head, tuple(rows), frozenset(range(1, 9)))]
    seeds = sorted({seed for each in listed for seed in each.seeds})
    if seeds:
        shown.append(_by_seed(listed, seeds, unit, data))
    return shown


def _by_seed(listed: Sequence[Layout], seeds: Sequence[int], unit: str, data: ReportData) -> Table:
    rows: list[tuple[Line, ...]] = []
    for each in listed:
        test = dict(zip(each.seeds, each.test, strict=True))
        loss = dict(zip(each.seeds, each.val_loss, strict=True))
        trials = [ref for ref in each.origin if ref.kind == "trial"]
        cells = [f"{words.fixed(test.get(seed), 4)} / {words.fixed(loss.get(seed), 4)}" for seed in seeds]
        rows.append((each.name, *cells, commas(trials or [search_of(data)])))
    head = ("layout", *(f"seed {seed}" for seed in seeds), "trials")
    caption = f"seed by seed: {unit} on the test part / on validation"
    return Table(caption, head, tuple(rows), frozenset(range(1, len(seeds) + 1)), folded=True)


def _unit(data: ReportData) -> str:
    """Of quality."""
    told = (read.text(each.get("unit")) for each in [read.mapping(data.found.get("quality")), *compared(data)])
    return next(filter(None, told), "bits per byte")


def _metrics(data: ReportData) -> list[Table]:
    found = read.mappings(data.found.get("metrics"))
    if not found:
        return []
    baselines = ("majority", "chance", "best")
    layouts = {each.name: each for each in trained(data)}
    trained_as = {"derived": layouts.get("derived"), "parent": layouts.get(parent_name(data))}
    rows: list[tuple[Line, ...]] = []
    kept = True
    for each in found:
        of_sides = {side: _interval_of(each, side, layout, data) for side, layout in trained_as.items()}
        kept = kept and bool(of_sides["derived"])
        rows.append(
            (
                str(each.get("name", "?")),
                str(each.get("unit", "")),
                *(_figure(each.get(side)) + interval for side, interval in of_sides.items()),
                _difference(each),
                *(_figure(each.get(name)) for name in baselines),
            )
        )
    n_seeds = n_seeds_of(data)
    over = "the seeds" if n_seeds is None else words.count(n_seeds, "seed")
    told = "in brackets a 95% t interval over the seeds, which says nothing of other test examples"
    if not kept:
        told += "; none of one seed, nor where an older result keeps no value of each"
    caption: Line = [f"the field's own figures on the test part, means of {over}; {told}; ", *both_sides(data)]
    head = (
        "figure",
        "unit",
        "derived",
        parent_name(data),
        "derived minus it",
        "always the most frequent",
        "blind guess",
        "highest there is",
    )
    return [Table(caption, head, tuple(rows), frozenset(range(2, 8)))]


def _figure(value: object) -> str:
    number = read.number(value)
    return words.NONE if number is None else f"{number:.4g}"


def _difference(metric: Mapping[str, Any]) -> str:
    """Paired, with its interval; of an older result of the means alone."""
    own, other, mean, low, high = (
        read.number(metric.get(name)) for name in ("derived", "parent", "difference", "low", "high")
    )
    if mean is None:
        mean = None if own is None or other is None else own - other
    if mean is None:
        return words.NONE
    digits = words.decimals(mean, low, high)
    return f"{mean:+.{digits}f}" + ("" if low is None or high is None else f" ({words.interval(low, high, digits)})")


def _interval_of(metric: Mapping[str, Any], side: str, layout: Layout | None, data: ReportData) -> str:
    """Of the values of each seed. An older result has them only of a metric that is the quality itself, in what it
    says of retrainings; "" of any other."""
    value = read.number(metric.get(side))
    half = read.number(metric.get(f"{side}_half"))
    if value is not None and half is not None and half > 0:
        digits = max(0, min(4, 1 - math.floor(math.log10(half))))  # two that count
        return f" ({words.interval(value - half, value + half, digits, sign=False)})"
    if layout is None or None in (layout.mean, layout.low, layout.high, value) or metric.get("name") != _unit(data):
        return ""
    if not math.isclose(layout.mean or 0.0, value or 0.0, rel_tol=1e-6):
        return ""  # of other networks: an interval that is not of this mean would tell nothing
    return f" ({words.interval(layout.low, layout.high, 4, sign=False)})"
