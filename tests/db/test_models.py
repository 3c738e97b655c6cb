from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Engine, select

from db import latency_tables, models, reports, searches, trials
from db.engine import reading, transaction
from tests.db.engines import full_scans, plan
from tests.db.rows import LABELS, record, report, started

MS = [3.25, 2.5, 0.0]  # by label


def test_view_has_a_row_per_cell(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        (retraining,) = trials.ensure(connection, run.lease, [trials.NewTrial("retrain", 0, 0, 10, {})])
        evidence: dict[str, Any] = {
            "z": [[0.5, -1.5, 0.0], [float("nan"), 2.5, 0.0]],
            "effect_nats": [[0.0, 0.25, None], [None, 0.0, -0.125]],
            "effect_se": [[0.0, 0.5, None], [None, 0.0, 1.5]],
        }
        new = [report(run.trial_id, 0), report(run.trial_id, 10, **evidence)]
        reports.insert(connection, run.lease, [*new, report(retraining.id, 0, probabilities=None)])
        latency_tables.put(connection, run.lease, table_id="t", key="k", body={})
        searches.set_inputs(connection, run.lease, request={}, latency_table_id="t", slot_ms=MS)
    cells = models.probability_cells.c
    with reading(engine) as connection:
        rows = connection.execute(
            select(models.probability_cells).where(cells.trial_id == run.trial_id, cells.step == 10)
        ).all()
        n_rows = len(connection.execute(select(models.probability_cells)).all())
        before = connection.execute(select(cells.z, cells.effect_nats, cells.effect_se).where(cells.step == 0)).all()
        over_time = connection.execute(
            select(cells.step, cells.probability)
            .where(cells.search_id == run.search_id, cells.slot == 1, cells.label == "ffn")
            .order_by(cells.step)
        ).all()
    probabilities = record(10).probabilities
    assert probabilities is not None
    beside = [
        [(0.5, 0.0, 0.0), (-1.5, 0.25, 0.5), (0.0, None, None)],
        [(None, None, None), (2.5, 0.0, 0.0), (0.0, -0.125, 1.5)],
    ]
    assert sorted(rows, key=lambda row: (row.slot, LABELS.index(row.label))) == [
        (
            run.search_id,
            run.trial_id,
            10,
            slot,
            label,
            probabilities[slot][place],
            *beside[slot][place],
            [3.25, 2.5, 0.0][place],
        )
        for slot in range(2)
        for place, label in enumerate(LABELS)
    ]
    assert n_rows == 12
    assert before == [(None, None, None)] * 6
    assert over_time == [(0, 0.75), (10, 0.75)]


def test_view_of_one_step_reads_one_row_by_its_key(engine: Engine) -> None:
    steps = plan(engine, "SELECT * FROM probability_cells WHERE trial_id = 't' AND step = 10")
    by_key = {
        "sqlite": r"SEARCH reports USING INDEX .*\(trial_id=\? AND step=\?\)",
        "postgresql": r"Index Cond: .*trial_id.* = 't'.* AND \(step = 10\)",
    }[engine.name]
    assert any(re.match(by_key, step) for step in steps), steps
    assert not full_scans(steps)
