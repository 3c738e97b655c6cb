"""A block as the catalogue knows it: words and formulas, without torch. T tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nas.options import Shape


@dataclass(frozen=True)
class Reach:
    """What a candidate can do beyond the length it was trained at.

    Args:
        longest: tokens that an input may have; None: any number.
        why: one sentence for people.
    """

    longest: int | None
    why: str


def at_most_max_len(shape: Shape, options: Any) -> Reach:
    """What is safe to say of a block that tells nothing."""
    return Reach(shape.max_len, f"it tells nothing of inputs longer than max_len, {shape.max_len} tokens")


@dataclass(frozen=True)
class BlockSpec:
    """A block as the catalogue knows it.

    Args:
        name: what requests call it.
        description: one line for people.
        family: what rules group by.
        letter: one character in the string form of an architecture.
        colour: of the family, as #RRGGBB, safe for colour-blind eyes.
        options: its frozen Options dataclass.
        parameters: (shape, options) -> number of parameters.
        flops: (shape, options, T, memory) -> floating-point operations of one sequence of T tokens behind `memory`
            earlier ones: 2 per multiply-add of its matrix products, as torch.utils.flop_counter counts them.
        class_path: "module:Class" of the torch module.
        cache_bytes: (shape, options, T, batch) -> bytes that `batch` sequences of T tokens hold in the incremental
            path, in float32; None: not known.
        reach: (shape, options) -> what it can do beyond the length it was trained at.
    """

    name: str
    description: str
    family: str
    letter: str
    colour: str
    options: type[Any]
    parameters: Callable[[Shape, Any], int]
    flops: Callable[[Shape, Any, int, int], int]
    class_path: str
    cache_bytes: Callable[[Shape, Any, int, int], int] | None = None
    reach: Callable[[Shape, Any], Reach] = at_most_max_len
