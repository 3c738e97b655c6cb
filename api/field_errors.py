"""Validation errors as people and programs read them: a JSON pointer (RFC 6901), one line, a code.

REST answers them in problems and the command line prints them; neither shows pydantic's own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field


class FieldError(BaseModel):
    """What is wrong with one field of the body, or one parameter."""

    pointer: str = Field(
        description="JSON pointer into the body; `?name` in the query, `{name}` in the path, `name` of a header"
    )
    detail: str
    code: str


def field_errors(errors: Iterable[Mapping[str, Any]]) -> list[FieldError]:
    """Pydantic's errors as pointers and one-line details."""
    return [
        FieldError(pointer=pointer_to(error["loc"]), detail=detail_of(error), code=code_of(error)) for error in errors
    ]


def summary(errors: Sequence[FieldError]) -> str:
    """One line for people: the first error with its place, and how many more there are."""
    first = errors[0]
    pointer = "".join(character if character.isprintable() else "?" for character in first.pointer[:120])
    place = f"{pointer}: " if pointer else ""
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}{first.detail}{more}"


def pointer_to(path: Iterable[object]) -> str:
    """JSON pointer to a place; empty for the whole document."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def code_of(error: Mapping[str, Any]) -> str:
    """Stable name of what is wrong: that of our own error where a validator raised one, else pydantic's."""
    raised = error.get("ctx", {}).get("error")
    return str(getattr(raised, "code", "invalid-value" if raised else error["type"].replace("_", "-")))


def detail_of(error: Mapping[str, Any]) -> str:
    """Pydantic's message as one lower-case line, with the value it got."""
    if error["type"] == "extra_forbidden":
        return f"unknown field {str(error['loc'][-1])[:60]!r}"
    message = str(error["msg"]).removeprefix("Value error, ")
    got = error.get("input")
    if isinstance(got, str | int | float) and error["type"] != "value_error":
        message = f"{message}, got {str(got)[:60]!r}" if isinstance(got, str) else f"{message}, got {got}"
    return message[:1].lower() + message[1:]
