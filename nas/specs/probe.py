"""Whether code that others wrote for a block does what its `BlockSpec` promises, told in one line where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from nas.errors import InvalidInput
from nas.options import Shape
from nas.specs.base import BlockSpec, Reach

_SHAPE = Shape(d_model=64, n_heads=4, max_len=128)  # as that of a request that says nothing
_TOKENS = 8


@contextmanager
def blame(name: str, doing: str) -> Iterator[None]:
    """Whatever a block's own code raises within becomes one line that names the block.

    Raises:
        InvalidInput: it raised something; a line of ours stays as it is.
    """
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(f"block {name!r} cannot {doing}: {type(error).__name__}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no reason given"


def check_options(name: str, options: type[Any]) -> None:
    """Raises: InvalidInput: the block's Options cannot be read from JSON, or a default is not of its field's type."""
    with blame(name, "be given its default options"):
        defaults = options()
    try:
        adapter = TypeAdapter(options)
        adapter.json_schema()
        adapter.validate_python(asdict(defaults))  # of a class itself, pydantic takes defaults as they are
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(
            f"default {first['input']!r} of option {str(first['loc'][0])!r} of block {name!r} is not of its type: "
            f"{first['msg'][0].lower()}{first['msg'][1:]}"
        ) from None
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise InvalidInput(f"Options of block {name!r} cannot be read from JSON: {first_line(error)}") from error


def reach(spec: BlockSpec, shape: Shape, options: Any) -> Reach:
    """What `spec.reach` tells.

    Raises:
        InvalidInput: it raises something, or tells no Reach.
    """
    with blame(spec.name, "tell its reach"):
        told = spec.reach(shape, options)
        if not isinstance(told, Reach) or not isinstance(told.longest, int | None) or not isinstance(told.why, str):
            raise TypeError(f"{str(told)[:60]!r} is no nas.specs.base.Reach of a whole number or None and a sentence")
    return told


def check_spec(spec: BlockSpec) -> None:
    """Try what the service will ask of a block: its options' schema, their defaults, and each formula once.

    Raises:
        InvalidInput: something of it fails, or is no number.
    """
    check_options(spec.name, spec.options)
    options = spec.options()
    reach(spec, _SHAPE, options)
    try:
        getattr(options, "check", lambda shape: None)(_SHAPE)
    except ValueError:
        return  # made for other shapes, so its formulas are as well
    except Exception as error:
        raise InvalidInput(
            f"check of block {spec.name!r} raises {type(error).__name__}: {first_line(error)}; it may raise a "
            "ValueError for a shape that does not fit"
        ) from error
    for attribute, formula, counted in (
        ("parameters", spec.parameters, ()),
        ("flops", spec.flops, (_TOKENS, 0)),
        ("cache_bytes", spec.cache_bytes, (_TOKENS, 1)),
    ):
        if formula is None:
            continue
        with blame(spec.name, f"count its {attribute}"):
            found = formula(_SHAPE, options, *counted)
            if not isinstance(found, int) or found < 0:
                raise TypeError(f"{str(found)[:60]!r} is no whole number from 0 on")
