"""`blockwright search FILE --local`: the whole search in this process, without server, Ray or database."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.connection import DataDir, settings
from api.commands.files import named_file, read_json
from api.commands.presets import Preset, RequestFile, given
from api.commands.refuse import Refused

if TYPE_CHECKING:
    from nas.config import SearchRequest
    from nas.cost import LatencyTable


def register(app: typer.Typer) -> None:
    app.command()(search)


def search(
    request: RequestFile = None,
    preset: Preset = None,
    local: Annotated[bool, typer.Option("--local", help="Run it in this process.")] = False,
    data: Annotated[
        list[str] | None, typer.Option("--data", metavar="NAME=FILE", help="Make a text file known under a name.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Result folder; default: one in the data folder.")] = None,
    table: Annotated[
        Path | None, typer.Option("--table", help="Latency table (JSON) to use instead of measuring.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Run a search here and now; stopped by Ctrl-C, the same command goes on where it was."""
    if not local:
        same = " ".join([*([str(request)] if request else []), *(["--preset", preset] if preset else [])]) or "FILE"
        raise Refused(f"`search` runs in this process, which --local says; a service takes `blockwright submit {same}`")
    from api import show
    from api.watching import Display, Picture
    from nas.config import SearchRequest
    from nas.cost import LatencyTable

    parsed = SearchRequest.model_validate(given(request, preset))
    files = dict(named_file(each) for each in data or [])
    brought = LatencyTable.model_validate(read_json(table)) if table else None
    parsed = _pinned(parsed, files, brought)
    from workers import inline  # torch takes seconds; what is wrong with the request is said before

    name = hashlib.sha256(parsed.model_dump_json().encode()).hexdigest()[:12]
    folder = out or settings(data_dir).data_dir / "searches" / f"local-{name}"
    console = show.terminal()
    console.print(f"results go to {folder}", markup=False, soft_wrap=True)
    written_out = parsed.model_dump(mode="json")
    try:
        with Display(Picture(written_out), console) as display:
            result = inline.run_local(parsed, folder, files, display.tell, brought)
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on from here")
        raise
    show.print_result(result, console)
    console.print(f"result: {folder / 'result.json'}", markup=False, soft_wrap=True)


def _pinned(request: SearchRequest, files: Mapping[str, Path], table: LatencyTable | None) -> SearchRequest:
    """The request with what it is run on, by content: another text or table is another search, in another folder."""
    name = request.task.dataset
    for other in files:
        if other != name:
            raise Refused(f"--data {other} is not what the request reads; its task.dataset is {name!r}")
    update: dict[str, object] = {}
    if name in files and request.task.dataset_fingerprint is None:
        fingerprint = hashlib.sha256(files[name].read_bytes()).hexdigest()
        update["task"] = request.task.model_copy(update={"dataset_fingerprint": fingerprint})
    if table is not None:
        update["latency_table"] = table.id
    return request.model_copy(update=update)
