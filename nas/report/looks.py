"""How candidates are drawn: the letter and the colour that they have in the page and in terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nas import catalog
from nas.errors import InvalidInput
from nas.report import read


@dataclass(frozen=True)
class Look:
    """One letter, the family, and its colour as #RRGGBB."""

    letter: str
    family: str
    colour: str

    @property
    def ink(self) -> str:
        """Whichever of black and white reads better on the colour: by relative luminance (WCAG 2)."""
        red, green, blue = (_linear(int(self.colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
        return "#111111" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "#ffffff"


UNKNOWN = Look("?", "unknown", "#888888")
Looks = Mapping[str, Look]


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4


def looks(candidates: object, labels: Sequence[str] = ()) -> Looks:
    """By label, of a request's candidates; a block that is not installed here is a grey `?`.

    Args:
        candidates: JSON: names, or objects with label and block.
        labels: others that may be named, by their own block.
    """
    blocks = {label: label for label in labels}
    for each in read.items(candidates):
        if isinstance(each, str):
            blocks[each] = each
        elif (block := read.text(read.at(each, "block"))) is not None:
            blocks[read.text(read.at(each, "label")) or block] = block
    return {label: _look(block) for label, block in blocks.items()}


def _look(block: str) -> Look:
    try:
        spec = catalog.block(block)
    except InvalidInput:
        return UNKNOWN
    return Look("·" if spec.letter == "." else spec.letter, spec.family, spec.colour)


def string(labels: Sequence[str], drawn: Looks) -> str:
    """A letter a slot."""
    return "".join(drawn.get(label, UNKNOWN).letter for label in labels)
