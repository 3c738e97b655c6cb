"""Reading parts of files in the data folder: regular files only, and no links, whatever has been put there."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def first_bytes(path: Path, n: int) -> bytes | None:
    """At most n bytes; None if there is no regular file."""
    file = _open(path)
    if file is None:
        return None
    with file:
        return file.read(n)


def last_bytes(path: Path, n: int) -> bytes | None:
    """At most n bytes; None if there is no regular file."""
    file = _open(path)
    if file is None:
        return None
    with file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - n))
        return file.read(n)  # a log that grows meanwhile is cut here


def _open(path: Path) -> BinaryIO | None:
    try:
        # O_NONBLOCK: opening a pipe would wait for somebody who writes
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")
