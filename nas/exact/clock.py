"""A time by which an exact answer must be there, for who cannot wait: most answers take milliseconds, a few do not end.

Whoever asks sets it around the call; without one, solving takes as long as it takes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nas.errors import InvalidInput

_limit: ContextVar[tuple[float, float]] = ContextVar("_limit", default=(math.inf, math.inf))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Everything solved inside ends by then, wall time, with an answer or InvalidInput; outer limits hold on."""
    mine = (seconds, time.monotonic() + seconds)
    token = _limit.set(min(mine, _limit.get(), key=lambda limit: limit[1]))
    try:
        yield
    finally:
        _limit.reset(token)


def left_s() -> float:
    """Seconds left; infinite without a limit.

    Raises:
        InvalidInput: none are left.
    """
    seconds, until = _limit.get()
    left = until - time.monotonic()
    if left <= 0:
        raise InvalidInput(
            f"no exact answer within {seconds:g} s; ask with fewer or simpler constraints, or for fewer architectures, "
            "points or seeds"
        )
    return left
