"""`blockwright tables`: the latency tables of a running service; list them, add one, show one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from api import show as drawing
from api.commands.connection import DataDir, Url, connect
from api.commands.files import read_json
from api.commands.refuse import Refused

AsJson = Annotated[bool, typer.Option("--json", help="Print the service's JSON.")]
commands = typer.Typer(help="Latency tables, measured here or brought.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="tables")


@commands.callback()
def tables(context: typer.Context, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Latency tables: list (the default), add, show."""
    if context.invoked_subcommand is None:
        list_tables(as_json, url, data_dir)


@commands.command("list")
def list_tables(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """List the newest tables: what each was measured on, for which serve mode, and how well it predicts."""
    with connect(url, data_dir) as client:
        found = client.latency_tables()
    if as_json:
        print(json.dumps(found, indent=1))
        return
    table = Table(
        box=None, padding=(0, 1), caption="error: of predicting whole networks, median", caption_justify="left"
    )
    for name in ("id", "serves", "error", "entries", "device"):
        numeric = name in ("error", "entries")
        table.add_column(name, no_wrap=name != "device", justify="right" if numeric else "left")
    for each in found:
        device = Text(", ".join(each["device"].values()))
        table.add_row(each["id"], words(each["serve"]), f"{each['error_median']:.1%}", str(each["n_entries"]), device)
    drawing.terminal().print(table)


@commands.command()
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As `measure` writes it; - reads standard input.")],
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Bring a table that was measured elsewhere; a request that names its id in `latency_table` uses it."""
    from nas.cost import LatencyTable

    body = LatencyTable.model_validate(read_json(file)).model_dump(mode="json")
    with connect(url, data_dir) as client:
        added = client.add_latency_table(body)
    line = f"{added['id']}: {words(added['serve'])}, {added['n_entries']} entries"
    drawing.terminal().print(line, markup=False, soft_wrap=True)


@commands.command()
def show(
    table_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the table.")],
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show a table: milliseconds of each candidate, and the fit on whole networks."""
    if not re.fullmatch("[0-9a-f]{32}", table_id):
        raise Refused(f"{table_id[:60]!r} is no id of a latency table; `blockwright tables` lists them")
    with connect(url, data_dir) as client:
        found = client.latency_table(table_id)
    if as_json:
        print(json.dumps(found, indent=1))
        return
    console = drawing.terminal()
    table = Table(box=None, padding=(0, 1))
    for name in ("block", "ms", "iqr", "runs", "options"):
        table.add_column(name, justify="right" if name in ("ms", "iqr", "runs") else "left")
    for entry in found["entries"].values():
        options = Text(", ".join(f"{name} {value}" for name, value in entry["options"].items()))
        figures = f"{entry['median_ms']:.4f}", f"{entry['iqr_ms']:.4f}", str(entry["n_runs"])
        table.add_row(Text(entry["block"]), *figures, options)
    console.print(table)
    lines = (
        f"serves {words(found['serve'])}",
        f"a network takes {found['offset_ms']:.4g} ms and {found['scale']:.3f} times the sum of its slots; error on "
        f"{found['n_networks']} networks: median {found['error_median']:.1%}, 95% {found['error_p95']:.1%}",
        "measured on " + ", ".join(f"{name} {value}" for name, value in found["device"].items()),
    )
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def words(serve: Mapping[str, Any]) -> str:
    """A serve mode as people say it."""
    memory = f" behind {serve['memory_length']}" if serve["memory_length"] else ""
    if serve["mode"] == "decode":
        return f"decode {serve['batch']} x 1 behind {serve['query_length']}"
    return f"{serve['mode']} {serve['batch']} x {serve['query_length']}{memory}"
