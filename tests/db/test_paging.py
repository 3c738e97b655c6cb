from __future__ import annotations

import base64
import math

import pytest

from db import paging
from db.errors import InvalidCursor


def test_cursor_gives_its_key_back() -> None:
    assert paging.decode(paging.encode(["id", 3, 0.1]), [str, int, float]) == ["id", 3, 0.1]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "é",
        "abcde",
        paging.encode([3]),
        paging.encode(["a", "b"]),
        base64.urlsafe_b64encode(b'{"a": 1}').decode(),
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
        paging.encode(["id"]) + "!",
        paging.encode(["id"]) + "=",
        base64.urlsafe_b64encode(b'["id" ]').decode(),
        paging.encode(["id' OR 1=1 --"]),
        paging.encode([""]),
    ],
    ids=[
        *("empty", "no-base64", "no-ascii", "no-json", "other-type", "too-long", "no-list", "deep"),
        *("more", "padded", "spaced", "sql", "no-id"),
    ],
)
def test_foreign_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidCursor, match="pass the one of the page before, unchanged"):
        paging.decode(cursor, [str])


@pytest.mark.parametrize(
    "part",
    ["\ud800", "a\0", 2**63, -1, -0.5, math.nan, math.inf],
    ids=["half a pair", "nul", "large", "negative", "before 1970", "nan", "infinity"],
)
def test_cursor_with_what_no_column_holds_is_refused(part: object) -> None:
    with pytest.raises(InvalidCursor, match="invalid cursor"):
        paging.decode(paging.encode([part]), [type(part)])


@pytest.mark.parametrize(("asked", "given"), [(-1, 1), (0, 1), (7, 7), (10**9, paging.MAX_LIMIT)])
def test_limit_stays_in_bounds(asked: int, given: int) -> None:
    assert paging.clamp(asked) == given
