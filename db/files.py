"""Paths in rows are relative to the data folder, with slashes, and stay inside it."""

from __future__ import annotations

from pathlib import PurePosixPath


def relative(path: str) -> str:
    """The path as stored.

    Raises:
        ValueError: it is absolute, leaves the data folder, or is none.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
        raise ValueError(f"path {path!r} must be relative to the data folder and stay inside it")
    return str(PurePosixPath(path))
