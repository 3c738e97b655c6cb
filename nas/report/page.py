"""A report as one self-contained HTML page: no script, no request, its own style sheet and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from nas.report import document, style
from nas.report.compose import compose
from nas.report.data import ReportData
from nas.report.document import Bullets, Code, Line, Paragraph, Part, Picture, Ref, Section, Strong, Table, Verbatim

_MARKED = ("better", "worse", "within", "over", "supported")  # words that have a colour beside what they say


def html(data: ReportData) -> str:
    """The report of a search; the same data give the same bytes."""
    report = compose(data)
    numbers = {ref: number for number, ref in enumerate(document.refs(report), 1)}
    body = "".join(_section(section, numbers) for section in report.sections[1:])
    links = "".join(f'<a href="#{each.id}">{_escaped(each.title)}</a>' for each in report.sections[1:])
    head = report.sections[0]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(style.POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        'content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{_escaped(report.title)}</title><style>{style.CSS}</style></head>\n<body><main>"
        f"<header><h1>{_escaped(report.title)}</h1>{_parts(head, numbers)}"
        f'<nav aria-label="Sections">{links}</nav></header>\n{body}</main></body></html>\n'
    )


Numbers = Mapping[Ref, int]


def _escaped(text: str) -> str:
    return escape(document.plain(text))


def _section(section: Section, numbers: Numbers) -> str:
    return f'<section id="{section.id}"><h2>{_escaped(section.title)}</h2>{_parts(section, numbers)}</section>\n'


def _parts(section: Section, numbers: Numbers) -> str:
    listing = section.id == document.ORIGINS
    return "".join(_part(each, numbers, listing) for each in section.parts)


def _part(part: Part, numbers: Numbers, listing: bool) -> str:
    match part:
        case Paragraph(line):
            return f"<p>{_line(line, numbers, listing)}</p>"
        case Bullets(lines):
            return f"<ul>{''.join(f'<li>{_line(line, numbers, listing)}</li>' for line in lines)}</ul>"
        case Table():
            return _table(part, numbers, listing)
        case Picture(title, meaning, svg, tables):
            shown = "".join(_table(each, numbers, listing) for each in tables)
            return (
                f"<figure><figcaption><h3>{_escaped(title)}</h3><p>{_escaped(meaning)}</p></figcaption>"
                f'<div class="frame">{svg}</div>{shown}</figure>'
            )
        case Verbatim(title, text, _):
            return f"<details><summary>{_escaped(title)}</summary><pre><code>{escape(text)}</code></pre></details>"


def _table(table: Table, numbers: Numbers, listing: bool) -> str:
    def cell(tag: str, column: int, text: str, more: str = "") -> str:
        number = ' class="n"' if column in table.figures else ""
        return f"<{tag}{more}{number}>{text}</{tag}>"

    head = "".join(cell("th", at, _escaped(name), ' scope="col"') for at, name in enumerate(table.head))
    rows = "".join(
        f"<tr>{''.join(cell('td', at, _line(line, numbers, listing)) for at, line in enumerate(row))}</tr>"
        for row in table.rows
    )
    caption = _line(table.caption, numbers, listing)
    whole = (
        f'<div class="frame"><table><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    if not table.folded:
        return whole
    told = "".join(each if isinstance(each, str) else _told(each) for each in document.pieces(table.caption))
    return f"<details><summary>The numbers: {_escaped(told)}</summary>{whole}</details>"


def _told(piece: Ref | Strong | Code) -> str:
    return piece.short if isinstance(piece, Ref) else piece.text


def _line(line: Line, numbers: Numbers, listing: bool) -> str:
    return "".join(_piece(each, numbers, listing) for each in document.pieces(line))


def _piece(piece: document.Piece, numbers: Numbers, listing: bool) -> str:
    match piece:
        case str():
            return _escaped(piece)
        case Strong(text):
            marked = f' class="{text}"' if text in _MARKED else ""
            return f"<strong{marked}>{_escaped(text)}</strong>"
        case Code(text):
            return f"<code>{_escaped(text)}</code>"
        case Ref(kind, id_) if listing:
            return f'<code id="from-{numbers[piece]}">{_escaped(id_)}</code>'
        case Ref(kind, id_):
            title = _escaped(f"{kind} {id_}")
            return (
                f'<a class="id" href="#from-{numbers[piece]}" title="{title}"><code>{_escaped(piece.short)}</code></a>'
            )
