"""Pages of long lists: at most `limit` items and an opaque cursor to the next page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
MAX_LIMIT = 1000


@dataclass(frozen=True)
class Page(Generic[T]):
    """`next_cursor` is None on the last page."""

    items: tuple[T, ...]
    next_cursor: str | None


def encode(parts: Sequence[Any]) -> str:
    """The cursor behind the item with this sort key."""
    raise NotImplementedError


def decode(cursor: str, kinds: Sequence[type]) -> list[Any]:
    """The sort key in a cursor.

    Raises:
        InvalidCursor: the text is not a cursor whose parts have these types.
    """
    raise NotImplementedError
