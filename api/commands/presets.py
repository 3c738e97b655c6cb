"""`blockwright presets`: whole requests by name; and the request that a command is given by file, preset or both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from api import show
from api.commands.files import read_json
from api.commands.refuse import Refused
from nas import presets as known
from nas.architecture import Architecture, interleaved
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.specs.backbone import network_parameters

RequestFile = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="JSON file with the request; - reads standard input.")
]
Preset = Annotated[
    str | None,
    typer.Option("--preset", metavar="NAME", help="Begin with this request; what FILE gives stands in its place."),
]


def register(app: typer.Typer) -> None:
    app.command()(presets)


def presets(name: Annotated[str | None, typer.Argument(help="Print this one whole, as JSON.")] = None) -> None:
    """List the requests that a search can begin with; `submit --preset NAME` queues one as it is."""
    if name is not None:
        if name not in known.PRESETS:
            raise Refused(known.refusal(name))
        print(json.dumps(_request(name).model_dump(mode="json"), indent=2))
        return
    table = Table(box=None, padding=(0, 1), caption="parameters: of the parent, over bytes", caption_justify="left")
    for column in ("preset", "slots", "width", "parameters", "what it is"):
        table.add_column(column, justify="right" if column in ("slots", "width", "parameters") else "left")
    for each, description in known.DESCRIPTIONS.items():
        request = _request(each)
        network = request.network_config(parent(request.space).labels, request.task.vocab_size)
        size = f"{network_parameters(network) / 1e6:.1f} M"
        table.add_row(each, str(request.space.n_slots), str(request.space.d_model), size, Text(description))
    show.terminal().print(table)


def parent(space: SearchSpace) -> Architecture:
    """The interleaved parent; where the space lacks attention or FFN, its first candidate in every slot."""
    families = {candidate.family for candidate in space.candidates}
    if {"attention", "ffn"} <= families:
        return interleaved(space)
    return Architecture((space.labels[0],) * space.n_slots, space.candidates)


def given(file: Path | None, preset: str | None) -> dict[str, Any]:
    """The JSON of a request from a file, a preset or both; the preset's parts are not yet put in.

    Raises:
        Refused: neither is given, or the file begins with another preset.
    """
    if file is None and preset is None:
        raise Refused("give a FILE with the request, or --preset NAME; `blockwright presets` lists the names")
    body = {} if file is None else read_json(file)
    if preset is None:
        return body
    if body.get("preset") not in (None, preset):
        raise Refused(f"--preset {preset} is not the preset of {file}, {body['preset']!r}; leave one of them out")
    return {**body, "preset": preset}


def _request(name: str) -> SearchRequest:
    return SearchRequest.model_validate({"preset": name})
