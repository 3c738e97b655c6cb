"""What went in: hyper-parameter samples, latency tables, device, software, data, and the request itself."""

from __future__ import annotations

import json

from nas.report import read, words
from nas.report.data import ReportData
from nas.report.document import Code, Line, Paragraph, Part, Ref, Section, Strong, Table, Verbatim, commas
from nas.report.layouts import search_of
from nas.report.outcome import serve_words


def samples(data: ReportData) -> Section | None:
    """Settings of the hyper-parameters in `ranges`; None where one was run."""
    listed = read.mappings(data.found.get("samples"))
    if not listed:
        return None
    rows: list[tuple[Line, ...]] = []
    for each in listed:
        values = read.mapping(each.get("values"))
        told = ", ".join(
            f"{name.rpartition('/')[2]} {words.short(read.number(value))}" for name, value in values.items()
        )
        loss, sd = read.number(each.get("loss")), read.number(each.get("sd"))
        trials = [
            Ref("trial", trial.id)
            for trial in data.trials
            if trial.kind == "search" and trial.sample == each.get("sample")
        ]
        rows.append(
            (
                str(each.get("sample", "?")),
                told,
                words.NONE if loss is None else f"{loss:.4f}" + ("" if sd is None else f" ± {sd:.4f}"),
                str(len(read.items(each.get("seeds")))),
                words.short(read.number(each.get("cost"))),
                " ".join(filter(None, (read.text(each.get("state")), read.text(each.get("reason"))))),
                commas(trials or [search_of(data)]),
            )
        )
    head = ("sample", "values", "loss", "seeds", "cost", "state", "from")
    caption = (
        "validation loss in nats per token, mean ± standard deviation over seeds; cost in the unit of the first bound"
    )
    parts: list[Part] = [Table(caption, head, tuple(rows), frozenset((0, 2, 3, 4)))]
    sentence = read.text(read.at(data.found, "winner", "sentence"))
    if sentence:
        parts.insert(0, Paragraph([Strong(sentence)]))
    return Section("samples", "Hyper-parameters", tuple(parts), (f"/api/v1/searches/{data.search_id}/trials",))


def machine(data: ReportData) -> Section | None:
    """Latency tables with their own error, the device that they hold for, and the software."""
    parts: list[Part] = [*_tables(data), *_entries(data), *_software(data), *_seconds(data)]
    sources = tuple(f"/api/v1/latency-tables/{each.id}" for each in data.tables)
    return Section("machine", "Latency table, device and software", tuple(parts), sources) if parts else None


def _tables(data: ReportData) -> list[Table]:
    told = {each.id: each.body for each in data.tables}
    for each in read.mappings(read.at(data.found, "search", "latency_tables")):
        if (own := read.text(each.get("id"))) is not None:
            told.setdefault(own, each)
    named = read.text(read.at(data.found, "search", "latency_table"))
    if named is not None:
        told.setdefault(named, {})
    rows: list[tuple[Line, ...]] = []
    for own, body in told.items():
        errors = [read.number(body.get(name)) for name in ("error_median", "error_p95")]
        rows.append(
            (
                [Ref("table", own)],
                serve_words(body.get("serve")) if body.get("serve") else words.NONE,
                words.fixed(read.number(body.get("offset_ms")), 4),
                words.fixed(read.number(body.get("scale")), 4),
                *(words.NONE if error is None else f"{error:.1%}" for error in errors),
                str(read.whole(body.get("n_networks")) or words.NONE),
            )
        )
    caption = "latency of a network = offset + scale x the sum of its blocks, with its errors on whole timed networks"
    head = ("table", "holds for", "offset, ms", "scale", "median error", "95% of errors below", "networks timed")
    return [Table(caption, head, tuple(rows), frozenset(range(2, 7)))] if rows else []


def _entries(data: ReportData) -> list[Table]:
    rows: list[tuple[Line, ...]] = []
    for table in data.tables:
        for each in read.mapping(table.body.get("entries")).values():
            rows.append(
                (
                    [Ref("table", table.id)],
                    str(read.at(each, "block") or "?"),
                    [Code(json.dumps(read.mapping(read.at(each, "options")), sort_keys=True))],
                    words.fixed(read.number(read.at(each, "median_ms")), 4),
                    words.fixed(read.number(read.at(each, "iqr_ms")), 4),
                    str(read.whole(read.at(each, "n_runs")) or words.NONE),
                )
            )
    head = ("table", "block", "options", "median, ms", "interquartile range, ms", "runs")
    caption = "each block as its slot runs it, before offset and scale"
    return [Table(caption, head, tuple(rows), frozenset((3, 4, 5)), folded=True)] if rows else []


def device_of(data: ReportData) -> dict[str, str]:
    """What the tables were measured on."""
    device = read.at(data.found, "search", "device") or next((each.body.get("device") for each in data.tables), None)
    return {str(name): str(value) for name, value in read.mapping(device).items()}


def _software(data: ReportData) -> list[Table]:
    software = {
        str(name): str(value) for name, value in read.mapping(read.at(data.found, "search", "software")).items()
    }
    told = {**device_of(data), **software}
    fingerprint = read.text(read.at(data.found, "search", "dataset_fingerprint"))
    named = read.text(read.at(data.request, "task", "dataset"))
    if named:
        told["data"] = named
    if fingerprint:
        told["data, sha256"] = fingerprint
    file, digest = read.text(read.at(data.found, "export", "file")), read.text(read.at(data.found, "export", "sha256"))
    if file and digest:
        told[f"{file}, sha256"] = digest
    rows: list[tuple[Line, ...]] = list(told.items())
    return [Table("device, software and content hashes", ("what", "is"), tuple(rows))] if rows else []


def _seconds(data: ReportData) -> list[Table]:
    found = read.mapping(data.found.get("seconds"))
    rows: list[tuple[Line, ...]] = [(str(name), words.fixed(read.number(value), 1)) for name, value in found.items()]
    caption: Line = ["seconds of each stage of ", search_of(data)]
    return [Table(caption, ("stage", "seconds"), tuple(rows), frozenset((1,)), folded=True)] if rows else []


def request(data: ReportData) -> Section:
    """The request with every default written out: submitted again it is the same search."""
    text = json.dumps(data.request, indent=2, ensure_ascii=False)
    line = "With every default written out; on the same data, table, device and software it gives the same bits again."
    return Section(
        "request",
        "The exact request",
        (Paragraph(line), Verbatim("Request (JSON)", text, "json")),
        (f"/api/v1/searches/{data.search_id}",),
    )
