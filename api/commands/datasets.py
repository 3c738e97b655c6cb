"""`blockwright datasets`: the texts of a running service; list them, add one with a progress bar, show, remove."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from api import show as drawing
from api.client import BLOCK, Client
from api.commands.connection import DataDir, Url, connect
from api.commands.files import checked_name
from api.commands.refuse import Refused
from api.plain import plain

AsJson = Annotated[bool, typer.Option("--json", help="Print the service's JSON.")]
Name = Annotated[str, typer.Argument(help="Name of the text.")]
commands = typer.Typer(help="Texts to train on.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="datasets")


@commands.callback()
def datasets(context: typer.Context, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Texts to train on: list (the default), add, show, remove."""
    if context.invoked_subcommand is None:
        list_texts(as_json, url, data_dir)


@commands.command("list")
def list_texts(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """List the built-in texts and the uploaded ones."""
    with connect(url, data_dir) as client:
        found = client.datasets()
    if as_json:
        print(json.dumps(found, indent=1))
        return
    table = Table(box=None, padding=(0, 1))
    for name in ("name", "bytes", "sha256", "in use", "description"):
        table.add_column(
            name, no_wrap=name != "description", justify="right" if name in ("bytes", "in use") else "left"
        )
    for each in found:
        size = "" if each["n_bytes"] is None else f"{each['n_bytes']:,}"
        uses = str(each["n_uses"] or "")
        table.add_row(each["name"], size, (each["fingerprint"] or "")[:12], uses, Text(each["description"]))
    drawing.terminal().print(table)


@commands.command()
def add(
    name: Name,
    file: Annotated[Path, typer.Argument(help="UTF-8 text; - reads standard input.")],
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Upload a text; the same text under the same name again changes nothing."""
    with connect(url, data_dir) as client:
        added = upload(client, checked_name(name), file)
    drawing.terminal().print(f"{name}: {added['n_bytes']:,} bytes, sha256 {added['fingerprint'][:12]}", markup=False)


def upload(client: Client, name: str, file: Path) -> dict[str, Any]:
    """Upload a file, or standard input for `-`, under a progress bar where somebody watches."""
    source: Path | Iterable[bytes] = file
    if str(file) == "-":
        source = iter(lambda: sys.stdin.buffer.read(BLOCK), b"")
    elif not file.is_file():
        raise Refused(f"no file {str(file)!r}; what is uploaded is one UTF-8 text")
    console = drawing.terminal()
    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None)
        return client.add_dataset(
            name, source, progress=lambda sent, total: bar.update(task, completed=sent, total=total)
        )


@commands.command()
def show(name: Name, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Show a text: its size, who uses it, and how it begins."""
    with connect(url, data_dir) as client:
        found = client.dataset(checked_name(name))
    if as_json:
        print(json.dumps(found, indent=1))
        return
    console = drawing.terminal()
    size = "size known after its first use" if found["n_bytes"] is None else f"{found['n_bytes']:,} bytes"
    console.print(Text(f"{name}  {found['description']}, {size}"))
    if found["fingerprint"]:
        console.print(Text(f"sha256 {found['fingerprint']}"))
    for search_id in found["in_use_by"]:
        console.print(Text(f"in use by {search_id}"))
    if found["excerpt"]:
        console.print(Text(plain(found["excerpt"]), style="dim"))


@commands.command()
def remove(name: Name, url: Url = None, data_dir: DataDir = None) -> None:
    """Remove an uploaded text that no queued or running search names."""
    with connect(url, data_dir) as client:
        client.remove_dataset(checked_name(name))
    drawing.terminal().print(f"removed {name}", markup=False)
