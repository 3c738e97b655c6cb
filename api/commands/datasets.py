"""`blockwright datasets`: those of a running service; list them, add one with a progress bar, show, remove."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from api import show as drawing
from api import show_dataset as showing
from api.client import Client
from api.commands.connection import DataDir, Url, connect
from api.commands.files import checked_name
from api.commands.sources import Source, chosen
from nas.ingest.options import CORPORA, Compression, Dtype, Format

AsJson = Annotated[bool, typer.Option("--json", help="Print the service's JSON.")]
Name = Annotated[str, typer.Argument(help="Name of the dataset.")]
commands = typer.Typer(help="Datasets to train on, and tokenizers.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="datasets")


@commands.callback()
def datasets(context: typer.Context, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Datasets and tokenizers: list (the default), add, show, remove."""
    if context.invoked_subcommand is None:
        list_texts(as_json, url, data_dir)


@commands.command("list")
def list_texts(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """List the built-in datasets, synthetic tasks and what was uploaded."""
    with connect(url, data_dir) as client:
        found = client.datasets()
    if as_json:
        print(json.dumps(found, indent=1))
        return
    table = Table(box=None, padding=(0, 1))
    for name in ("name", "kind", "bytes", "holds", "sha256", "in use", "description"):
        wraps = name in ("holds", "description")
        table.add_column(name, no_wrap=not wraps, justify="right" if name in ("bytes", "in use") else "left")
    for each in found:
        size = "" if each["n_bytes"] is None else f"{each['n_bytes']:,}"
        uses = str(each["n_uses"] or "")
        sha256 = (each["fingerprint"] or "")[:12]
        description = Text(each["description"] if each["built_in"] else "")
        table.add_row(each["name"], each["kind"], size, showing.rows(each), sha256, uses, description)
    drawing.terminal().print(table)


@commands.command()
def add(
    name: Name,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="File, or folder of text files; - reads standard input."),
    ] = None,
    format: Annotated[Format, typer.Option(help="Of the file; auto: by its name or first bytes.")] = "auto",
    compression: Annotated[Compression, typer.Option(help="Of the file; auto: by its name or first bytes.")] = "auto",
    text: Annotated[str | None, typer.Option(help="Field of the rows with a document; default: text.")] = None,
    pair: Annotated[str | None, typer.Option(help="Field with a second text.")] = None,
    label: Annotated[str | None, typer.Option(help="Field with the label; default: label.")] = None,
    words: Annotated[str | None, typer.Option(help="Field with a list of words, instead of --text.")] = None,
    labels: Annotated[str | None, typer.Option(help="Field with a label for each word.")] = None,
    part: Annotated[str | None, typer.Option(help="Part of all rows: train, validation or test.")] = None,
    ends: Annotated[
        str | None, typer.Option(metavar="A,B", help="Of a text: bytes where training and validation part end.")
    ] = None,
    dtype: Annotated[Dtype | None, typer.Option(help="Of token ids; default: as FILE.json says.")] = None,
    vocab_size: Annotated[int | None, typer.Option(help="Of token ids; default: as FILE.json says.")] = None,
    eos_id: Annotated[int | None, typer.Option(help="Id that ends a document; default: as FILE.json says.")] = None,
    corpus: Annotated[
        str | None, typer.Option("--as", metavar="CORPUS", help=f"Standard corpus: {', '.join(CORPORA)}.")
    ] = None,
    hub: Annotated[str | None, typer.Option(metavar="DATASET[:CONFIG]", help="Of Hugging Face, by name.")] = None,
    from_disk: Annotated[Path | None, typer.Option(help="Folder that Dataset.save_to_disk has written.")] = None,
    split: Annotated[str | None, typer.Option(help="Of --hub or --from-disk; default: all.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Add a dataset or a tokenizer.json; the same content under the same name again changes nothing."""
    checked_name(name)
    options: dict[str, Any] = {
        "format": format,
        "compression": compression,
        "text": text,
        "pair": pair,
        "label": label,
        "words": words,
        "labels": labels,
        "part": part,
        "ends": ends,
        "dtype": dtype,
        "vocab_size": vocab_size,
        "eos_id": eos_id,
    }
    source = chosen(path, options, corpus=corpus, hub=hub, from_disk=from_disk, split=split)
    with connect(url, data_dir) as client:
        added = send(client, name, source)
    told = showing.rows(added)
    held = f", {told}" if told else ""
    line = f"{name}: {added['n_bytes']:,} bytes{held}, sha256 {added['fingerprint'][:12]}"
    drawing.terminal().print(line, markup=False, soft_wrap=True)


def send(client: Client, name: str, source: Source) -> dict[str, Any]:
    """Upload a source, under a progress bar where somebody watches; all sent, it says that the service reads it."""
    console = drawing.terminal()
    columns = (
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None)

        def told(sent: int, total: int | None) -> None:
            if sent == total:
                bar.update(task, description=f"{name}: the service reads it", completed=sent, total=None)
            else:
                bar.update(task, completed=sent, total=total)

        return client.add_dataset(name, source.content, progress=told, **source.options)


@commands.command()
def show(name: Name, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Show a dataset: size, parts, labels, lengths, first rows, what it was encoded with, and who uses it."""
    with connect(url, data_dir) as client:
        found = client.dataset(checked_name(name))
    if as_json:
        print(json.dumps(found, indent=1))
        return
    console = drawing.terminal()
    for line in showing.lines(found):
        console.print(line)


@commands.command()
def remove(name: Name, url: Url = None, data_dir: DataDir = None) -> None:
    """Remove an upload that no queued or running search names."""
    with connect(url, data_dir) as client:
        client.remove_dataset(checked_name(name))
    drawing.terminal().print(f"removed {name}", markup=False)
