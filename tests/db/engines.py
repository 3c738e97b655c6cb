"""What tests need to know of the two engines: which one a test is for, and how each tells its plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine

from db.engine import reading


def only(engine: str, reason: str) -> pytest.MarkDecorator:
    """Run the test on this engine alone: sqlite or postgresql."""
    assert reason
    return pytest.mark.parametrize("kind", [engine])


def plan(engine: Engine, sql: str, parameters: Any = ()) -> list[str]:
    """The steps by which the engine runs a statement of its own dialect, a line each.

    PostgreSQL reads small tables as a whole whatever indices there are; here it does so only where no index helps.
    """
    with reading(engine) as connection:
        if engine.name == "sqlite":
            return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        lines = connection.exec_driver_sql(f"EXPLAIN (COSTS OFF) {sql}", parameters or None).scalars()
        return [line.strip(" ->") for line in lines]


def full_scans(steps: Sequence[str]) -> list[str]:
    """The steps that read a table, or a whole index, from one end to the other."""
    return [
        step
        for step in steps
        if (step.startswith("SCAN") and "VIRTUAL TABLE" not in step) or step.startswith("Seq Scan")
    ]
