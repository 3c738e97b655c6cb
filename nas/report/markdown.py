"""A report as Markdown (GitHub's): the same sections; a picture is its title, its meaning and its numbers."""

from __future__ import annotations

import re

from nas.report import document
from nas.report.compose import compose
from nas.report.data import ReportData
from nas.report.document import Bullets, Code, Line, Paragraph, Part, Picture, Ref, Section, Strong, Table, Verbatim

_SPECIAL = re.compile(r"[\\`*_\[\]<>|~$#@]|(?<=\w):(?=//)|(?<=www)\.")
_AT_START = re.compile(r"^([-+=>]|\d+(?=[.)]))")


def markdown(data: ReportData) -> str:
    """The report of a search; the same data give the same text."""
    report = compose(data)
    found = [f"# {_escaped(report.title)}"]
    for number, section in enumerate(report.sections):
        if number:
            found.append(f"## {_escaped(section.title)}")
        found += [_part(each, section) for each in section.parts]
    return "\n\n".join(found) + "\n"


def _escaped(text: str) -> str:
    """Nothing in a text is an order: no link, no emphasis, no HTML, no cell of a table."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", document.plain(text).replace("&", "&amp;"))


def _part(part: Part, section: Section) -> str:
    match part:
        case Paragraph(line):
            return _paragraph(line, section)
        case Bullets(lines):
            return "\n".join(f"- {_paragraph(line, section)}" for line in lines)
        case Table():
            return _table(part, section)
        case Picture(title, meaning, _, tables):
            shown = [f"### {_escaped(title)}", _escaped(meaning), *(_table(each, section) for each in tables)]
            return "\n\n".join(shown)
        case Verbatim(title, text, language):
            fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
            return f"{_escaped(title)}:\n\n{fence}{language}\n{text}\n{fence}"


def _paragraph(line: Line, section: Section) -> str:
    """A line that begins no list, heading or quotation, whatever its first letters."""
    return _AT_START.sub(lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", _line(line, section))


def _table(table: Table, section: Section) -> str:
    marks = ["---:" if at in table.figures else "---" for at in range(len(table.head))]
    rows = [[_line(line, section) for line in row] for row in table.rows]
    lines = [[_escaped(name) for name in table.head], marks, *rows]
    return f"{_paragraph(table.caption, section)}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _line(line: Line, section: Section) -> str:
    return "".join(_piece(each, section) for each in document.pieces(line))


def _piece(piece: document.Piece, section: Section) -> str:
    match piece:
        case str():
            return _escaped(piece)
        case Strong(text):
            return f"**{_escaped(text)}**" if text.strip() == text and text else _escaped(text)
        case Code(text):
            return _code(text)
        case Ref(_, id_):
            return _code(id_ if section.id == document.ORIGINS else piece.short)


def _code(text: str) -> str:
    """A code span, also within a table; its fence is longer than any within."""
    text = document.plain(text).replace("|", "\\|") or " "
    fence = "`" * (1 + max(map(len, re.findall(r"`+", text)), default=0))
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"
