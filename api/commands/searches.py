"""Commands that talk to a running service: submit, watch, list, show, log, cancel, resume, delete, download."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from api import show as drawing
from api.client import Client
from api.commands.connection import DataDir, SearchId, Url, checked, chosen, connect
from api.commands.datasets import send
from api.commands.files import check_read, named_file
from api.commands.layout import Around, Forbid, built_around
from api.commands.presets import Preset, RequestFile, given
from api.commands.refuse import Refused
from api.commands.sources import plain_file
from api.foreseen import sentence
from api.looks import looks as look_of
from api.plain import plain
from api.watching import Display, Picture
from nas.config.space import SearchSpace
from nas.cost import LatencyTable
from nas.errors import InvalidInput
from nas.presets import expand

AsJson = Annotated[bool, typer.Option("--json", help="Print the service's JSON.")]
_NEWEST_ONLY = 1_000_000  # a stride so long that only step 0 and each trial's newest step are left
_STATE_STYLES = {"succeeded": "green", "failed": "red", "cancelled": "yellow", "running": "cyan"}


def register(app: typer.Typer) -> None:
    for command in (submit, watch, show, log, cancel, resume, delete, download):
        app.command()(command)
    app.command("list")(list_searches)


def submit(
    request: RequestFile = None,
    preset: Preset = None,
    around: Around = None,
    forbid: Forbid = None,
    watch: Annotated[bool, typer.Option("--watch", help="Follow it to its end.")] = False,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="NAME=FILE",
            help="Upload what the request names, dataset or tokenizer; FILE?text=FIELD&label=FIELD tells fields.",
        ),
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Queue a search."""
    body = built_around(given(request, preset), around, forbid)
    files = dict(named_file(each) for each in data or [])
    task = expand(body).get("task")
    task = task if isinstance(task, dict) else {}
    tokenizer = task.get("tokenizer")
    tokenizer = tokenizer.get("name") if isinstance(tokenizer, dict) else None
    check_read(files, task.get("dataset"), tokenizer)
    with connect(url, data_dir) as client:
        for name, file in files.items():
            said = {"format": "tokenizer"} if name == tokenizer else file.options
            send(client, name, plain_file(file.path, dict(said)))
        created = client.submit(body)
        print(created["id"])
        if watch:
            raise typer.Exit(_watch(client, created["id"]))


def watch(search_id: SearchId = None, url: Url = None, data_dir: DataDir = None) -> None:
    """Follow a search to its end: stage, step, losses, time left, leading blocks. Ctrl-C leaves it running."""
    with connect(url, data_dir) as client:
        raise typer.Exit(_watch(client, chosen(client, search_id)))


def list_searches(
    state: Annotated[str | None, typer.Option("--state", help="Only searches in this state.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List searches, newest first."""
    with connect(url, data_dir) as client:
        found = list(client.list(state=state))
    if as_json:
        _print_json(found)
        return
    if not found:
        drawing.terminal().print("there is no search; submit one with `blockwright submit FILE`")
        return
    table = Table(box=None, padding=(0, 1))
    for name in ("id", "name", "state", "stage", "share", "created"):
        table.add_column(name, no_wrap=name == "id")
    for each in found:
        share = f"{each['progress']['share']:.0%}"
        state_text = Text(_state(each), style=_STATE_STYLES.get(each["state"], ""))
        table.add_row(each["id"], Text(each["name"]), state_text, each["stage"] or "", share, each["created_at"][:19])
    drawing.terminal().print(table)


def show(search_id: SearchId = None, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Show a search: its state, its probabilities, and once it has succeeded its result."""
    with connect(url, data_dir) as client:
        found = client.get(chosen(client, search_id))
        if as_json:
            _print_json(found)
            return
        console = drawing.terminal()
        console.print(_headline(found))
        for event in client.warnings(found["id"]):
            console.print(f"warning: {plain(event['data']['message'])}", markup=False, style="yellow", soft_wrap=True)
        if found["result"] is not None:
            drawing.print_result(found["result"], console)
            return
        if found["estimate"] is not None:
            console.print(sentence(found["estimate"]), markup=False, soft_wrap=True)
        seeds = {trial["id"]: trial for trial in client.trials(found["id"]) if trial["kind"] == "search"}
        newest = {row["trial"]: row for row in client.probabilities(found["id"], stride=_NEWEST_ONLY, evidence=True)}
        looks = look_of(found["request"]["space"]["candidates"])
        slot_ms = _slot_ms(client, found)
        for trial_id, row in newest.items():
            seed = f"seed {seeds[trial_id]['seed']}"
            if seeds[trial_id]["sample"]:
                seed += f", sample {seeds[trial_id]['sample']}"
            console.print(drawing.evidence(found["labels"], looks, row, slot_ms, seed))
            console.print(drawing.leading_strip(found["labels"], looks, row))


def _slot_ms(client: Client, search: dict[str, Any]) -> dict[str, float] | None:
    """Milliseconds of each candidate by the search's latency table; None before it has one that can be read here."""
    if search["latency_table"] is None:
        return None
    try:
        table = LatencyTable.model_validate(client.latency_table(search["latency_table"]))
        space = SearchSpace.model_validate(search["request"]["space"])
        return dict(zip(search["labels"], table.slot_ms(space), strict=True))
    except (ValidationError, InvalidInput):  # of another version, or with blocks that are not installed here
        return None


def log(
    search_id: SearchId = None,
    tail: Annotated[int, typer.Option("--tail", min=0, max=1_000_000, help="Bytes from its end.")] = 20_000,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Print the end of what a search's runner has printed: where to look when one has failed."""
    with connect(url, data_dir) as client:
        print(client.log(chosen(client, search_id), tail=tail), end="")


def cancel(search_id: SearchId = None, url: Url = None, data_dir: DataDir = None) -> None:
    """Cancel a search; what it has done so far is kept, and `resume` takes it up."""
    with connect(url, data_dir) as client:
        drawing.terminal().print(_headline(client.cancel(chosen(client, search_id))))


def resume(search_id: SearchId = None, url: Url = None, data_dir: DataDir = None) -> None:
    """Queue a failed or cancelled search again; it goes on from its checkpoints."""
    with connect(url, data_dir) as client:
        drawing.terminal().print(_headline(client.resume(chosen(client, search_id))))


def delete(
    search_id: Annotated[str, typer.Argument(help="Id of the search.")], url: Url = None, data_dir: DataDir = None
) -> None:
    """Delete a finished search with all its files."""
    with connect(url, data_dir) as client:
        client.delete(checked(search_id))
    drawing.terminal().print(f"deleted {search_id}")


def download(
    search_id: SearchId = None,
    path: Annotated[Path, typer.Argument(help="File or folder to write.")] = Path("."),
    kind: Annotated[str, typer.Option("--kind", help="Which artifact: export, result, report or markdown.")] = "export",
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Download the model of a finished search, or another artifact; its sha256 is checked."""
    with connect(url, data_dir) as client:
        try:
            written = client.download(chosen(client, search_id), path, kind=kind)
        except OSError as error:
            raise Refused(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
    print(written)


def _watch(client: Client, search_id: str) -> int:
    """Exit status: 0 when the search has succeeded, else 1."""
    console = drawing.terminal()
    search = client.get(search_id)
    console.print(_headline(search))
    try:
        with Display(Picture(search["request"]), console) as display:
            for event in client.events(search_id):
                display.tell(event["type"], event["data"], datetime.fromisoformat(event["at"]).timestamp())
    except KeyboardInterrupt:
        console.print(f"the search goes on; `blockwright watch {search_id}` follows it again")
        raise
    search = client.get(search_id)
    if search["state"] != "succeeded":
        console.print(_headline(search))
        return 1
    drawing.print_result(search["result"], console)
    return 0


def _headline(search: dict[str, Any]) -> Text:
    text = Text(f"{search['name']}  {search['id']}  ")
    text.append(_state(search), style=f"bold {_STATE_STYLES.get(search['state'], '')}")
    if search["stage"] and search["state"] == "running":
        text.append(f"  {search['stage']}, {search['progress']['share']:.0%}")
    if search["reason"]:
        text.append(f": {plain(search['reason'])}")  # it may quote what a program has printed
    return text


def _state(search: dict[str, Any]) -> str:
    return "cancelling" if search["cancelling"] else str(search["state"])


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1))
