"""What a report consists of, before it is Markdown or HTML: sections of paragraphs, lists, tables and pictures.

Texts are plain here; each renderer escapes all of them. An id is a piece of its own, so that what a figure comes from
can be collected, and listed whole, at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

ORIGINS = "origins"  # id of the section that lists every id whole
Kind = Literal["search", "trial", "architecture", "rule", "table"]
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH = re.compile(r"[0-9a-f]{32,64}")
_ORDERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def plain(text: str) -> str:
    """On one line, without control characters and marks that turn the direction of writing."""
    return _ORDERS.sub(" ", text)


@dataclass(frozen=True)
class Ref:
    """Where a figure comes from, by id."""

    kind: Kind
    id: str

    @property
    def short(self) -> str:
        """What stands beside a figure: of a UUIDv7, which begins with the time, its end; of a hash its beginning."""
        if _UUID.fullmatch(self.id):
            return self.id[-8:]
        return self.id[:8] if _HASH.fullmatch(self.id) else self.id


@dataclass(frozen=True)
class Strong:
    text: str


@dataclass(frozen=True)
class Code:
    text: str


Piece = str | Ref | Strong | Code
Line = str | Sequence[Piece]


@dataclass(frozen=True)
class Paragraph:
    line: Line


@dataclass(frozen=True)
class Bullets:
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Table:
    """Rows under a head.

    Args:
        caption: what the numbers are, with unit and where they come from.
        head: of the columns.
        rows: of cells.
        figures: columns of numbers, set to the right.
        folded: shown once it is asked for.
    """

    caption: Line
    head: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]
    figures: frozenset[int] = frozenset()
    folded: bool = False


@dataclass(frozen=True)
class Picture:
    """A drawing with its numbers.

    Args:
        title: what it shows.
        meaning: how to read it, one or two sentences.
        svg: markup, made by `nas.report.svg` alone.
        tables: its numbers.
    """

    title: str
    meaning: str
    svg: str
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Verbatim:
    """Text as it is, such as JSON."""

    title: str
    text: str
    language: str


Part = Paragraph | Bullets | Table | Picture | Verbatim


@dataclass(frozen=True)
class Section:
    """A part of the report with a heading.

    Args:
        id: of the heading, for links within the page.
        sources: places that its figures can be read again from.
    """

    id: str
    title: str
    parts: tuple[Part, ...]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    title: str
    sections: tuple[Section, ...]


def pieces(line: Line) -> Sequence[Piece]:
    return (line,) if isinstance(line, str) else line


def commas(found: Sequence[Piece]) -> list[Piece]:
    """Pieces of a list within a line."""
    told: list[Piece] = []
    for each in found:
        told += [", ", each] if told else [each]
    return told


def refs(found: Any) -> list[Ref]:
    """Every id in a part of a document, in the order of first mention."""
    return list(dict.fromkeys(_refs(found)))


def _refs(found: Any) -> Iterator[Ref]:
    if isinstance(found, Ref):
        yield found
    elif is_dataclass(found):
        for field in fields(found):
            yield from _refs(getattr(found, field.name))
    elif isinstance(found, list | tuple):
        for each in found:
            yield from _refs(each)
