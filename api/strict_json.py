"""Read JSON as RFC 8259 means it: no NaN, no duplicate names, no numbers beyond float64, bounded depth.

Python's own reader takes more than it should, and what it takes would come back out of the database as something
that other readers refuse. Every JSON text from a person enters here: request bodies and the CLI's files alike.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from nas.errors import InvalidInput

MAX_DEPTH = 32


class InvalidJson(InvalidInput):
    """A text that is not strict JSON."""

    code = "invalid-json"


def parse(text: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        InvalidJson: not UTF-8, not JSON, NaN or an infinity, a name twice in one object, deeper than MAX_DEPTH.
    """
    try:
        value = json.loads(
            text.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded_int,
            object_pairs_hook=_distinct,
        )
    except UnicodeDecodeError as error:
        raise InvalidJson(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise InvalidJson(f"not JSON: {error.msg.lower()} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels") from None
    _check(value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not JSON; numbers must be finite")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidJson(f"number {digits[:24]} is out of range; numbers must be finite")
    return number


def _bounded_int(digits: str) -> int:
    if len(digits) > 20:
        raise InvalidJson(f"integer {digits[:20]}... is out of range; at most 64 bits")
    return int(digits)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidJson(f"name {twice[:60]!r} stands twice in one object")
    return found


def _check(value: Any) -> None:
    """Depth, and text that no database could store: a lone surrogate is no character."""
    level, depth = [value], 1
    while level:
        if depth > MAX_DEPTH:
            raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels")
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(each.keys())
                below.extend(each.values())
            elif isinstance(each, list):
                below.extend(each)
            elif isinstance(each, str) and any("\ud800" <= character <= "\udfff" for character in each):
                raise InvalidJson("a string holds half of a surrogate pair")
        level, depth = below, depth + 1
