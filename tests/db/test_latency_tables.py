from __future__ import annotations

import pytest
from sqlalchemy import Engine, update

from db import latency_tables, models
from db.engine import reading, transaction
from db.errors import NotFound
from tests.db.rows import started


def test_table_is_stored_once_under_its_id(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        first = latency_tables.put(connection, run.lease, table_id="a", key="cpu", body={"offset_ms": 0.1})
        again = latency_tables.put(connection, run.lease, table_id="a", key="cpu", body={"offset_ms": 0.1})
        assert first == again == latency_tables.get(connection, "a")
        with pytest.raises(NotFound, match="no latency table 'b'"):
            latency_tables.get(connection, "b")
    assert first.body == {"offset_ms": 0.1}


def test_newest_of_a_key_is_reused(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        for table_id, key in [("a", "cpu"), ("b", "cpu"), ("c", "gpu")]:
            latency_tables.put(connection, run.lease, table_id=table_id, key=key, body={})
        connection.execute(
            update(models.latency_tables)
            .where(models.latency_tables.c.id == "a")
            .values(created_at=models.latency_tables.c.created_at - 60)
        )
        newest = latency_tables.newest(connection, "cpu")
        assert newest is not None
        assert newest.id == "b"
        assert latency_tables.newest(connection, "tpu") is None


def test_list_pages_newest_first(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        for table_id in "abcde":  # all within a few milliseconds: ties go by id
            latency_tables.put(connection, run.lease, table_id=table_id, key="cpu", body={})
    with reading(engine) as connection:
        first = latency_tables.list(connection, limit=3)
        second = latency_tables.list(connection, limit=3, cursor=first.next_cursor)
        assert second.next_cursor is None
        assert "".join(table.id for table in (*first.items, *second.items)) == "edcba"
