"""Uploaded texts on disk: checked and hashed while they arrive, in memory that does not grow with them.

A text is written to a part file of its own, synced, and renamed to `datasets/<sha256>.txt` in the data folder; its name
is never a path. A part is locked by who writes it, so that one left by a killed api is known and removed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from api.errors import ApiError
from nas.text import MIN_BYTES, TextCheck, TooShort

FOLDER = "datasets"
_PART = ".part"
_REMOVED = ".removed"
_LEFT_OVER_S = 60.0  # a part is locked right after it is made; a younger one may be between the two
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Received:
    """A whole text in its part file. `path` is where it belongs, relative to the data folder."""

    fingerprint: str
    n_bytes: int

    @property
    def path(self) -> str:
        return stored_at(self.fingerprint)


def stored_at(fingerprint: str) -> str:
    """Relative to the data folder."""
    return f"{FOLDER}/{fingerprint}.txt"


class Upload:
    """One text on its way in; `discard` always, which leaves what `put_in_place` has brought in place.

    Args:
        data_dir: the data folder.
        max_bytes: of the text.

    Raises:
        ApiError: disk-full, here and in every other method that writes.
    """

    def __init__(self, data_dir: Path, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._check = TextCheck()
        self._digest = hashlib.sha256()
        self._placed: Path | None = None
        self._folder = data_dir / FOLDER
        self._part = self._folder / f".{uuid.uuid4().hex}{_PART}"
        with _room():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file: int | None = os.open(self._part, flags, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def write(self, block: bytes) -> None:
        """The next bytes.

        Raises:
            ApiError: too-large.
            DataError: they are no text.
        """
        assert self._file is not None
        if self._check.n_bytes + len(block) > self._max_bytes:
            raise too_large(self._max_bytes)
        self._check.feed(block)
        self._digest.update(block)
        with _room():
            left = memoryview(block)
            while left:  # a disk that is about to be full takes a part of it
                left = left[os.write(self._file, left) :]

    def finish(self) -> Received:
        """The text is whole: on disk for good, under the name of its part.

        Raises:
            DataError: it is cut in the middle of a character, or too short for any request.
        """
        assert self._file is not None
        self._check.finish()
        n_bytes = self._check.n_bytes
        if n_bytes < MIN_BYTES:
            raise TooShort(f"the text has {n_bytes} bytes; the smallest windows and batches need {MIN_BYTES}")
        with _room():
            os.fsync(self._file)
        return Received(self._digest.hexdigest(), n_bytes)

    def put_in_place(self, received: Received) -> None:
        """Rename the part to where the text belongs; the same bytes may be there already."""
        target = self._folder / Path(received.path).name
        with _room():
            known = target.exists()
            os.replace(self._part, target)
            self._placed = None if known else target
            sync_folder(self._folder)

    def take_back(self) -> None:
        """Remove the text that was put in place, unless the same bytes were there before."""
        if self._placed is not None:
            self._placed.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove the part, if it is still one."""
        if self._file is not None:
            self._part.unlink(missing_ok=True)
            os.close(self._file)  # and with it the lock
            self._file = None


@contextmanager
def _room() -> Iterator[None]:
    """Raises: ApiError: disk-full."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        reason = os.strerror(error.errno).lower()
        raise ApiError(507, "disk-full", f"the text cannot be stored: {reason}; nothing of it was kept") from None


def too_large(max_bytes: int, n_bytes: int | None = None) -> ApiError:
    """The refusal of a text that is longer than `max_dataset_bytes`."""
    found = "is longer" if n_bytes is None else f"has {n_bytes} bytes"
    detail = f"the text {found}; at most {max_bytes} are taken, which BLOCKWRIGHT_MAX_DATASET_BYTES sets"
    return ApiError(413, "too-large", detail)


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_left_over_parts(data_dir: Path) -> None:
    """Remove parts that a killed api has left; those that one is writing are locked and stay."""
    for part in (data_dir / FOLDER).glob(f".*{_PART}"):
        try:
            file = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # gone by now, or a link, which no api makes
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - os.fstat(file).st_mtime > _LEFT_OVER_S:
                part.unlink(missing_ok=True)
        except BlockingIOError:
            pass
        finally:
            os.close(file)


def set_aside(data_dir: Path, fingerprint: str) -> None:
    """First half of a removal, before its row goes for good: what a crash leaves can then be told from other files."""
    with suppress(FileNotFoundError):
        os.replace(data_dir / stored_at(fingerprint), _aside(data_dir, fingerprint))


def bring_back(data_dir: Path, fingerprint: str) -> None:
    """Undo `set_aside`."""
    with suppress(FileNotFoundError):
        os.replace(_aside(data_dir, fingerprint), data_dir / stored_at(fingerprint))


def remove_aside(data_dir: Path, fingerprint: str) -> None:
    """Second half of a removal."""
    _aside(data_dir, fingerprint).unlink(missing_ok=True)


def aside(data_dir: Path) -> list[str]:
    """Fingerprints of the texts that are set aside."""
    return [path.name.removeprefix(".").removesuffix(_REMOVED) for path in (data_dir / FOLDER).glob(f".*{_REMOVED}")]


def _aside(data_dir: Path, fingerprint: str) -> Path:
    return data_dir / FOLDER / f".{fingerprint}{_REMOVED}"
