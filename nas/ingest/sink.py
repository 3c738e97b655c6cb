"""Writes a canonical file and takes its fingerprint on the way."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from nas.ingest.card import Settings
from nas.ingest.stream import BLOCK, too_large


class Sink:
    """Where canonical bytes go; a context manager that makes them durable at its end.

    Args:
        path: of a new file; None: the bytes are the raw file's, which stays as it is: only hash them.
        max_bytes: that may be written.
    """

    def __init__(self, path: Path | None, settings: Settings, max_bytes: int) -> None:
        self.settings = settings
        self.n_bytes = 0
        self._max_bytes = max_bytes
        self._digest = settings.digest()
        self._file: BinaryIO | None = None if path is None else path.open("xb", buffering=0)
        self._pending: list[bytes] = []
        self._n_pending = 0

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self._flush()
                if self._file is not None:
                    os.fsync(self._file.fileno())
        finally:
            if self._file is not None:
                self._file.close()

    def write(self, block: bytes) -> None:
        """Raises: TooLarge: more than max_bytes."""
        self._pending.append(block)
        self._n_pending += len(block)
        self.n_bytes += len(block)
        if self.n_bytes > self._max_bytes:
            raise too_large(self._max_bytes)
        if self._n_pending >= BLOCK:
            self._flush()

    def fingerprint(self) -> str:
        """Of what has been written so far."""
        self._flush()
        found: str = self._digest.hexdigest()
        return found

    def _flush(self) -> None:
        block = b"".join(self._pending)
        self._pending.clear()
        self._n_pending = 0
        self._digest.update(block)
        view = memoryview(block)
        while self._file is not None and view:
            view = view[self._file.write(view) :]  # a raw file may write less than it is given
