"""The files of uploaded datasets in the data folder: `datasets/<fingerprint><suffix>`, and nothing half there.

What is on its way in or out has a name that begins with a dot; what a killed api has left of it is known by that.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from api.errors import ApiError

FOLDER = "datasets"
PART = ".part"
_REMOVED = ".removed"
_TEXT = ".txt"  # left out of the names of what is set aside, as when there were texts alone
_LEFT_OVER_S = 60.0  # a part is locked right after it is made; a younger one may be between the two
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def room() -> Iterator[None]:
    """Raises: ApiError: disk-full."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        reason = os.strerror(error.errno).lower()
        raise ApiError(507, "disk-full", f"the file cannot be stored: {reason}; nothing of it was kept") from None


def sync(path: Path) -> None:
    """Make a file's content, or a rename in a folder, last."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_left_over_parts(data_dir: Path) -> None:
    """Remove parts that a killed api has left; those that one is working on are locked and stay."""
    for part in (data_dir / FOLDER).glob(f".*{PART}"):
        try:
            descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # gone by now, or a link, which no api makes
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - os.fstat(descriptor).st_mtime > _LEFT_OVER_S:
                remove_part(part)
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)


def remove_part(part: Path) -> None:
    """Remove a part: a folder, or a file as older versions made."""
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


def set_aside(data_dir: Path, name: str) -> None:
    """First half of a removal, before its row goes for good: what a crash leaves can then be told from other files.

    Args:
        name: of the file in the folder.
    """
    with suppress(FileNotFoundError):
        os.replace(data_dir / FOLDER / name, _aside(data_dir, name))


def bring_back(data_dir: Path, name: str) -> None:
    """Undo `set_aside`."""
    with suppress(FileNotFoundError):
        os.replace(_aside(data_dir, name), data_dir / FOLDER / name)


def remove_aside(data_dir: Path, name: str) -> None:
    """Second half of a removal."""
    _aside(data_dir, name).unlink(missing_ok=True)


def aside(data_dir: Path) -> list[str]:
    """Names of the files that are set aside."""
    names = [path.name.removeprefix(".").removesuffix(_REMOVED) for path in (data_dir / FOLDER).glob(f".*{_REMOVED}")]
    return [name if "." in name else f"{name}{_TEXT}" for name in names]


def fingerprint_of(name: str) -> str:
    """What a file is named by."""
    return name.partition(".")[0]


def _aside(data_dir: Path, name: str) -> Path:
    return data_dir / FOLDER / f".{name.removesuffix(_TEXT)}{_REMOVED}"
