"""How candidates are drawn in a terminal: depth runs left to right, in the family's colour and with its letter.

So colour is never alone; `?` marks an undecided slot. L slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from nas import catalog
from nas.errors import InvalidInput


@dataclass(frozen=True)
class Look:
    """How a candidate is drawn: one letter, and the colour of its family."""

    letter: str
    colour: str


Looks = Mapping[str, Look]


def looks(candidates: Sequence[Mapping[str, Any]]) -> Looks:
    """By label. A block that is not installed here, of another machine's package, is a grey `?`."""
    found = {}
    for candidate in candidates:
        try:
            spec = catalog.block(candidate["block"])
            found[candidate["label"]] = Look(spec.letter, spec.colour)
        except InvalidInput:
            found[candidate["label"]] = Look("?", "#BBBBBB")
    return found


def strip(labels: Sequence[str], looks: Looks, undecided: Sequence[int] = ()) -> Text:
    """One cell a slot, first to last."""
    text = Text()
    for slot, label in enumerate(labels):
        look = looks.get(label, Look("?", "#BBBBBB"))
        mark = "?" if slot in undecided else " "
        text.append(f" {look.letter}{mark}", style=f"bold #000000 on {look.colour}")
    return text
