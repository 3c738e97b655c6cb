"""What all parts of a request share: frozen and closed, an unknown field or a value out of range is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from nas.errors import InvalidInput


class Config(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """One part of a request."""


def one_line(error: ValidationError) -> str:
    """The first error of a request, with its place, on one line."""
    place = ".".join(str(part) for part in error.errors()[0]["loc"])
    return f"{place}: {reason(error)}" if place else reason(error)


def reason(error: ValidationError) -> str:
    """The first error's message, to go on a line of ours."""
    message = error.errors()[0]["msg"].removeprefix("Value error, ")
    return message[0].lower() + message[1:]


def read_options(options: type[Any], values: Mapping[str, Any], owner: str) -> Any:
    """Options as their own dataclass. Raises: InvalidInput: an unknown one, or a value that is not allowed."""
    known = [field.name for field in fields(options)]
    for name in values:
        if name not in known:
            raise InvalidInput(f"unknown option {name[:60]!r} of {owner}; known: {', '.join(sorted(known)) or 'none'}")
    try:
        return TypeAdapter(options).validate_python(values)
    except ValidationError as error:  # said in our words: pydantic's own location would lack "options"
        name = ".".join(str(part) for part in error.errors()[0]["loc"])
        subject = f"option {name!r}" if name else "options"
        raise InvalidInput(f"{subject} of {owner}: {reason(error)}") from None
