"""`blockwright search FILE --local`: the whole search in this process, without server, Ray or database."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.connection import DataDir, settings
from api.commands.files import Brought, check_read, named_file, read_json
from api.commands.layout import Around, Forbid, built_around
from api.commands.presets import Preset, RequestFile, given
from api.commands.refuse import Refused
from api.commands.sources import plain_file
from nas.errors import DataError

if TYPE_CHECKING:
    from nas.config.request import SearchRequest
    from nas.cost import LatencyTable
    from nas.ingest.card import Dataset

MAX_BYTES = 2**62  # nobody else's disk is filled


def register(app: typer.Typer) -> None:
    app.command()(search)


def search(
    request: RequestFile = None,
    preset: Preset = None,
    around: Around = None,
    forbid: Forbid = None,
    local: Annotated[bool, typer.Option("--local", help="Run it in this process.")] = False,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="NAME=FILE",
            help="Make a file known as a dataset or tokenizer; FILE?text=FIELD&label=FIELD tells fields.",
        ),
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
    from nas.budgets import bounds, check_each
    from nas.config.request import SearchRequest
    from nas.cost import LatencyTable

    parsed = SearchRequest.model_validate(built_around(given(request, preset), around, forbid))
    files = dict(named_file(each) for each in data or [])
    check_read(files, parsed.task.dataset, parsed.task.tokenizer.name)
    brought = LatencyTable.model_validate(read_json(table)) if table else None
    if brought is not None:
        brought.check(parsed.space, parsed.task.serve[0])
    check_each(bounds(parsed, brought), parsed.space.allowed)
    parent = out.parent if out else settings(data_dir).data_dir / "searches"
    parent.mkdir(parents=True, exist_ok=True)
    console = show.terminal()
    # Beside the result folder, so that the search can keep hard links of what it needs; read anew by every start.
    with TemporaryDirectory(prefix=".data-", dir=parent) as scratch:
        datasets = {name: _read(parsed, name, file, Path(scratch)) for name, file in files.items()}
        parsed = _pinned(parsed, datasets, brought)
        from workers import inline  # torch takes seconds; what is wrong with the request is said before

        name = hashlib.sha256(parsed.model_dump_json().encode()).hexdigest()[:12]
        folder = out or parent / f"local-{name}"
        console.print(f"results go to {folder}", markup=False, soft_wrap=True)
        written_out = parsed.model_dump(mode="json")
        try:
            with Display(Picture(written_out), console) as display:
                result = inline.run_local(parsed, folder, datasets, display.tell, brought)
        except KeyboardInterrupt:
            console.print("stopped; the same command goes on from here")
            raise
    show.print_result(result, console)
    console.print(f"result: {folder / 'result.json'}", markup=False, soft_wrap=True)
    if (folder / "report.html").exists():  # older versions wrote none
        console.print(f"report: {folder / 'report.html'}", markup=False, soft_wrap=True)


def _read(request: SearchRequest, name: str, brought: Brought, folder: Path) -> Dataset:
    """A file as a dataset or tokenizer; format and compression by its name, unless it is said.

    Raises:
        Refused, DataError: with the file's name, what is wrong with it.
    """
    from nas.ingest.card import Dataset
    from nas.ingest.options import Options
    from nas.ingest.read import ingest

    file, guessed = brought.path, Options.guess(brought.path.name)
    if name == request.task.tokenizer.name:
        guessed = replace(guessed, format="tokenizer")
    source = plain_file(file, {**guessed.to_json(), **brought.options})
    try:
        card = ingest(file, folder, Options.from_json(source.options), max_bytes=MAX_BYTES)
    except DataError as error:
        raise Refused(f"{file.name}: {error}") from None
    return Dataset(folder / card.file_name, card)


def _pinned(request: SearchRequest, datasets: Mapping[str, Dataset], table: LatencyTable | None) -> SearchRequest:
    """The request with what it is run on, by content: other data or another table are another search, elsewhere."""
    task = request.task
    changes: dict[str, object] = {}
    if task.dataset in datasets and task.dataset_fingerprint is None:
        changes["dataset_fingerprint"] = datasets[task.dataset].card.fingerprint
    chosen = task.tokenizer
    if chosen.name is not None and chosen.name in datasets and chosen.fingerprint is None:
        own = {"fingerprint": datasets[chosen.name].card.fingerprint}
        changes["tokenizer"] = chosen.model_copy(update=own)
    update: dict[str, object] = {"task": task.model_copy(update=changes)} if changes else {}
    if table is not None:
        update["latency_table"] = table.id
    return request.model_copy(update=update)
