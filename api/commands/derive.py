"""`blockwright derive`: a search's best architectures under other constraints, from what it has stored."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from api import show
from api.commands.connection import DataDir, SearchId, Url, chosen, connect
from api.commands.refuse import Refused
from api.looks import Looks, looks, strip
from api.strict_json import InvalidJson, parse

_COSTS = {"latency": "ms", "parameters": "parameters", "flops": "FLOPs", "cache-bytes": "bytes"}
_BOUND = re.compile(r"(label:)?([^<>=@:]+)(<=|>=|<)(.+)")


def register(app: typer.Typer) -> None:
    app.command()(derive)


def derive(
    search_id: SearchId = None,
    at_most: Annotated[
        list[str] | None,
        typer.Option(
            "--at-most",
            metavar="COST=VALUE",
            help="latency=5 in ms, parameters, flops or cache-bytes; latency=0.8x is of the interleaved parent's.",
        ),
    ] = None,
    count: Annotated[
        list[str] | None,
        typer.Option("--count", metavar="FAMILY<=N", help="Slots of a family: attention<=4, identity>=2."),
    ] = None,
    ratio: Annotated[
        list[str] | None,
        typer.Option("--ratio", metavar="FAMILY>=P", help="All blocks : blocks of a family: attention>=5."),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option("--forbid", metavar="LABEL@SLOTS", help="Not there: sgu@1-4; slots count from 1."),
    ] = None,
    force: Annotated[
        list[str] | None,
        typer.Option("--force", metavar="LABEL@SLOTS", help="There: attention@1; attention,mgk@3-5 for one of them."),
    ] = None,
    cut: Annotated[
        list[str] | None,
        typer.Option(
            "--cut",
            metavar="FAMILY<SLOT",
            help="Only before a slot or a share of the depth, attention<8 or attention<2/3; only from one: sgu>=4.",
        ),
    ] = None,
    mixers_apart: Annotated[
        bool, typer.Option("--mixers-apart", help="No mixer directly behind a mixer; skipped slots part none.")
    ] = False,
    constraints: Annotated[
        Path | None, typer.Option("--constraints", help="File with the constraints as JSON; options add to them.")
    ] = None,
    k: Annotated[int, typer.Option("-k", "--best", help="How many architectures, each another network.")] = 1,
    objective: Annotated[
        str | None, typer.Option("--objective", help="probability, or nats as a parsimony pass measured them.")
    ] = None,
    front: Annotated[
        str | None, typer.Option("--front", metavar="COST", help="Also the Pareto front against a cost.")
    ] = None,
    points: Annotated[int, typer.Option("--points", help="Points of the front, at most.")] = 20,
    sample: Annotated[int | None, typer.Option("--sample", help="Default: the one that the search chose.")] = None,
    seed: Annotated[list[int] | None, typer.Option("--seed", help="Only this seed; may be given again.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the service's JSON.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Print a search's best architectures under other constraints; nothing is trained. FAMILY may be label:LABEL."""
    given = _file(constraints)
    budget = {**given.get("budget", {}), **dict(map(_at_most, at_most or ()))}
    body = {
        **given,
        **({"budget": budget} if budget else {}),
        "counts": [*given.get("counts", ()), *(_bounded(text, "--count", whole=True) for text in count or ())],
        "ratios": [*given.get("ratios", ()), *(_bounded(text, "--ratio", whole=False) for text in ratio or ())],
        "forbidden": [*given.get("forbidden", ()), *(each for text in forbid or () for each in _placed(text))],
        "forced": [*given.get("forced", ()), *(each for text in force or () for each in _placed(text))],
        "cuts": [*given.get("cuts", ()), *map(_cut, cut or ())],
        "mixers_apart": mixers_apart or given.get("mixers_apart", False),
    }
    options: dict[str, Any] = {"k": k, "objective": objective, "sample": sample, "seeds": seed or None}
    if front is not None:
        options["front"] = {"cost": front.replace("-", "_"), "points": points}
    with connect(url, data_dir) as client:
        search_id = chosen(client, search_id)
        found = client.derive(search_id, body, **options)
        candidates = client.get(search_id)["request"]["space"]["candidates"]
    if as_json:
        print(json.dumps(found, indent=1))
        return
    show.terminal().print(drawn(found, looks(candidates)))


def drawn(found: Mapping[str, Any], look: Looks) -> RenderableType:
    """The service's answer for people."""
    what = "log-probability" if found["objective"] == "probability" else "nats over the path of the parsimony pass"
    parts: list[RenderableType] = [Text(f"ranked by {what}; no network was trained for this, latency is predicted")]
    for each in found["seeds"]:
        phase = f", {each['phase']}" if each["phase"] else ""
        title = f"seed {each['seed']} after {each['step']:,} steps ({each['state']}{phase})"
        if each["reason"] is not None:
            parts += [Text(), Text(f"{title}: {each['reason']}")]
            continue
        parts += [Text(), _table(title, each["architectures"], found, look)]
        if each["front"] is not None:
            front = each["front"]
            rest = "all of it" if front["complete"] else "more lie between"
            name = f"front against {front['cost'].replace('_', ' ')}, {len(front['points'])} points, {rest}"
            parts.append(_table(name, front["points"], found, look))
    agreed = found["agreement"]
    if agreed is not None and agreed["n_seeds"] > 1:
        parts += [Text(), _agreement(agreed, look)]
    return Group(*parts)


def _table(title: str, rows: Sequence[Mapping[str, Any]], found: Mapping[str, Any], look: Looks) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1))
    table.add_column("")
    table.add_column("")
    measured = any(row["nats"] is not None for row in rows)
    for name in ("log p", *(["nats"] if measured else []), *found["costs"], "of parent"):
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        nats = [] if not measured else [f"{row['nats']:.4f}{'*' if row['guessed'] else ''}"]
        costs = [_told(row["costs"][name]["value"]) for name in found["costs"]]
        latency = row["costs"]["latency"] or row["costs"]["flops"]
        ratio = None if latency is None else latency["ratio_to_parent"]
        table.add_row(
            row["string"],
            strip(row["slots"], look, row["undecided"]),
            f"{row['log_probability']:.3f}",
            *nats,
            *costs,
            "-" if ratio is None else f"{ratio:.2f}",
        )
    if measured and any(row["guessed"] for row in rows):
        table.caption = "* not all slots were measured: the others are read from alpha"
        table.caption_justify = "left"
    return table


def _agreement(agreed: Mapping[str, Any], look: Looks) -> Table:
    """How many seeds have the label that most of them have, slot by slot."""
    n = agreed["n_seeds"]
    table = Table(box=None, show_header=False, padding=(0, 1))
    different = agreed["n_networks"]
    networks = "one network" if different == 1 else f"{different} different networks"
    table.add_row(f"the best of {n} seeds", f"{networks}, whatever slots are skipped")
    letters = [look[each["label"]].letter if each["label"] in look else "?" for each in agreed["slots"]]
    agree = "  ".join(
        f"{slot}:{letter} {each['n_seeds']}/{n}"
        for slot, (letter, each) in enumerate(zip(letters, agreed["slots"], strict=True), 1)
    )
    table.add_row("agreement by slot", agree)
    families = ", ".join(
        f"{family} {each['least']}" + ("" if each["least"] == each["most"] else f" to {each['most']}")
        for family, each in agreed["families"].items()
    )
    table.add_row("slots of", families)
    return table


def _told(value: float) -> str:
    return f"{value:,.0f}" if value >= 1e4 or value == round(value) else f"{value:.4g}"


def _file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        value = parse(path.read_bytes())
    except InvalidJson as error:
        raise Refused(f"{path} is no JSON of constraints: {error}") from None
    if not isinstance(value, dict):
        raise Refused(f'{path} is no JSON of constraints; it must be an object, such as {{"mixers_apart": true}}')
    return value


def _number(text: str, option: str, whole: bool = False) -> float:
    try:
        if len(text) > 20 or "e" in text.lower():  # 1e999999999 would be written out
            raise ValueError
        value = float(Fraction(text))
        if whole and value != int(value):
            raise ValueError
    except (ValueError, ZeroDivisionError, OverflowError):
        kind = "a whole number" if whole else "a number, such as 5 or 2/3"
        raise Refused(f"{option} has {text[:20]!r}; it must be {kind}") from None
    return int(value) if whole else value


def _at_most(text: str) -> tuple[str, dict[str, float]]:
    name, _, value = text.partition("=")
    if name not in _COSTS or not value:
        raise Refused(f"--at-most is {text[:60]!r}; it must be COST=VALUE, of {', '.join(_COSTS)}")
    key = "ratio_to_parent" if value.endswith("x") else "ms" if name == "latency" else "at_most"
    return name.replace("-", "_"), {key: _number(value.removesuffix("x"), "--at-most")}


def _named(found: re.Match[str]) -> dict[str, Any]:
    return {"label" if found[1] else "family": found[2].strip()}


def _bounded(text: str, option: str, *, whole: bool) -> dict[str, Any]:
    found = _BOUND.fullmatch(text)
    if found is None or found[3] == "<" or (found[1] and not whole):
        raise Refused(f"{option} is {text[:60]!r}; it must be FAMILY<=VALUE or FAMILY>=VALUE, such as attention<=4")
    side = "at_most" if found[3] == "<=" else "at_least"
    return {**_named(found), side: _number(found[4], option, whole)}


def _cut(text: str) -> dict[str, Any]:
    found = _BOUND.fullmatch(text)
    if found is None or found[3] == "<=":
        raise Refused(f"--cut is {text[:60]!r}; it must be FAMILY<SLOT or FAMILY>=SLOT, or a share such as 2/3")
    side = "before" if found[3] == "<" else "from"
    value = found[4].strip()
    if not value.isdigit():
        return {**_named(found), f"{side}_share": _number(value, "--cut")}
    return {**_named(found), f"{side}_slot": _from_one(value, text)}


def _placed(text: str) -> list[dict[str, Any]]:
    """One range of slots for each part of LABEL@1,5-8; without slots, all of them."""
    labels, at, slots = text.partition("@")
    found = []
    for part in slots.split(",") if at else [""]:
        match = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part)
        if at and match is None:
            raise Refused(f"{text[:60]!r} is no LABEL@SLOTS, such as sgu@1,5-8")
        ends = {}
        if match is not None:
            ends = {"first": _from_one(match[1], text), "last": _from_one(match[2] or match[1], text)}
        found.append({"labels": labels.split(","), **ends})
    return found


def _from_one(slot: str, text: str) -> int:
    """A slot as JSON counts it, from 0, of one as people do."""
    if len(slot) > 4 or int(slot) == 0:
        raise Refused(f"{text[:60]!r} names slot {slot[:20]}; slots count from 1")
    return int(slot) - 1
