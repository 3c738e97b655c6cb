"""The head of a report: what was searched, how it ended, and what it amounts to, in a few lines."""

from __future__ import annotations

from nas.report import read, words
from nas.report.data import ReportData
from nas.report.document import Bullets, Code, Line, Paragraph, Part, Piece, Ref, Section, Strong, commas
from nas.report.layouts import origins, parent_name, search_of
from nas.report.looks import string
from nas.report.outcome import compared, latency_verdict, modes, table_of
from nas.report.placement import in_words, kept, statements, verdict
from nas.report.seeds import derived_by_seed, looks_of, seeds_of


def section(data: ReportData) -> Section:
    parts: list[Part] = [Paragraph(_asked(data)), Paragraph(_state(data))]
    found = _found(data)
    if found:
        parts.append(Bullets(tuple(found)))
    return Section("summary", "Summary", tuple(parts), (f"/api/v1/searches/{data.search_id}",))


def _asked(data: ReportData) -> Line:
    request = data.request
    slots, width = (read.whole(read.at(request, "space", name)) for name in ("n_slots", "d_model"))
    labels = list(looks_of(data))
    seeds, length = (
        read.whole(read.at(request, "trials", "n_seeds")),
        read.whole(read.at(request, "task", "train_length")),
    )
    dataset = read.text(read.at(request, "task", "dataset"))
    told = [
        f"which of {words.listed(labels)} each of {words.count(slots, 'slot')} needs" if slots and labels else "",
        f"at width {width}" if width else "",
        f"on {dataset}" if dataset else "",
        f"at {length} tokens" if length else "",
        f"over {words.count(seeds, 'seed')}" if seeds else "",
    ]
    when = f", submitted {data.created_at}" if data.created_at else ""
    return [
        "Search ",
        Ref("search", data.search_id),
        f"{when}, asked {', '.join(filter(None, told)) or 'nothing that is kept'}.",
    ]


def _state(data: ReportData) -> Line:
    if data.result is not None:
        return [
            "It ",
            Strong("succeeded"),
            ". Each figure here, and each table of figures below, has the ids of what it comes from beside it, in its "
            "rows or in its caption; the last section says where each can be read again.",
        ]
    if data.state == "failed":
        return [
            Strong("It failed"),
            f": {data.reason or 'no reason was kept'}. What it had found until then stands below.",
        ]
    at = f" ({data.stage})" if data.stage else ""
    return [
        Strong(f"This report is partial: the search is {data.state}{at}"),
        ". What is known so far stands below; nothing has been compared.",
    ]


def _found(data: ReportData) -> list[Line]:
    lines: list[Line] = []
    derived = read.mapping(data.found.get("derived"))
    if derived:
        slots, open_ = read.texts(derived.get("slots")), read.wholes(derived.get("undecided"))
        seed = read.whole(derived.get("seed"))
        n = len(derived_by_seed(data)) or len(seeds_of(data))
        ties = f", {words.slots(open_)} undecided" if open_ else ", no slot undecided"
        lines.append(
            [
                "Derived: ", Code(string(slots, looks_of(data))),
                f" of seed {seed}, the best validated of {words.count(n, 'seed')}{ties}" if seed is not None else ties,
                *_behind(origins(("derived",), data)), ".",
            ]
        )  # fmt: skip
    advice = read.text(read.at(data.found, "advice", "sentence"))
    if advice:
        lines.append([Strong("So"), ": ", advice.removesuffix("."), *_behind([search_of(data)]), "."])
    # Random placements are one comparison, all together, which the rules tell.
    told = [each for each in compared(data) if not str(read.at(each, "second")).startswith("rule random")]
    lines += [_against(each, data) for each in told]
    for each in modes(data)[:1]:
        table = table_of(each.get("serve"), data)
        refs = [*origins(("derived", parent_name(data)), data), *([table] if table else [])]
        ratio, low, high = (read.number(each.get(name)) for name in ("ratio", "low", "high"))
        lines.append(
            [
                f"Latency against {parent_name(data)}: ", Strong(latency_verdict(low, high)),
                f", {words.fixed(ratio)} of it (95% interval {words.interval(low, high, 3, sign=False)})",
                *_behind(refs), ".",
            ]
        )  # fmt: skip
    for statement in statements(data):
        lines.append(
            [
                "Rule: ",
                Strong(verdict(statement)),
                f": {in_words(statement)} ({statement.get('reason') or 'no reason was kept'})",
                *_behind([kept(statement, data) or search_of(data)]),
                ".",
            ]
        )
    return lines


def _behind(refs: list[Ref]) -> list[Piece]:
    """Ids in brackets."""
    return [" (", *commas(refs), ")"]


def _against(each: object, data: ReportData) -> Line:
    low, high, difference = (read.number(read.at(each, name)) for name in ("low", "high", "difference"))
    digits = max(4, words.decimals(difference, low, high))
    seeds = read.whole(read.at(each, "n_seeds"))
    unit = read.text(read.at(each, "unit")) or "bits per byte"
    return [
        f"{str(read.at(each, 'first')).capitalize()} against {read.at(each, 'second')}: ",
        Strong(read.text(read.at(each, "verdict")) or "cannot tell"),
        f", {words.signed(difference, digits)} {unit} (95% interval {words.interval(low, high, digits)}"
        f"{'' if seeds is None else ', ' + words.count(seeds, 'paired seed')})",
        *_behind(origins([str(read.at(each, name)) for name in ("first", "second")], data)),
        ".",
    ]
