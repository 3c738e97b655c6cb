"""`blockwright estimate FILE`: what a request would take, before it is queued."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from api import show
from api.commands.connection import DataDir, Url, connect
from api.commands.presets import Preset, RequestFile, given


def register(app: typer.Typer) -> None:
    app.command()(estimate)


def estimate(
    request: RequestFile = None,
    preset: Preset = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the service's JSON.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Tell what a request would take: architectures, weight updates, memory and time; nothing is queued."""
    body = given(request, preset)
    with connect(url, data_dir) as client:
        found = client.estimate(body)
    if as_json:
        print(json.dumps(found, indent=1))
        return
    show.terminal().print(drawn(found))


def drawn(found: Mapping[str, Any]) -> Table:
    """The answer of the service as lines for people."""
    space, trials, memory, time = found["space"], found["trials"], found["memory"], found["time"]
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column()
    table.add_column(overflow="fold")
    number = space["n_architectures"]
    told = f"10^{space['log10_architectures']:.1f}" if number is None else f"{number:,}"
    table.add_row("architectures", f"{told} ({space['n_slots']} slots, {space['n_candidates']} candidates)")
    table.add_row(
        "weight updates",
        f"at most {trials['n_steps']:,}: {trials['searches']} x {trials['search_steps']:,} of search, "
        f"{trials['retrainings']} x {trials['retrain_steps']:,} of retraining",
    )
    parent = memory["parent_parameters"]
    table.add_row(
        "parameters",
        f"{_millions(memory['supernet_parameters'])} of the supernet, at most "
        f"{_millions(memory['largest_parameters'])} of a derived network"
        + ("" if parent is None else f", {_millions(parent)} of the parent"),
    )
    if memory["uncounted"]:
        table.add_row("", f"without {', '.join(memory['uncounted'])}, whose class tells no formula")
    table.add_row(
        "memory of a trial",
        f"{_gigabytes(memory['total_bytes'])}: weights {_gigabytes(memory['weight_bytes'])}, gradients "
        f"{_gigabytes(memory['gradient_bytes'])}, moments {_gigabytes(memory['moment_bytes'])}; activations on top",
    )
    if time is None:
        table.add_row("time", Text(f"unknown: {found['time_unknown']}"))
    else:
        table.add_row(
            "time",
            f"at most {_minutes(time['all_s'])} one trial after the other: {_minutes(time['search_trial_s'])} a "
            f"search, {_minutes(time['retraining_s'])} a retraining",
        )
    return table


def _millions(number: int) -> str:
    return f"{number / 1e6:,.2f} M"


def _gigabytes(number: int) -> str:
    return f"{number / 1e9:,.3f} GB"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:,.1f} min"
