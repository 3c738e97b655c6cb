"""A report out of what a search has left: its sections in reading order, and last where each figure comes from."""

from __future__ import annotations

from nas.report import buys, curves, doubts, front, inputs, outcome, placement, probabilities, reach, summary
from nas.report.data import ReportData
from nas.report.document import (
    ORIGINS,
    Bullets,
    Code,
    Kind,
    Line,
    Paragraph,
    Part,
    Ref,
    Report,
    Section,
    Table,
    commas,
    refs,
)

_RESULT = "result.json"


def compose(data: ReportData) -> Report:
    """Every section that has anything to tell; a search under way, failed or of an older version has fewer of them."""
    sections = [
        summary.section(data),
        outcome.comparisons(data),
        outcome.architectures(data),
        front.section(data),
        probabilities.section(data),
        buys.section(data),
        placement.section(data),
        reach.section(data),
        curves.section(data),
        inputs.samples(data),
        _warnings(data),
        doubts.section(data),
        inputs.machine(data),
        inputs.request(data),
    ]
    told = [each for each in sections if each is not None]
    return Report(f"Search {data.name}", (*told, _origins(data, told)))


def _warnings(data: ReportData) -> Section | None:
    """What the search said of itself; each sentence once."""
    cut = [f"time was up: {each}" for each in data.found.get("cut_short") or () if isinstance(each, str)]
    lines = list(dict.fromkeys([*data.warnings, *cut]))
    failed: list[Line] = [
        [f"{each.name} ", Ref("trial", each.id), f" {each.state}: {each.reason}"]
        for each in data.trials
        if each.reason and each.state != "succeeded"
    ]
    if not lines and not failed:
        return None
    path = f"/api/v1/searches/{data.search_id}/warnings"
    return Section("warnings", "Warnings told during the search", (Bullets((*lines, *failed)),), (path,))


def _origins(data: ReportData, sections: list[Section]) -> Section:
    found = refs(sections)
    places = _address if data.origin == "service" else _file
    rows: list[tuple[Line, ...]] = [(each.kind, each.short, [each], [Code(places(each, data))]) for each in found]
    what = "address of the service" if data.origin == "service" else "file of the folder"
    parts: list[Part] = [
        Paragraph(
            "Ids stand beside the figures in a short form; here they are whole, each with the place to read it again."
        ),
        Table("every id in this report", ("of", "short", "whole", what), tuple(rows)),
    ]
    lines: list[Line] = [
        [f"{each.title}: ", *commas([Code(place) for place in sources])]
        for each in sections
        if (sources := _sources(each, data))
    ]
    parts.append(Bullets(tuple(lines)))
    return Section(ORIGINS, "Where each figure comes from", tuple(parts))


_FILES: dict[str, tuple[str, ...]] = {  # of a folder, by section
    "summary": ("request.json", _RESULT),
    "probabilities": (_RESULT, "trials/search-*/reports.jsonl"),
    "buys": (_RESULT, "trials/search-*/reports.jsonl"),
    "curves": ("trials/*/reports.jsonl",),
    "warnings": ("warnings.json", "trials/*/reports.jsonl", _RESULT),
    "machine": ("table.json", "tables/", _RESULT),
    "request": ("request.json",),
}


def _sources(section: Section, data: ReportData) -> list[str]:
    """Where all of a section's figures can be read again; [] of one that only draws on the others."""
    if not section.sources:
        return []
    if data.origin == "service":
        return [f"GET {path}" for path in section.sources]
    return [each for each in _FILES.get(section.id, (_RESULT,)) if each != _RESULT or data.result is not None]


def _address(ref: Ref, data: ReportData) -> str:
    search = f"/api/v1/searches/{data.search_id}"
    found: dict[Kind, str] = {
        "search": f"{search}/report",
        "trial": f"{search}/reports?trial={ref.id}",
        "architecture": f"/api/v1/architectures/{ref.id}",
        "rule": f"/api/v1/rules/{ref.id}",
        "table": f"/api/v1/latency-tables/{ref.id}",
    }
    return f"GET {found[ref.kind]}"


def _file(ref: Ref, data: ReportData) -> str:
    found: dict[Kind, str] = {
        "search": "result.json",
        "trial": f"trials/{ref.id}/reports.jsonl",
        "architecture": "result.json",
        "rule": "result.json",
        "table": "table.json, tables/",
    }
    return found[ref.kind]
