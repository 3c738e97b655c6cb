"""Seconds per stage over all attempts of a search, kept in its folder."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workers.folder import write_json


class Stopwatch:
    """Adds up what each stage took; an attempt that was killed leaves out the stage it died in.

    Args:
        folder: of the search; the sums are in seconds.json.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "seconds.json"
        self.seconds: dict[str, float] = json.loads(self._path.read_text()) if self._path.exists() else {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is inside, also when it is interrupted."""
        started = time.monotonic()
        try:
            yield
        except BaseException:
            with suppress(OSError):  # a full disk has its own reason to tell, and this is not it
                self._note(name, started)
            raise
        self._note(name, started)

    def _note(self, name: str, started: float) -> None:
        self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - started, 3)
        write_json(self._path, self.seconds)

    @property
    def total(self) -> float:
        return round(sum(self.seconds.values()), 3)
