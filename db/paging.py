"""Pages of long lists: at most `limit` items and an opaque cursor to the next page."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from db.errors import InvalidCursor

T = TypeVar("T")
MAX_LIMIT = 1000


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
    if not isinstance(parts, list) or [type(part) for part in parts] != list(kinds):
        raise InvalidCursor(f"invalid cursor {cursor[:80]!r}; pass next_cursor of the page before, unchanged")
    return parts
