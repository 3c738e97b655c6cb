"""How many may do something at once: counted in the event loop, so that no lock is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from api.errors import ApiError


class Slots:
    """`n` uploads at once, and no more; `free` more may begin."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.free = n

    @contextmanager
    def one(self) -> Iterator[None]:
        """Raises: ApiError: too-many-uploads."""
        if not self.free:
            detail = f"{self._n} files are being uploaded, the most that are allowed at once; try again later"
            raise ApiError(503, "too-many-uploads", detail, {"Retry-After": "5"})
        self.free -= 1
        try:
            yield
        finally:
            self.free += 1
