"""`blockwright rule`: where attention goes at any depth, by the PAR paper's rule or by the rule that a search found."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.text import Text

from api import show
from api.client import Client
from api.commands.connection import DataDir, SearchId, Url, chosen, connect
from api.commands.refuse import Refused
from api.figures import over_seeds
from api.looks import looks, strip
from db import ids
from nas.errors import InvalidInput
from nas.known_rules import SOURCES
from nas.placement import MAX_SLOTS, Spacing, Zone, attention_positions


def register(app: typer.Typer) -> None:
    app.command()(rule)
    app.command()(rules)


def rule(
    blocks: Annotated[int, typer.Option("--blocks", help="Depth: number of blocks.")],
    ratio: Annotated[
        str | None,
        typer.Option("--ratio", help="All blocks : attention blocks, such as 5 or 9/2; default: that of --from."),
    ] = None,
    rule_id: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="RULE_ID", help="A rule that a search found (`blockwright rules`), or par or sandwich."
        ),
    ] = None,
    spacing: Annotated[
        str, typer.Option("--spacing", help="uniform from the zone's first slot to its last, or stride: one gap.")
    ] = "uniform",
    width: Annotated[
        int | None, typer.Option("--width", help="With --from: width d_model; default: that of the search.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="With --from: write the request that trains the layout there."),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option("--zone", help="With --from: found, where the search put attention, or paper: first two thirds."),
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Print where attention goes, by the PAR paper's rule or by that of a search; nobody has trained that layout."""
    value = _ratio(ratio)
    if blocks > MAX_SLOTS:
        raise InvalidInput(f"blocks is {blocks}; it must be at most {MAX_SLOTS}, as many as a search may have")
    if spacing not in get_args(Spacing):
        raise InvalidInput(f"spacing is {spacing!r}; it must be uniform or stride")
    if zone not in (None, *get_args(Zone)):
        raise InvalidInput(f"zone is {zone!r}; it must be found or paper")
    if rule_id is not None:
        with connect(url, data_dir) as client:
            _print_found(client, rule_id, blocks, value, spacing, zone, width, save)
        return
    if width is not None or save is not None:
        raise Refused("--width and --save need --from with the id of a rule that a search found, or par or sandwich")
    if value is None:
        raise Refused("give --ratio, such as --ratio 5, or --from with the id of a rule that a search found")
    if zone == "found":
        raise Refused("--zone found needs --from with the id of a rule that a search found")
    positions = attention_positions(blocks, value, spacing=cast(Spacing, spacing))
    labels = ["attention" if index in positions else "ffn" for index in range(blocks)]
    console = show.terminal()
    console.print(strip(labels, looks([{"label": each, "block": each} for each in ("attention", "ffn")])))
    console.print("".join("A" if label == "attention" else "F" for label in labels))
    console.print(
        f"attention in {len(positions)} of {blocks} blocks, counted from 1: {', '.join(str(p + 1) for p in positions)}"
    )
    console.print("suggested by one paper on one model (arXiv:2009.04534); not measured on your data")


def rules(search_id: SearchId = None, url: Url = None, data_dir: DataDir = None) -> None:
    """List the rules that a search found, each with its id."""
    with connect(url, data_dir) as client:
        search_id = chosen(client, search_id)
        found = client.rules(search_id)
    console = show.terminal()
    if not found:
        console.print(f"search {search_id} has no rule yet; it comes when architectures are derived")
    for each in found:
        told = "" if "kind" not in each["evidence"] else f": {each['verdict']}, {each['evidence']['reason']}"
        console.print(Text(f"{each['id']}  {each['statement']}{over_seeds(each['evidence'])}{told}"), soft_wrap=True)


def _print_found(
    client: Client,
    rule_id: str,
    blocks: int,
    ratio: Fraction | None,
    spacing: str,
    zone: str | None,
    width: int | None,
    save: Path | None,
) -> None:
    known = rule_id in SOURCES
    if not known and not re.fullmatch(ids.PATTERN, rule_id):
        raise Refused(f"{rule_id[:60]!r} is no id of a rule; `blockwright rules` shows them")
    if known and zone == "found":
        raise Refused("--zone found needs --from with the id of a rule that a search found")
    options: dict[str, Any] = {} if known else {"zone": zone or "found"}
    options |= {} if ratio is None else {"ratio": float(ratio)}
    options |= {} if width is None else {"d_model": width}
    layout = client.apply_rule(rule_id, blocks, spacing=spacing, **options)
    console = show.terminal()
    console.print(strip(layout["slots"], looks(layout["request"]["space"]["candidates"])))
    console.print(layout["string"])
    console.print(Text(layout["statement"]), soft_wrap=True)
    costs = layout["costs"]
    cache = "unknown" if costs["cache_bytes"] is None else f"{costs['cache_bytes']:,} bytes"
    latency = costs["no_latency"] or f"{costs['predicted_ms']:.3g} ms by table {costs['latency_table']}"
    console.print(
        Text(
            f"width {layout['d_model']}: {costs['parameters']:,} parameters, {costs['flops']:,} FLOPs a sequence, "
            f"cache {cache}, latency: {latency}"
        ),
        soft_wrap=True,
    )
    if save is not None:
        save.write_text(json.dumps(layout["request"], indent=2) + "\n")
        console.print(Text(f"{save}: submit it to train this layout"), soft_wrap=True)


def _ratio(text: str | None) -> Fraction | None:
    if text is None:
        return None
    try:
        if len(text) > 20 or "e" in text.lower():  # 1e999999999 would be written out
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"ratio is {text[:20]!r}; it must be a number, such as 5 or 9/2") from None
