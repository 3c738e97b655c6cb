"""Read JSON as RFC 8259 means it: no NaN, no duplicate names, no numbers beyond float64, bounded depth.

Python's own reader takes more than it should, and what it takes would come back out of the database as something
that other readers refuse. Every JSON text from a person enters here: request bodies and the CLI's files alike.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

from nas.errors import InvalidInput

MAX_DEPTH = 32
MAX_VALUES = 20_000  # names, and values of any kind: each of them may become a line of an error
_SURROGATE = re.compile("[\ud800-\udfff]")


class InvalidJson(InvalidInput):
    """A text that is not strict JSON."""

    code = "invalid-json"


def parse(text: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        InvalidJson: not UTF-8, not JSON, NaN or an infinity, a name twice in one object, deeper than MAX_DEPTH, more
            than MAX_VALUES.
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
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
        raise InvalidJson(f"integer {digits[:24]} is out of range; at most 64 bits")
    return int(digits)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = Counter(name for name, _ in pairs)  # counted once: a body can hold a hundred thousand names
        raise InvalidJson(f"name {names.most_common(1)[0][0][:60]!r} stands twice in one object")
    return found


def _check(value: Any) -> None:
    """Depth, number, and text that no database could store: a lone surrogate is no character."""
    level, depth, n_values = [value], 1, 0
    while level:
        n_values += len(level)
        if depth > MAX_DEPTH:
            raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels")
        if n_values > MAX_VALUES:
            raise InvalidJson(f"more than {MAX_VALUES} names and values")
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(each.keys())
                below.extend(each.values())
            elif isinstance(each, list):
                below.extend(each)
            elif isinstance(each, str) and _SURROGATE.search(each):
                raise InvalidJson("a string holds half of a surrogate pair")
        level, depth = below, depth + 1
