"""A small writer of inline SVG: text stays text, colours that follow the scheme are classes of `nas.report.style`.

No style attribute and no reference is ever written, so that the page's content policy can forbid both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from nas.report.document import plain

Value = str | float | None


def tag(name: str, *children: str, **attributes: Value) -> str:
    """An element of checked parts: every attribute is escaped; children are markup already.

    Args:
        name: of the element.
        children: made by this module.
        attributes: `class_` is class, `_` stands for `-`, None leaves one out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(children)}</{name}>"


def _value(value: str | float) -> str:
    return plain(value) if isinstance(value, str) else place(value)


def place(value: float) -> str:
    """A coordinate to a hundredth, without zeros at its end."""
    found = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if found == "-0" else found


def words(x: float, y: float, text: str, class_: str = "t", anchor: str | None = None, fill: str | None = None) -> str:
    """Text at a baseline. `anchor`: start, middle or end."""
    return tag("text", escape(plain(text)), x=x, y=y, class_=class_, text_anchor=anchor, fill=fill)


def upright(x: float, y: float, text: str) -> str:
    """The name of an upright axis, around its middle."""
    turn = f"translate({place(x)} {place(y)}) rotate(-90)"
    return tag("text", escape(plain(text)), transform=turn, class_="t q", text_anchor="middle")


def drawing(name: str, width: float, height: float, title: str, meaning: str, children: Iterable[str]) -> str:
    """The picture itself, named and described for who does not see it.

    Args:
        name: unique within the page: letters, digits and '-'.
        width, height: of its coordinates.
        title: what it shows.
        meaning: how to read it.
        children: its markup.
    """
    return tag(
        "svg",
        tag("title", escape(plain(title)), id=f"{name}-title"),
        tag("desc", escape(plain(meaning)), id=f"{name}-desc"),
        *children,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        viewBox=f"0 0 {place(width)} {place(height)}",
        width=width,
        height=height,
    )


def cells(found: Mapping[tuple[str, float], Iterable[tuple[float, float, float, float]]]) -> list[str]:
    """Many rectangles as one path for each colour and share, in place of an element each.

    Args:
        found: by (colour, opacity): (x, y, width, height) of each.
    """
    paths = []
    for (colour, share), boxes in found.items():
        d = "".join(f"M{place(x)} {place(y)}h{place(w)}v{place(h)}h{place(-w)}z" for x, y, w, h in boxes)
        paths.append(tag("path", d=d, fill=colour, fill_opacity=None if share == 1 else share))
    return paths
