from __future__ import annotations

import pytest
from sqlalchemy import Engine

from db import architectures, events
from db.engine import reading, transaction
from db.errors import NotFound
from tests.db.rows import started


def test_derivation_repeated_after_a_restart_changes_nothing(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        fields = {"string": "AF", "hash": "h", "body": {"slots": ["attention", "ffn"]}, "predicted_ms": 1.5}
        first = architectures.put(connection, run.lease, role="budget", trial_id=run.trial_id, **fields)  # type: ignore[arg-type]
        again = architectures.put(connection, run.lease, role="budget", trial_id=run.trial_id, **fields)  # type: ignore[arg-type]
        parent = architectures.put(connection, run.lease, role="interleaved", **fields)  # type: ignore[arg-type]
        same_parent = architectures.put(connection, run.lease, role="interleaved", **fields)  # type: ignore[arg-type]
        changed = architectures.put(
            connection, run.lease, role="budget", trial_id=run.trial_id, string="FA", hash="i", body={}
        )
    assert first == again
    assert parent == same_parent
    assert (changed.id, changed.string, changed.predicted_ms) == (first.id, "FA", None)
    with reading(engine) as connection:
        assert architectures.of_search(connection, run.search_id) == [changed, parent]
        assert architectures.get(connection, parent.id) == parent
        told = [event.data for event in events.after(connection, run.search_id) if event.type == "architecture"]
    assert [(data["architecture"], data["string"]) for data in told] == [
        (first.id, "AF"),
        (parent.id, "AF"),
        (first.id, "FA"),
    ]


def test_at_most_one_architecture_is_the_result(engine: Engine) -> None:
    run, other = started(engine), started(engine)
    with transaction(engine) as connection:
        first, second = (
            architectures.put(connection, run.lease, role=role, string="AF", hash="h", body={})
            for role in ("argmax", "budget")
        )
        for chosen in (first, second, second):
            architectures.set_result(connection, run.lease, chosen.id)
        assert [each.is_result for each in architectures.of_search(connection, run.search_id)] == [False, True]
        told = [event.data["result"] for event in events.after(connection, run.search_id, 4)]
        assert told == [False, False, True, True]
        with pytest.raises(NotFound, match="has no architecture"):
            architectures.set_result(connection, other.lease, first.id)
        with pytest.raises(NotFound, match="no architecture 'nobody'"):
            architectures.get(connection, "nobody")
