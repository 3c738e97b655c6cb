"""What people see in a terminal: strips of blocks, tables of probabilities, a finished result.

`blockwright show`, `watch`, `search --local` and `make demo` print with this file. L slots, K candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from api.bought import bought_table, held, path_strip
from api.figures import figures, parent_name
from api.looks import Looks, looks, strip
from nas.leading import Matrix, leading


def leading_strip(labels: Sequence[str], drawn: Looks, row: Mapping[str, Any]) -> Text:
    """The strip of a search that is under way: what alpha leads to, and from the parsimony pass on its path.

    By alpha alone an undecided slot names no candidate, not even the first of a tie.

    Args:
        labels: of the candidates, (K,).
        drawn: how they look.
        row: of probabilities, as the service tells it; with evidence, the path's ties are marked.
    """
    leaders, undecided = leading(row["probabilities"], row.get("null_gaps"))
    found = held(row, undecided)
    if found is not None:
        return path_strip(labels, drawn, found)
    return strip(["" if slot in undecided else labels[index] for slot, index in enumerate(leaders)], drawn)


def evidence(
    labels: Sequence[str], drawn: Looks, row: Mapping[str, Any], slot_ms: Mapping[str, float] | None, seed: str
) -> RenderableType:
    """Probabilities with their z, and behind a parsimony pass what each block buys.

    Args:
        labels: of the candidates, (K,).
        drawn: how they look.
        row: of probabilities with its evidence, as the service and result.json tell it.
        slot_ms: milliseconds that a candidate adds to a network, by label; None while they are not known.
        seed: whose they are, in words.
    """
    after = f"after {row['step']} steps"
    title = f"probabilities of {seed} {after}"
    parts = [probability_table(labels, drawn, row["probabilities"], row.get("null_gaps"), title, row.get("z"))]
    found = held(row, leading(row["probabilities"], row.get("null_gaps"))[1])
    if found is not None:
        parts.append(bought_table(labels, drawn, found, slot_ms, f"what each block of {seed} buys {after}"))
    return Group(*parts)


def probability_table(
    labels: Sequence[str],
    looks: Looks,
    probabilities: Matrix,
    null_gaps: Sequence[float | None] | None,
    title: str,
    z: Matrix | None = None,
) -> Table:
    """A row a slot, a column a candidate, each with its z; the leader is coloured, an undecided slot says so."""
    table = Table(title=title, title_justify="left", caption_justify="left", box=None, padding=(0, 1))
    if z is not None:
        table.caption = "beside each the z of its alpha's gradient: its mean over its standard error"
    table.add_column("slot", justify="right")
    for label in labels:
        table.add_column(f"{looks[label].letter} {label}" if label in looks else label, justify="right")
    table.add_column("")
    leaders, undecided = leading(probabilities, null_gaps)
    for slot, row in enumerate(probabilities):
        cells = []
        for index, value in enumerate(row):
            shown = "-" if value is None else f"{value:.3f}"
            if z is not None:
                shown += f" {'-' if z[slot][index] is None else format(z[slot][index], '+.1f'):>5}"
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
        seed = f"seed {each['seed']}" + (f", sample {each['sample']}" if each["sample"] else "")
        parts += [evidence(each["labels"], drawn, each, found["search"].get("slot_ms"), seed), Text()]
    parts += [_architectures(found, drawn), Text(), figures(found, drawn)]
    return Group(*parts)


def _architectures(found: Mapping[str, Any], drawn: Looks) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    chosen = found["derived"]
    table.add_row(
        "architecture", Text(chosen["string"], style="bold"), strip(chosen["slots"], drawn, chosen["undecided"])
    )
    for each in found["architectures"]:
        if each["seed"] is not None:
            name = f"  {each['role']}, seed {each['seed']}"
            table.add_row(name, each["string"], strip(each["slots"], drawn, each["undecided"]))
    parent = found["parent"]
    if parent is not None:
        table.add_row("parent", parent["string"], strip(parent["slots"], drawn))
    for each in found.get("retrained", ()):
        if not each["name"].startswith("derived") and each["name"] != parent_name(found):
            table.add_row(f"  {each['name']}", each["string"], strip(each["slots"], drawn))
    return table


def print_result(found: Mapping[str, Any], console: Console | None = None) -> None:
    """Print a finished result.json; see `result`."""
    (console or terminal()).print(result(found))


def terminal() -> Console:
    """The console that everything is printed on: as wide as the terminal, and wide enough where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 140))
