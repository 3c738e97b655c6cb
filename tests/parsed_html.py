"""A page as `html.parser` reads it: elements, ids, references, tables and pictures, each checked to be closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta"}


@dataclass
class TableFound:
    caption: str = ""
    rows: list[list[str]] = field(default_factory=list)  # the head first


class Parsed(HTMLParser):
    """Raises AssertionError where an element is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: list[TableFound] = []
        self.words: list[str] = []
        self.pictures: list[dict[str, str]] = []  # title and desc
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag in _VOID:
            return
        self.open.append(tag)
        if tag == "table":
            self.tables.append(TableFound())
        elif tag == "tr":
            self.tables[-1].rows.append([])
        elif tag in ("td", "th"):
            self.tables[-1].rows[-1].append("")
        elif tag == "svg":
            self.pictures.append({"title": "", "desc": ""})

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        inside = self.open
        if "style" in inside:
            return
        self.words.append(data)
        if "caption" in inside:
            self.tables[-1].caption += data
        elif "td" in inside or "th" in inside:
            self.tables[-1].rows[-1][-1] += data
        elif "svg" in inside and inside[-1] in ("title", "desc"):
            self.pictures[-1][inside[-1]] += data

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def table(self, caption: str) -> TableFound:
        """The one table whose caption has these words."""
        (found,) = [each for each in self.tables if caption in each.caption]
        return found
