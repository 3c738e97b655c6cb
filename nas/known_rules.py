"""Rules of other people, to be laid out in a space of one's own: suggestions, which nobody has measured there."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from nas.baselines import sandwich
from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.placement import Spacing, attention_positions

Known = Literal["par", "sandwich"]
SOURCES: dict[Known, str] = {
    "par": "suggested by one paper on one model (Mandava et al. 2020, arXiv:2009.04534), not measured here",
    "sandwich": "suggested by one paper on language models (Press et al. 2020, arXiv:1911.03864), not measured here",
}


def lay_out(
    name: Known, space: SearchSpace, n_slots: int, *, ratio: Fraction | None = None, spacing: Spacing = "uniform"
) -> tuple[str, ...]:
    """The label of each slot: the first candidates of families attention and ffn.

    Args:
        name: par: attention evenly in the first two thirds, 5 : 1 unless a ratio is given. sandwich: attention first,
            pairs in turn, ffn last, as many of one as of the other.
        space: whose candidates are placed.
        n_slots: N.
        ratio: all blocks : attention blocks, of par.
        spacing: of par.

    Raises:
        InvalidInput: the rule does not fit the depth, or the space lacks one of the families.
    """
    if name == "sandwich":
        if ratio is not None and ratio != 2:
            raise InvalidInput(
                f"ratio is {ratio}, but a sandwich has as many attention as ffn blocks, 2 : 1; leave ratio out"
            )
        if n_slots < 4 or n_slots % 2:
            raise InvalidInput(f"n_slots is {n_slots}; a sandwich needs an even number of slots from 4 on")
        families = sandwich(n_slots)
    else:
        attention = attention_positions(n_slots, ratio if ratio is not None else Fraction(5), spacing=spacing)
        families = ["attention" if slot in attention else "ffn" for slot in range(n_slots)]
    labels = {}
    for family in ("attention", "ffn"):
        found = [candidate.label for candidate in space.candidates if candidate.family == family]
        if not found:
            raise InvalidInput(f"the layout needs a candidate of family {family!r}; the space has none")
        labels[family] = found[0]
    return tuple(labels[family] for family in families)
