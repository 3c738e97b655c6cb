"""`--around` and `--forbid`: a request built around the model that there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from api.commands.files import read_json
from api.commands.refuse import Refused
from nas import layout
from nas.architecture import Architecture

Around = Annotated[
    str | None,
    typer.Option(
        "--around",
        metavar="LAYOUT",
        help="The present model: a letter for each slot, such as AFA!F?S (! keeps a slot, ? leaves it open), or its "
        "labels joined by commas, or an architecture.json.",
    ),
]
Forbid = Annotated[
    list[str] | None,
    typer.Option("--forbid", metavar="LABEL[@SLOTS]", help="Block that may not stand in slots, such as sgu@0,4-7."),
]


def built_around(request: dict[str, Any], around: str | None, forbid: Sequence[str] | None) -> dict[str, Any]:
    """The JSON of a request with its starting layout.

    Raises:
        Refused: the file is no architecture.
        InvalidInput: the layout does not fit the request.
    """
    present: str | Architecture | None = around
    if around is not None and Path(around).is_file():
        present = _architecture(Path(around), read_json(Path(around)))
    return layout.around(request, present, forbid or ())


def _architecture(path: Path, body: Mapping[str, Any]) -> Architecture:
    try:
        return Architecture.from_json(dict(body))
    except (KeyError, TypeError):
        raise Refused(f"{path} is no architecture; it must be an architecture.json, as exports hold one") from None
