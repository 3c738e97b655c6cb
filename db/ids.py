"""UUIDv7 (RFC 9562, section 5.7): ids that sort by the time they were made, so that an id is also a page cursor."""

from __future__ import annotations

import secrets
import threading
import time
import uuid

PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A UUIDv7 as text; ids of one process grow strictly, whatever the clock does.

    48 bits of milliseconds, 12 bits of the millisecond's fraction (section 6.2, method 3), 62 random bits.
    """
    global _last
    with _lock:
        ticks = max(time.time_ns() * 4096 // 1_000_000, _last + 1)
        _last = ticks
    value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))
