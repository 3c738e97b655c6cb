"""A block as the catalogue knows it: words and formulas, without torch. T tokens."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any

from nas.errors import InvalidInput
from nas.options import Shape

NAME = r"[a-z][a-z0-9_]{0,39}"  # of a block and of a family

# What each formula is called with.
_ARGUMENTS = {
    "parameters": ("shape", "options"),
    "flops": ("shape", "options", "tokens", "memory"),
    "cache_bytes": ("shape", "options", "tokens", "batch"),
    "reach": ("shape", "options"),
}


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
        name: what requests call it: a lower-case letter, then letters, digits and underscores.
        description: one line for people.
        family: what rules group by.
        letter: one character in the string form of an architecture.
        colour: of the family, as #RRGGBB, safe for colour-blind eyes.
        options: its frozen Options dataclass; every field has a default.
        parameters: (shape, options) -> number of parameters.
        flops: (shape, options, T, memory) -> floating-point operations of one sequence of T tokens behind `memory`
            earlier ones: 2 per multiply-add of its matrix products, as torch.utils.flop_counter counts them.
        class_path: "module:Class" of the torch module.
        cache_bytes: (shape, options, T, batch) -> bytes that `batch` sequences of T tokens hold in the incremental
            path, in float32; None: not known.
        reach: (shape, options) -> what it can do beyond the length it was trained at.
        own: the class itself where nothing can import it, as in a notebook; None: class_path is imported.

    Raises:
        InvalidInput: name, family, letter or colour is malformed, options is no such dataclass, or a formula does not
            take its arguments.
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
    own: type[Any] | None = None

    def __post_init__(self) -> None:
        for attribute in ("name", "family", "description", "letter", "colour", "class_path"):
            if not isinstance(getattr(self, attribute), str):
                raise InvalidInput(f"{attribute} of a block is {getattr(self, attribute)!r}; it must be a string")
        for attribute in ("name", "family"):
            if not re.fullmatch(NAME, getattr(self, attribute)):
                raise InvalidInput(
                    f"{attribute} of a block is {getattr(self, attribute)!r}; it must be a lower-case letter and then "
                    "at most 39 lower-case letters, digits and underscores"
                )
        if len(self.letter) != 1 or not self.letter.isprintable() or self.letter.isspace():
            raise InvalidInput(f"letter of block {self.name!r} is {self.letter!r}; it must be one visible character")
        if not re.fullmatch(r"#[0-9A-Fa-f]{6}", self.colour):
            raise InvalidInput(f"colour of block {self.name!r} is {self.colour!r}; it must look like '#66CCEE'")
        if not _is_options(self.options):
            raise InvalidInput(
                f"options of block {self.name!r} is {self.options!r}; it must be a frozen dataclass whose fields all "
                "have defaults"
            )
        for attribute, arguments in _ARGUMENTS.items():
            formula = getattr(self, attribute)
            if formula is not None and not _takes(formula, len(arguments)):
                raise InvalidInput(
                    f"{attribute} of block {self.name!r} takes {inspect.signature(formula)}; it must take "
                    f"({', '.join(arguments)})"
                )


def _is_options(found: Any) -> bool:
    declared = getattr(found, "__dataclass_params__", None)
    if not isinstance(found, type) or declared is None or not declared.frozen:
        return False
    return all(each.default is not MISSING or each.default_factory is not MISSING for each in fields(found))


def _takes(formula: Callable[..., Any], n_arguments: int) -> bool:
    try:
        inspect.signature(formula).bind(*[None] * n_arguments)
    except TypeError:
        return False
    return True
