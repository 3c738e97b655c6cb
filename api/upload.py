"""An uploaded file on its way in: checked and hashed while it arrives, in memory that does not grow with it, then read.

It is written to a part folder of its own; its reader (api/reading.py) leaves the canonical file there, which is synced
and renamed into place. A name that a client gives is never a path. A part is locked by who works on it, so that one
left by a killed api is known and removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import uuid
from pathlib import Path

from api.errors import ApiError
from api.kept_files import FOLDER, PART, remove_part, room, sync
from api.reading import Reader
from nas.ingest.card import Card
from nas.ingest.options import Options
from nas.text import MIN_BYTES, TextCheck, TooShort

# How files begin that are no plain text whatever they are called: gzip, zstd, Parquet; and archives, of which the
# reader says what to do.
_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!")


class Upload:
    """One file on its way in; `discard` always, which leaves what `put_in_place` has brought in place.

    Args:
        data_dir: the data folder.
        max_bytes: of the file, and of what it holds once unpacked.
        options: how it is to be read.

    Raises:
        ApiError: disk-full, here and in every other method that writes.
    """

    def __init__(self, data_dir: Path, max_bytes: int, options: Options) -> None:
        self._max_bytes = max_bytes
        self._options = options
        self._check: TextCheck | None = None  # of plain text, once its first bytes have shown that it is some
        self._digest = hashlib.sha256()
        self.n_bytes = 0
        self._placed: Path | None = None
        self._reader = Reader()
        self._folder = data_dir / FOLDER
        self._part = self._folder / f".{uuid.uuid4().hex}{PART}"
        self._raw = self._part / "raw"
        self._file: int | None = None
        self._lock: int | None = None
        try:
            with room():
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._part.mkdir(mode=0o700)
                self._lock = os.open(self._part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._file = os.open(self._raw, flags, 0o600)
        except BaseException:
            self.discard()
            raise

    @property
    def is_plain(self) -> bool:
        """Whether it is a text that is kept as it comes; known after its first bytes."""
        return self._check is not None

    @property
    def sha256(self) -> str:
        """Of what has arrived."""
        return self._digest.hexdigest()

    def write(self, block: bytes) -> None:
        """The next bytes.

        Raises:
            ApiError: too-large.
            DataError: they are no text and should be.
        """
        assert self._file is not None
        if not self.n_bytes and _is_plain(self._options, block):
            self._check = TextCheck()
        if self.n_bytes + len(block) > self._max_bytes:
            raise too_large(self._max_bytes)
        if self._check is not None:
            self._check.feed(block)
        self._digest.update(block)
        self.n_bytes += len(block)
        with room():
            left = memoryview(block)
            while left:  # a disk that is about to be full takes a part of it
                left = left[os.write(self._file, left) :]

    def finish(self) -> None:
        """It has arrived whole.

        Raises:
            DataError: a text that is cut in the middle of a character, or too short for any request.
        """
        if self._check is not None:
            self._check.finish()
            if self.n_bytes < MIN_BYTES:
                raise TooShort(f"the text has {self.n_bytes} bytes; the smallest windows and batches need {MIN_BYTES}")

    def read(self, timeout_s: float) -> Card:
        """Make the canonical file of it, on disk for good; takes a while, and `stop` ends it.

        Raises:
            ApiError: as `Reader.read`.
        """
        card = self._reader.read(self._raw, self._part, self._options, max_bytes=self._max_bytes, timeout_s=timeout_s)
        with room():
            sync(self._part / card.file_name)
        return card

    def stop(self) -> None:
        """End the reading."""
        self._reader.stop()

    def put_in_place(self, card: Card) -> None:
        """Rename the canonical file to where it belongs; the same content may be there already."""
        target = self._folder / card.file_name
        with room():
            known = target.exists()
            os.replace(self._part / card.file_name, target)
            self._placed = None if known else target
            sync(self._folder)

    def take_back(self) -> None:
        """Remove what was put in place, unless the same content was there before."""
        if self._placed is not None:
            self._placed.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove the part, with whatever is still in it."""
        self._reader.close()
        if self._file is not None:
            os.close(self._file)
        remove_part(self._part)
        if self._lock is not None:
            os.close(self._lock)


def _is_plain(options: Options, first: bytes) -> bool:
    return (
        options.format in ("auto", "text")
        and options.compression in ("auto", "none")
        and options.corpus is None
        and not first.startswith(_MAGIC)
    )


def stored_at(card: Card) -> str:
    """Where its canonical file belongs, relative to the data folder."""
    return f"{FOLDER}/{card.file_name}"


def too_large(max_bytes: int, n_bytes: int | None = None) -> ApiError:
    """The refusal of a file that is longer than `max_dataset_bytes`."""
    found = "is longer" if n_bytes is None else f"has {n_bytes} bytes"
    detail = f"the file {found}; at most {max_bytes} are taken, which BLOCKWRIGHT_MAX_DATASET_BYTES sets"
    return ApiError(413, "too-large", detail)
