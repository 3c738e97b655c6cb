"""Reading the files that commands are given."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from api import strict_json
from api.commands.refuse import Refused
from api.strict_json import InvalidJson
from nas.text import NAME

OF_ROWS = ("format", "text", "pair", "label", "words", "labels", "part")
_FIELDS = f"behind FILE may stand ?OPTION=VALUE, joined by &, of {', '.join(OF_ROWS)}"
NAMES = "names are lower-case letters, digits, '_', '.' and '-'"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file, or from standard input for `-`; one line says what is wrong with it."""
    try:
        text = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise Refused(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    try:
        value = strict_json.parse(text)
    except InvalidJson as error:
        raise Refused(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise Refused(f"{path} holds no JSON object; a request looks like {{'name': ..., 'space': ...}}")
    return value


@dataclass(frozen=True)
class Brought:
    """A file that --data names, and what it says of it, as the query of an upload does."""

    path: Path
    options: dict[str, str]


def named_file(given: str) -> tuple[str, Brought]:
    """The parts of NAME=FILE or NAME=FILE?text=FIELD&label=FIELD, as --data takes it."""
    name, found, path = given.partition("=")
    if not found or not re.fullmatch(NAME, name):
        raise Refused(f"--data {given!r} is not NAME=FILE; {NAMES}")
    query = ""
    if not Path(path).is_file():  # a name may have a question mark
        path, _, query = path.partition("?")
    if not Path(path).is_file():
        raise Refused(f"--data {name}: no file {path!r}")
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise Refused(f"--data {name}: {query!r} says nothing; {_FIELDS}") from None
    if unknown := sorted(set(options) - set(OF_ROWS)):
        raise Refused(f"--data {name}: unknown option {unknown[0]!r}; {_FIELDS}")
    return name, Brought(Path(path), options)


def check_read(names: Iterable[str], dataset: object, tokenizer: object) -> None:
    """Refuse files under names that the request does not read.

    Args:
        names: as --data gave them.
        dataset: `task.dataset` of the request.
        tokenizer: `task.tokenizer.name`; None without.
    """
    for name in names:
        if name not in (dataset, tokenizer):
            other = "" if tokenizer is None else f" and its task.tokenizer.name {tokenizer!r}"
            raise Refused(f"--data {name} is not what the request reads; its task.dataset is {dataset!r}{other}")


def checked_name(name: str) -> str:
    """The name of a dataset; a file given in its place is the usual mistake."""
    if not re.fullmatch(NAME, name):
        raise Refused(f"{name[:60]!r} is no name of a dataset; {NAMES}")
    return name
