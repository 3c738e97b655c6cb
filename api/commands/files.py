"""Reading the files that commands are given."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from api import strict_json
from api.commands.refuse import Refused
from api.strict_json import InvalidJson
from nas.text import NAME

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


def named_file(given: str) -> tuple[str, Path]:
    """The parts of NAME=FILE, as --data takes it."""
    name, found, path = given.partition("=")
    if not found or not re.fullmatch(NAME, name):
        raise Refused(f"--data {given!r} is not NAME=FILE; {NAMES}")
    if not Path(path).is_file():
        raise Refused(f"--data {name}: no file {path!r}")
    return name, Path(path)


def checked_name(name: str) -> str:
    """The name of a text; a file given in its place is the usual mistake."""
    if not re.fullmatch(NAME, name):
        raise Refused(f"{name[:60]!r} is no name of a text; {NAMES}")
    return name
