"""A text in pieces that a tokenizer is given one by one, so that memory does not grow with the text.

A piece is a line with its end. One of more than LONGEST bytes is cut before the last white space within LONGEST, or
where there is none after LONGEST bytes, in no case inside a character. The rule looks at the text alone: pieces are the
same however it was read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from nas.text import ENDS_PERCENT

LONGEST = 1 << 16  # bytes of a piece
BLOCK = 1 << 20  # bytes read, and encoded, at a time
_SPACES = (b" ", b"\t", b"\r", b"\v", b"\f")


def blocks(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a file from `start` to `end`, at most BLOCK at a time."""
    file.seek(start)
    while start < end:
        block = file.read(min(BLOCK, end - start))
        if not block:
            return
        start += len(block)
        yield block


def file_pieces(path: Path, start: int, end: int) -> Iterator[str]:
    """The pieces of a part of a UTF-8 file; both ends stand between characters."""
    with path.open("rb") as file:
        yield from pieces(blocks(file, start, end))


def pieces(read: Iterable[bytes]) -> Iterator[str]:
    """The pieces of a text that comes as blocks of bytes."""
    rest = b""
    for block in read:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if len(line) < LONGEST:
                yield line.decode() + "\n"
            else:
                line += b"\n"
                at = yield from _cut(line)
                yield line[at:].decode()
        if len(rest) > LONGEST:
            at = yield from _cut(rest)
            rest = rest[at:]
    if rest:
        yield rest.decode()


def _cut(line: bytes) -> Generator[str, None, int]:
    """The pieces at the beginning of a long line; returns where its rest of at most LONGEST bytes begins."""
    at = 0
    while len(line) - at > LONGEST:
        end = at + LONGEST
        space = max(line.rfind(each, at + 1, end) for each in _SPACES)
        if space < 0:
            while line[end] & 0xC0 == 0x80:  # in the middle of a character
                end -= 1
        else:
            end = space
        yield line[at:end].decode()
        at = end
    return at


def batches(of: Iterable[str], size: int | None = None) -> Iterator[list[str]]:
    """Pieces together, of `size` characters or a little more; None: BLOCK."""
    batch: list[str] = []
    length = 0
    for piece in of:
        batch.append(piece)
        length += len(piece)
        if length >= (size or BLOCK):
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def text_ends(path: Path, ends: tuple[int, int] | None, *, whole: bool) -> list[int]:
    """Where the four parts of a text begin and end, five byte offsets.

    Args:
        path: of the text.
        ends: of a training and a validation part given with it; the first is cut 80:20 into weights and alpha.
        whole: whether each offset is moved on to the beginning of a character.
    """
    n_bytes = path.stat().st_size
    inner = [n_bytes * percent // 100 for percent in ENDS_PERCENT] if ends is None else [ends[0] * 80 // 100, *ends]
    if whole:
        with path.open("rb") as file:
            inner = [_next_character(file, offset) for offset in inner]
    return [0, *inner, n_bytes]


def _next_character(file: BinaryIO, offset: int) -> int:
    file.seek(offset)
    for byte in file.read(3):  # a character has at most three bytes behind its first
        if byte & 0xC0 != 0x80:
            break
        offset += 1
    return offset
