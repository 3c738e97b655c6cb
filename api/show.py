"""What people see in a terminal: strips of blocks, tables of probabilities, a finished result.

Depth runs left to right in every strip, in the family's colour and with its letter, so that colour is never alone;
`?` marks an undecided slot. `blockwright show`, `watch`, `search --local` and `make demo` print with this file.
L slots, K candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from api.leading import leading
from nas import catalog
from nas.errors import InvalidInput


@dataclass(frozen=True)
class Look:
    """How a candidate is drawn: one letter, and the colour of its family."""

    letter: str
    colour: str


Looks = Mapping[str, Look]


def looks(candidates: Sequence[Mapping[str, Any]]) -> Looks:
    """By label. A block that is not installed here, of another machine's package, is a grey `?`."""
    found = {}
    for candidate in candidates:
        try:
            spec = catalog.block(candidate["block"])
            found[candidate["label"]] = Look(spec.letter, spec.colour)
        except InvalidInput:
            found[candidate["label"]] = Look("?", "#BBBBBB")
    return found


def strip(labels: Sequence[str], looks: Looks, undecided: Sequence[int] = ()) -> Text:
    """One cell a slot, first to last."""
    text = Text()
    for slot, label in enumerate(labels):
        look = looks.get(label, Look("?", "#BBBBBB"))
        mark = "?" if slot in undecided else " "
        text.append(f" {look.letter}{mark}", style=f"bold #000000 on {look.colour}")
    return text


def leading_strip(
    labels: Sequence[str],
    looks: Looks,
    probabilities: Sequence[Sequence[float | None]],
    null_gaps: Sequence[float | None] | None,
) -> Text:
    """The strip of a search that is under way; an undecided slot names no candidate, not even the first of a tie."""
    leaders, undecided = leading(probabilities, null_gaps)
    shown = ["" if slot in undecided else labels[index] for slot, index in enumerate(leaders)]
    return strip(shown, looks)


def probability_table(
    labels: Sequence[str],
    looks: Looks,
    probabilities: Sequence[Sequence[float | None]],
    null_gaps: Sequence[float | None] | None,
    title: str,
) -> Table:
    """A row a slot, a column a candidate; the leader is coloured, an undecided slot says so."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1))
    table.add_column("slot", justify="right")
    for label in labels:
        table.add_column(f"{looks[label].letter} {label}" if label in looks else label, justify="right")
    table.add_column("")
    leaders, undecided = leading(probabilities, null_gaps)
    for slot, row in enumerate(probabilities):
        cells = []
        for index, value in enumerate(row):
            shown = "-" if value is None else f"{value:.3f}"
            chosen = index == leaders[slot] and slot not in undecided
            look = looks.get(labels[index])
            cells.append(Text(shown, style=f"bold #000000 on {look.colour}" if chosen and look else ""))
        table.add_row(str(slot + 1), *cells, "undecided" if slot in undecided else "")
    return table


def result(found: Mapping[str, Any]) -> RenderableType:
    """A finished result.json: probabilities, architecture, rule, quality, latency, export.

    Args:
        found: what `/report` answers and result.json holds.
    """
    drawn = looks(found["search"]["candidates"])
    parts: list[RenderableType] = []
    for each in found["probabilities"]:
        title = f"probabilities of seed {each['seed']}" + (f", sample {each['sample']}" if each["sample"] else "")
        title += f" after {each['step']} steps"
        parts.append(probability_table(each["labels"], drawn, each["probabilities"], each.get("null_gaps"), title))
        parts.append(Text())
    parts.append(_architectures(found, drawn))
    parts.append(Text())
    parts.append(_figures(found, drawn))
    return Group(*parts)


def _architectures(found: Mapping[str, Any], drawn: Looks) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    chosen = found["derived"]
    table.add_row(
        "architecture", Text(chosen["string"], style="bold"), strip(chosen["slots"], drawn, chosen["undecided"])
    )
    for each in found["architectures"]:
        if each["role"] != "parent":
            name = f"  {each['role']}, seed {each['seed']}"
            table.add_row(name, each["string"], strip(each["slots"], drawn, each["undecided"]))
    parent = found["parent"]
    if parent is not None:
        table.add_row("parent", parent["string"], strip(parent["slots"], drawn))
    return table


def decimals(*values: float) -> int:
    """Three, or as many more, up to six, as the largest of the values needs to show two digits that are not 0."""
    largest = max(map(abs, values))
    return 3 if not largest else max(3, min(6, 1 - math.floor(math.log10(largest))))


def _figures(found: Mapping[str, Any], drawn: Looks) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column()
    table.add_column(overflow="fold")
    quality, latency, export = found["quality"], found["latency"], found["export"]
    letters = [look.letter for look in drawn.values()]
    if len(set(letters)) < len(letters):  # several candidates of one block, which the strip does not tell apart
        table.add_row("slots", Text(", ".join(found["derived"]["slots"])))
    table.add_row("rule", Text(found["rule"]["statement"]))
    if quality is not None:
        counted = "examples" if str(found["search"].get("objective")).endswith("_classification") else "windows"
        digits = decimals(quality["difference"], quality["low"], quality["high"])
        table.add_row(
            "test quality",
            f"{quality['derived_bits_per_byte']:.3f} {quality.get('unit', 'bits per byte')}, "
            f"parent {quality['parent_bits_per_byte']:.3f}: "
            f"{quality['difference']:+.{digits}f} ({quality['low']:+.{digits}f} to {quality['high']:+.{digits}f}, 95%; "
            f"{quality['n_windows']} {counted}, {_count(quality['n_seeds'], 'seed')})",
        )
        table.add_row("verdict", Text(quality["verdict"] + _VERDICTS[quality["verdict"]], style="bold"))
    for metric in found.get("metrics", ()):  # results of older versions have none
        if quality is None or metric["name"] != quality["unit"]:
            table.add_row(metric["name"], _metric(metric))
    if found.get("lengths"):
        table.add_row("by length", Text("; ".join(map(_at_length, found["lengths"]))))
    if latency is not None:
        table.add_row("latency", _latency(latency))
    for each in found.get("latencies", ())[1:]:
        serve = each["serve"]
        table.add_row(f"  {serve['mode']}, {serve['batch']} x {serve['query_length']} tokens", _latency(each))
    table.add_row(
        "export",
        f"{export['file']}, logits equal to the trained model's within {export['logits_max_abs_difference']:.1e}",
    )
    table.add_row("seconds", ", ".join(f"{name} {value:.0f}" for name, value in found["seconds"].items()))
    return table


def _at_length(found: Mapping[str, Any]) -> str:
    """The test part in windows of one length, derived and parent; why where one has no figure."""
    told = []
    for name in ("derived", "parent"):
        score = found[name]
        if score is not None:
            figure = f"{score['bits']:.3f}" if score["why"] is None else f"none: {score['why']}"
            told.append(figure if name == "derived" else f"parent {figure}")
    verdict = "" if found["difference"] is None else f" ({found['difference']['verdict']})"
    return f"{found['length']} tokens {', '.join(told)}{verdict}"


def _latency(latency: Mapping[str, Any]) -> str:
    return (
        f"{latency['ratio']:.3f} of the parent's ({latency['low']:.3f} to {latency['high']:.3f}; repeatability "
        f"{latency['repeatability']:.3f}): {latency['derived_ms']:.2f} ms against {latency['parent_ms']:.2f} ms"
    )


def _metric(metric: Mapping[str, Any]) -> str:
    """The value with what it is to be held against."""
    values = {name: metric.get(name) for name in ("derived", "parent", "majority", "chance", "best")}
    told = [f"{name} {value:.4g}" for name, value in values.items() if value is not None]
    return f"{', '.join(told) or 'none'} ({metric['unit']})"


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


_VERDICTS = {
    "better": " than the parent on test",
    "worse": " than the parent on test",
    "cannot tell": ": the interval holds both better and worse",
}


def print_result(found: Mapping[str, Any], console: Console | None = None) -> None:
    """Print a finished result.json; see `result`."""
    (console or terminal()).print(result(found))


def terminal() -> Console:
    """The console that everything is printed on: as wide as the terminal, and wide enough where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 140))
