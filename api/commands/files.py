"""Reading the files that commands are given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from api import strict_json
from api.commands.refuse import Refused
from api.strict_json import InvalidJson


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
