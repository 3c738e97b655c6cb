"""Which fields of the rows hold what, and what is said where a row's field does not hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nas.ingest.card import GIVEN_PARTS
from nas.ingest.errors import BadLabels, BadRow
from nas.ingest.options import Options

MAX_LABEL = 256  # characters
MAX_LABELS = 65536
MAX_LABEL_CHARACTERS = 1 << 20  # of all labels together: cards, which whoever lists datasets reads, hold them
_SHOWN = 10  # fields that a message names


@dataclass(frozen=True)
class Fields:
    """Names of fields; None where the rows have no such thing. Either `text` or both `words` and `labels` are given.

    Args:
        absent: what the first row has not, though rows may have it without being asked: then no other may.
        given: the part of all rows; `part` is then None.
    """

    text: str | None
    pair: str | None = None
    label: str | None = None
    words: str | None = None
    labels: str | None = None
    part: str | None = None
    absent: tuple[str, ...] = ()
    given: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        every = (self.text, self.pair, self.label, self.words, self.labels, self.part)
        return tuple(name for name in every if name is not None)


def find_fields(names: Iterable[str], options: Options, where: str) -> Fields:
    """The fields that the options name, or that are called as by default.

    Args:
        names: of the first row, or of the header.
        where: "row 1" or "the header".

    Raises:
        BadRow: there is no such field.
    """
    found = list(names)
    part = "part" if options.part is None and "part" in found else None
    absent: tuple[str, ...] = ("part",) if options.part is None and part is None else ()
    if options.words is not None:
        fields = Fields(None, words=options.words, labels=options.labels, part=part, absent=absent, given=options.part)
    else:
        label = options.label or ("label" if "label" in found else None)
        absent += ("label",) if label is None else ()
        text = options.text or "text"
        fields = Fields(text, options.pair, label, part=part, absent=absent, given=options.part)
    for option in ("text", "pair", "label", "words", "labels"):
        name = getattr(fields, option)
        if name is not None and name not in found:
            raise BadRow(f"{where} has no field {name!r}, it has: {listed(found)}; name the field with option {option}")
    return fields


def doubled(names: Iterable[str]) -> str | None:
    """One that stands twice, the first of them by text; there may be millions of names."""
    return min((name for name, often in Counter(names).items() if often > 1), default=None)


def listed(names: Iterable[str]) -> str:
    shown = [f"{name!r:.42}" for name in names]
    more = f" and {len(shown) - _SHOWN:,} more" if len(shown) > _SHOWN else ""
    return (", ".join(shown[:_SHOWN]) or "none") + more


def what_is(value: object) -> str:
    """A JSON value's type, as messages call it."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a fraction", str: "a string", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, dict) else f"a {type(value).__name__}")


def bad_text(name: str, number: int, row: dict[str, Any]) -> BadRow:
    """Why a row's field holds no text; it is known not to."""
    if name not in row:
        return BadRow(f"row {number:,} has no field {name!r}, it has: {listed(row)}; give every row one")
    value = row[name]
    remedy = "give every row a text, or leave this one out"
    if not isinstance(value, str):
        return BadRow(f"field {name!r} of row {number:,} is {what_is(value)}; {remedy}")
    if "\0" in value:
        return BadRow(f"field {name!r} of row {number:,} holds a NUL character; remove it")
    return BadRow(f"field {name!r} of row {number:,} is empty; {remedy}")


def late(name: str, number: int) -> BadRow:
    return BadRow(f"row {number:,} has a field {name!r}, earlier rows have none; give every row one, or none")


def half_a_character(number: int) -> BadRow:
    return BadRow(
        f"row {number:,} holds half of a surrogate pair (\\ud800 to \\udfff alone); write the whole character"
    )


def label_of(name: str, number: int, row: dict[str, Any]) -> str:
    """A row's label as a string: the same for 1 and "1", since a CSV knows only the latter.

    Raises:
        BadRow: it has none, or one of another type than string, integer and boolean.
    """
    if name not in row:
        raise BadRow(f"label missing in row {number:,}: no field {name!r}, it has: {listed(row)}; give every row one")
    return _label(row[name], f"row {number:,}", f"field {name!r}")


def labels_of(fields: Fields, number: int, row: dict[str, Any]) -> tuple[list[str], list[str]]:
    """A row's words and their labels, as many.

    Raises:
        BadRow: no lists of strings and of labels, or of different lengths.
    """
    names = [name for name in (fields.words, fields.labels) if name is not None]
    for name in names:
        if name not in row:
            raise BadRow(f"row {number:,} has no field {name!r}, it has: {listed(row)}; give every row one")
        if not isinstance(row[name], list):
            raise BadRow(f"field {name!r} of row {number:,} is {what_is(row[name])}; give a list")
    words, labels = (row[name] for name in names)
    if len(words) != len(labels):
        raise BadRow(f"row {number:,} has {len(words):,} words and {len(labels):,} labels; give each word one label")
    if not words:
        raise BadRow(f"field {fields.words!r} of row {number:,} is empty; give every row words, or leave this one out")
    for index, word in enumerate(words, 1):
        if not isinstance(word, str) or not word or word.isspace() or "\0" in word:
            what = what_is(word) if not isinstance(word, str) else "blank or holds a NUL character"
            raise BadRow(f"word {index:,} of row {number:,} is {what}; give strings with a visible character")
    return words, [_label(each, f"row {number:,}", f"label of word {index:,}") for index, each in enumerate(labels, 1)]


def _label(value: object, where: str, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        value = str(value)
    if value is None:
        raise BadRow(f"label missing in {where}: {what} is null; give every row one, or leave this one out")
    if not isinstance(value, str):
        raise BadLabels(f"{what} in {where} is {what_is(value)}; a label is a string, an integer or a boolean")
    if not value or value.isspace():
        raise BadRow(f"label missing in {where}: {what} is empty; give every row one, or leave this one out")
    if len(value) > MAX_LABEL:
        raise BadLabels(f"{what} in {where} has {len(value):,} characters; a label has at most {MAX_LABEL}")
    if "\0" in value:
        raise BadLabels(f"{what} in {where} holds a NUL character; remove it")
    return value


def part_of_row(name: str, number: int, row: dict[str, Any]) -> str:
    """Raises: BadRow: the row does not name one of GIVEN_PARTS."""
    value = row.get(name)
    if value not in GIVEN_PARTS:
        what = "no part" if value is None else f"part {value!r:.80}"
        known = ", ".join(GIVEN_PARTS)
        raise BadRow(
            f"row {number:,} names {what}; known: {known}; call the field otherwise if it means something else"
        )
    return str(value)
