"""Pages of long lists: at most `limit` items and an opaque cursor to the next page."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from db.errors import InvalidCursor

T = TypeVar("T")
MAX_LIMIT = 1000
MAX_INTEGER = 2**63 - 1  # what a column holds


@dataclass(frozen=True)
class Page(Generic[T]):
    """`next_cursor` is None on the last page."""

    items: tuple[T, ...]
    next_cursor: str | None


def page(found: Sequence[T], limit: int, key: Callable[[T], Sequence[Any]]) -> Page[T]:
    """A page from limit + 1 rows, whose last one only says that there is more; `key` is the sort key of an item."""
    items = tuple(found[:limit])
    return Page(items, encode(key(items[-1])) if len(found) > limit else None)


def clamp(limit: int) -> int:
    """Within 1 and MAX_LIMIT, whatever was asked for."""
    return max(1, min(limit, MAX_LIMIT))


def encode(parts: Sequence[Any]) -> str:
    """The cursor behind the item with this sort key."""
    return base64.urlsafe_b64encode(json.dumps(list(parts)).encode()).decode().rstrip("=")


def decode(cursor: str, kinds: Sequence[type]) -> list[Any]:
    """The sort key in a cursor.

    Raises:
        InvalidCursor: the text is not a cursor whose parts have these types.
    """
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        parts = None
    is_key = isinstance(parts, list) and [type(part) for part in parts] == list(kinds)
    # To the byte what `encode` gives: base64 is read whatever stands between its letters, and JSON has spaces.
    if not is_key or not all(_is_key(part) for part in parts) or encode(parts) != cursor:
        raise InvalidCursor(f"invalid cursor {cursor[:80]!r}; pass the one of the page before, unchanged")
    found: list[Any] = parts
    return found


def _is_key(part: str | int | float) -> bool:
    """An id, a step or a time: a forged one may hold what no column can, and the driver would fail on it."""
    if isinstance(part, str):
        return re.fullmatch(r"[0-9a-z_-]{1,64}", part) is not None
    return 0 <= part <= (MAX_INTEGER if isinstance(part, int) else sys.float_info.max)
