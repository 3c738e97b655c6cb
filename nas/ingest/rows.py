"""Rows of JSON lines and of CSV, each with its number, one at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from nas.ingest.errors import BadRow, TooLarge
from nas.ingest.fields import Fields, doubled, find_fields, listed, what_is
from nas.ingest.options import Options
from nas.ingest.stream import MAX_ROW, row_too_large
from nas.text import TooShort

Rows = Iterator[tuple[int, dict[str, Any]]]
MAX_VALUES = 4_000_000  # of one row: even the smallest takes 50 bytes of memory once read
_LONG = 1 << 20  # a row below it cannot hold as many


def jsonl_rows(lines: Iterable[str], options: Options) -> tuple[Fields, Rows]:
    """One JSON object a line; empty lines are passed over, but count.

    Raises:
        BadRow: also while the rows are drawn: a line is no JSON object, or has no such fields.
        TooShort: no row.
    """
    rows = _objects(lines)
    first = next(rows, None)
    if first is None:
        raise TooShort("the file has no rows; give one JSON object a line")
    return find_fields(first[1], options, f"row {first[0]:,}"), chain([first], rows)


def _objects(lines: Iterable[str]) -> Rows:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        if len(line) > _LONG and sum(map(line.count, "[{,")) > MAX_VALUES:
            raise _too_many(number)
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            what = error.msg[:1].lower() + error.msg[1:]
            raise BadRow(
                f"row {number:,} is not JSON: {what} at character {error.colno:,}; write one JSON object a line"
            ) from None
        except RecursionError:
            raise BadRow(f"row {number:,} is nested too deeply; write one flat JSON object a line") from None
        except ValueError:  # Python reads no integer of more than 4,300 digits
            raise BadRow(f"row {number:,} holds an integer with too many digits; write it as a string") from None
        if not isinstance(row, dict):
            raise BadRow(f"row {number:,} is {what_is(row)}, not an object; write one JSON object a line")
        yield number, row


def csv_rows(lines: Iterable[str], delimiter: str, options: Options) -> tuple[Fields, Rows]:
    """Rows below a header; cells in double quotes may hold delimiters and line breaks. Row 1 is that after the header.

    Raises:
        BadRow: also while the rows are drawn: quotes that do not match, or more or fewer cells than the header has.
        TooShort: no header, or no row.
        TooLarge: a row of more than MAX_ROW bytes.
    """
    reader = _Reader(lines, delimiter)
    header = next(reader, None)
    if header is None:
        raise TooShort("the file has no header row; give the names of the columns in the first row")
    if (name := doubled(header)) is not None:
        raise BadRow(f"the header names column {name!r:.80} twice; give each column a name of its own")
    return find_fields(header, options, "the header"), _table(reader, header)


def _table(reader: _Reader, header: list[str]) -> Rows:
    width = len(header)
    number = 0
    for cells in reader:
        if not cells:
            continue  # an empty line, as many programs leave at the end
        number += 1
        if len(cells) != width:
            raise BadRow(
                f"row {number:,} (line {reader.line:,}) has {len(cells):,} cells, the header has {width:,} "
                f"({listed(header)}); put cells that hold a delimiter, a quote or a line break in double quotes"
            )
        yield number, dict(zip(header, cells, strict=True))
    if not number:
        raise TooShort("the file has a header but no rows; give one document a row")


class _Reader(Iterator[list[str]]):
    """The csv module's strict reader over lines, with bounds on what one row may take."""

    def __init__(self, lines: Iterable[str], delimiter: str) -> None:
        self._lines = iter(lines)
        self._delimiter = delimiter
        self._size = 0
        self._values = 0
        self._row = 0  # the header is row 0
        self._reader = csv.reader(self._bounded(), delimiter=delimiter, strict=True)

    @property
    def line(self) -> int:
        """The file's last line that has been read, from 1."""
        return self._reader.line_num

    def _bounded(self) -> Iterator[str]:
        for line in self._lines:
            self._size += len(line) + 1
            self._values += line.count(self._delimiter)
            if self._size > MAX_ROW:
                raise row_too_large("row", self._row)
            if self._values > MAX_VALUES:
                raise _too_many(self._row)
            yield line + "\n"

    def __next__(self) -> list[str]:
        self._size = self._values = 0
        before = csv.field_size_limit(MAX_ROW + 1)  # the limit is the process's
        try:
            cells = next(self._reader)
        except csv.Error as error:
            where = f"row {self._row:,} (line {self.line:,})" if self._row else "the header"
            what, remedy = str(error), "double the quotes within cells in quotes"
            if "new-line" in what:  # as old programs for the Mac end lines
                what, remedy = "a carriage return (CR) stands outside quotes", "end lines with LF or CRLF"
            raise BadRow(f"{where} cannot be read: {what}; {remedy}") from None
        finally:
            csv.field_size_limit(before)
        self._row += bool(cells)  # empty lines do not count
        return cells


def _too_many(number: int) -> TooLarge:
    return TooLarge(f"row {number:,} has more than {MAX_VALUES:,} values; write one document a row")
