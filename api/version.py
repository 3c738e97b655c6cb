"""The version of this installation."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed() -> str:
    """As pyproject.toml says; a source tree that is not installed has none."""
    try:
        return version("blockwright")
    except PackageNotFoundError:
        return "0+source"
