"""The PAR rules as a generator: where attention goes in N blocks at a ratio p : 1, at any depth.

Mandava et al. 2020 (arXiv:2009.04534), by the reading of par-search.md section 5.3: p : 1 is all blocks : attention
blocks (correction 1 there); attention stands in the first two thirds only. *Uniform* spacing is our canonical reading
of "placed uniformly there"; *stride* is the constant-gap layout of a public implementation. They coincide at the
paper's main case, 32 blocks at 5 : 1. One paper's finding on one model: a suggestion, not a measurement.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from nas.errors import InvalidInput

Spacing = Literal["uniform", "stride"]
CUT = Fraction(2, 3)  # attention stands before this share of the depth


def attention_positions(n_blocks: int, ratio: Fraction | int, *, spacing: Spacing = "uniform") -> tuple[int, ...]:
    """Positions of the attention blocks, counted from 0, increasing; all other blocks are FFN.

    Args:
        n_blocks: N.
        ratio: p, all blocks : attention blocks; floor(N / p) blocks are attention.
        spacing: "uniform": first at 0, last at floor(2N / 3) - 1, gaps differing by at most one; "stride": one gap.

    Raises:
        InvalidInput: no block, no attention at this ratio, or more than the first two thirds hold.
    """
    if n_blocks < 1:
        raise InvalidInput(f"n_blocks is {n_blocks}; it must be at least 1")
    if ratio <= 0:
        raise InvalidInput(f"ratio is {ratio}; it must be positive, such as 5 for one attention block in five")
    n_attention = int(n_blocks / Fraction(ratio))
    room = int(CUT * n_blocks)
    if n_attention < 1:
        raise InvalidInput(f"ratio {ratio} leaves no attention in {n_blocks} blocks; at most {n_blocks} is possible")
    if n_attention > room:
        raise InvalidInput(
            f"ratio {ratio} asks for {n_attention} attention blocks; the first two thirds of {n_blocks} hold {room}"
        )
    if spacing == "stride":
        gap = (room + room // n_attention) // n_attention
        return tuple(index * gap for index in range(n_attention))
    if n_attention == 1:
        return (0,)
    return tuple(index * (room - 1) // (n_attention - 1) for index in range(n_attention))
