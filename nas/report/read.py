"""Reading JSON of any version: what is missing, of another type or no number is None or empty, never an error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def number(value: Any) -> float | None:
    """A finite number; None for everything else, NaN among it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def whole(value: Any) -> int | None:
    found = number(value)
    return None if found is None or found != int(found) else int(found)


def text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Those items of a list that are objects."""
    return [each for each in items(value) if isinstance(each, Mapping)]


def texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in items(value))


def wholes(value: Any) -> tuple[int, ...]:
    return tuple(found for each in items(value) if (found := whole(each)) is not None)


def at(value: Any, *names: str) -> Any:
    """What lies in objects within objects; None where one of them is missing."""
    for name in names:
        value = mapping(value).get(name)
    return value


def numbers(value: Any) -> tuple[float | None, ...]:
    return tuple(number(each) for each in items(value))


def matrix(value: Any) -> tuple[tuple[float | None, ...], ...]:
    """(L, K); () where there is none."""
    return tuple(numbers(row) for row in items(value))


def by_seed(value: Any, seeds: Sequence[int]) -> tuple[float | None, ...]:
    """A number for each seed, of a list in their order or of an object by seed."""
    if isinstance(value, Mapping):
        return tuple(number(value.get(str(seed), value.get(seed))) for seed in seeds)
    found = numbers(value)
    return tuple(found[place] if place < len(found) else None for place in range(len(seeds)))
