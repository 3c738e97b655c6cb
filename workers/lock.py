"""A lock file: one process at a time has a folder, or several that can share it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Locked(RuntimeError):
    """Another process has the lock; `pid` is its process id, as it wrote it."""

    def __init__(self, path: Path, pid: str) -> None:
        super().__init__(f"{path} is locked by process {pid}")
        self.pid = pid


@contextmanager
def lock(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock file, made if need be; the kernel gives it back however this process ends.

    Args:
        path: of the file.
        shared: beside others that share it, too.

    Raises:
        Locked: another process holds it.
    """
    with path.open("a+") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Locked(path, file.read().strip()) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
