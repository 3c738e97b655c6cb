"""A text is checked in any blocks as it is whole, to the byte; the lengths it needs are those that it is cut by."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.data.parts import split
from nas.errors import DataError
from nas.text import MIN_BYTES, NotUtf8, TextCheck, TooShort, check_length, check_text, needed_bytes
from tests import tiny

PIECES = [b"a", b" ", b"\n", "é".encode(), "€".encode(), "😀".encode(), b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80"]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)


def whole(text: bytes) -> tuple[str, int] | None:
    """What stands first in the text, a NUL byte or a wrong one, and where."""
    nul = text.find(0)
    try:
        (text if nul < 0 else text[:nul]).decode()
    except UnicodeDecodeError as error:
        return "not-utf8", error.start
    if nul < 0 and not text.strip():
        return "too-short", 0
    return None if nul < 0 else ("binary", nul)


def in_blocks(text: bytes, sizes: list[int]) -> tuple[str, int] | None:
    check, start = TextCheck(), 0
    try:
        for size in [*sizes, len(text)]:
            check.feed(text[start : start + size])
            start += size
        check.finish()
    except DataError as error:
        offset = re.search(r"offset (\d+)", str(error))
        return error.code, int(offset[1]) if offset else 0
    return None


@given(text=texts, sizes=st.lists(st.integers(1, 5), max_size=40))
def test_blocks_of_any_size_find_the_same_byte_as_the_whole(text: bytes, sizes: list[int]) -> None:
    assert in_blocks(text, sizes) == whole(text)


def test_offset_counts_beyond_the_first_block() -> None:
    text = b"word " * 500_000
    with pytest.raises(NotUtf8, match="invalid byte at offset 2500002"):
        check_text(text + "é".encode() + b"\xe9 word")


def test_long_text_is_checked_in_little_memory() -> None:
    text = "😀".encode() + b"word " * 4_000_000
    tracemalloc.start()
    check_text(text)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@given(train_length=st.integers(2, 40), batch_size=st.integers(1, 40))
def test_shortest_text_can_be_split_and_one_byte_less_cannot(train_length: int, batch_size: int) -> None:
    needed = needed_bytes(train_length, batch_size)
    parts = split(b"x" * needed, train_length, batch_size)
    assert len(tiny.ids(parts.validation)) >= 2 * train_length + 1
    assert len(tiny.ids(parts.test)) >= 2 * train_length + 1
    assert len(tiny.ids(parts.alpha)) > train_length
    with pytest.raises(TooShort, match=f"has {needed - 1} bytes; batches of {batch_size} windows"):
        check_length(needed - 1, train_length, batch_size)


def test_no_request_can_use_less_than_the_minimum() -> None:
    assert MIN_BYTES == min(needed_bytes(t, b) for t in range(2, 10) for b in range(1, 10)) == 100
