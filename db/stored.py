"""Text and JSON as both engines can keep them.

PostgreSQL holds no NUL in a text and reads none from JSON; a lone surrogate, as in the name of a file that is not
UTF-8, can be written nowhere. Reasons and warnings quote whatever a program said, so both become U+FFFD.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sqlalchemy import Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

_UNFIT = re.compile("[\\0\ud800-\udfff]")
_UNFIT_IN_JSON = re.compile(r"\\u(?:0000|d[89a-f][0-9a-f]{2})", re.IGNORECASE)


def text(value: str) -> str:
    """The text with U+FFFD for each character that cannot be kept."""
    return _UNFIT.sub("\ufffd", value)


def dumps(value: Any) -> str:
    """JSON text. Raises: ValueError: NaN or infinite, which is no JSON and which no reader could parse."""
    found = json.dumps(value, allow_nan=False, separators=(",", ":"))
    if _UNFIT_IN_JSON.search(found):  # or it only looks so: an escaped backslash before a u, or a proper pair
        found = json.dumps(_fit(value), allow_nan=False, separators=(",", ":"))
    return found


def _fit(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {_fit(name): _fit(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_fit(each) for each in value]
    return value


class Words(TypeDecorator[str]):
    """A text that quotes what others said."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else text(value)
