"""What a failed write means to a person, and how to go on after it."""

from __future__ import annotations

import errno
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)


def explain(error: OSError, folder: Path, again: str = "resume the search") -> str:
    """One line: which path, what is wrong with it, and what to do.

    Args:
        error: of a read or a write.
        folder: where it happened, if the error itself names no path.
        again: how the search is taken up afterwards.
    """
    path = error.filename if isinstance(error.filename, str) else str(folder)
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    remedy = "make room there" if error.errno in _FULL else "put that right"
    return f"cannot use {path}: {reason}; {remedy} and {again}: it goes on from its last checkpoint"
