from __future__ import annotations

import time
import uuid

from db.ids import new_id


def test_ids_are_version_7_of_now() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid.UUID(new_id())
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before - 1000 <= made.int >> 80 <= time.time_ns() // 1_000_000 + 1000


def test_ids_of_a_process_grow_strictly() -> None:
    ids = [new_id() for _ in range(5000)]
    assert ids == sorted(set(ids))
