from __future__ import annotations

from sqlalchemy import Engine

from db import events, rules
from db.engine import reading, transaction
from tests.db.rows import started


def test_rule_is_told_when_it_is_new_or_changed(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        first = rules.put(connection, run.lease, statement="s", verdict="suggested", body={"n_seeds": 2})
        assert rules.put(connection, run.lease, statement="s", verdict="suggested", body={"n_seeds": 2}) == first
        changed = rules.put(connection, run.lease, statement="s", verdict="suggested", body={"n_seeds": 3})
        other = rules.put(connection, run.lease, statement="t", verdict="suggested", body={})
    assert (changed.id, changed.body) == (first.id, {"n_seeds": 3})
    with reading(engine) as connection:
        assert rules.of_search(connection, run.search_id) == [changed, other]
        told = [event.data["rule"] for event in events.after(connection, run.search_id) if event.type == "rule"]
    assert told == [first.id, first.id, other.id]
