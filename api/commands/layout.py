"""`--around` and `--forbid`: a request built around the model that there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from api.commands.files import read_json
from api.commands.refuse import Refused
from nas import layout
from nas.architecture import Architecture
from nas.config.base import one_line
from nas.errors import InvalidInput

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
    typer.Option(
        "--forbid",
        metavar="LABEL[@SLOTS]",
        help="Block that may not stand in slots, such as sgu@1,5-8; slots count from 1.",
    ),
]


def built_around(request: dict[str, Any], around: str | None, forbid: Sequence[str] | None) -> dict[str, Any]:
    """The JSON of a request with its starting layout.

    Raises:
        Refused: the file is no architecture.
        InvalidInput: the layout does not fit the request.
    """
    present: str | Architecture | None = around
    if around is not None and _is_file(around):
        present = _architecture(Path(around), read_json(Path(around)))
    return layout.around(request, present, forbid or ())


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # a layout of more slots than a file's name may have letters
        return False


def _architecture(path: Path, body: Mapping[str, Any]) -> Architecture:
    try:
        return Architecture.from_json(dict(body))
    except InvalidInput as error:
        raise Refused(f"{path}: {error}") from None
    except ValidationError as error:
        raise Refused(f"{path}: of a candidate, {one_line(error)}") from None
    except (KeyError, TypeError, ValueError):
        raise Refused(f"{path} is no architecture; it must be an architecture.json, as exports hold one") from None
