"""The one axis of depth: slot i stands in the same column of every picture, first to last from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nas.report import svg
from nas.report.looks import UNKNOWN, Looks
from nas.report.words import cut

GUTTER = 150.0  # names of rows
WIDE = 640.0
_LETTER_FITS = 9.0


@dataclass(frozen=True)
class Axis:
    """Columns of L slots, counted from 1 where they are named."""

    n_slots: int

    @property
    def column(self) -> float:
        return max(5.0, min(40.0, WIDE / max(self.n_slots, 1)))

    @property
    def width(self) -> float:
        """Of a whole picture: never less than its words need."""
        return GUTTER + max(self.column * self.n_slots, 400.0)

    @property
    def has_letters(self) -> bool:
        return self.column >= _LETTER_FITS

    def x(self, slot: float) -> float:
        """Left edge of a slot's column."""
        return GUTTER + slot * self.column

    def numbers(self, y: float) -> list[str]:
        """Slot numbers at a baseline, as many as have room."""
        every = next(step for step in (1, 2, 5, 10, 20, 50, 100) if step * self.column >= 20)
        shown = [slot for slot in range(self.n_slots) if (slot + 1) % every == 0 or slot == 0]
        return [
            svg.words(GUTTER - 8, y, "slot", "t q", "end"),
            *(svg.words(self.x(slot + 0.5), y, str(slot + 1), "t q", "middle") for slot in shown),
        ]

    def name(self, y: float, text: str) -> str:
        """Of a row, in the gutter."""
        return svg.words(GUTTER - 8, y, cut(text, 22), "t", "end")

    def ground(self, y: float, height: float) -> str:
        """What cells of a row stand on."""
        return svg.tag("rect", x=GUTTER, y=y, width=self.column * self.n_slots, height=height, class_="ground")

    def strip(self, y: float, labels: Sequence[str], drawn: Looks, undecided: Sequence[int] = ()) -> list[str]:
        """A layout: colour and letter of each slot; an undecided one is hatched by a line and marked `?`."""
        gap = 1.0 if self.column >= 8 else 0.0
        found: dict[tuple[str, float], list[tuple[float, float, float, float]]] = {}
        over = []
        for slot, label in enumerate(labels):
            look = drawn.get(label, UNKNOWN)
            left, wide = svg.place(self.x(slot)), svg.place(self.column - gap)
            found.setdefault((look.colour, 1.0), []).append((self.x(slot), y, self.column - gap, STRIP))
            if slot in undecided:
                over.append(
                    svg.tag("path", d=f"M{left} {svg.place(y + STRIP)}l{wide} {svg.place(-STRIP)}", class_="tie")
                )
            if self.has_letters:
                letter = look.letter + ("?" if slot in undecided and self.column >= 16 else "")
                over.append(svg.words(self.x(slot + 0.5) - gap / 2, y + STRIP - 6, letter, "b", "middle", look.ink))
        return [*svg.cells(found), *over]


STRIP = 20.0  # height of a strip
