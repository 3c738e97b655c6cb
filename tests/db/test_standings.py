from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, event

from db import architectures, reports, searches, standings, trials
from db.engine import reading, transaction
from db.standings import Standing
from tests.db.engines import full_scans, plan
from tests.db.rows import Started, queued, record, report, started

BODY = {"slots": ["attention", "ffn"], "undecided": [1]}


def standing(engine: Engine, search_id: str) -> Standing:
    with reading(engine) as connection:
        return standings.of_searches(connection, [search_id])[search_id]


def insert(engine: Engine, run: Started, *new: reports.NewReport) -> None:
    with transaction(engine) as connection:
        reports.insert(connection, run.lease, new)


def put(engine: Engine, run: Started, role: str) -> str:
    with transaction(engine) as connection:
        found = architectures.put(connection, run.lease, role=role, string="AF", hash=role, body=BODY)
    return found.id


def retraining(engine: Engine, run: Started, number: int, architecture_id: str) -> str:
    new = trials.NewTrial("retrain", number, 0, 100, {}, architecture_id)
    with transaction(engine) as connection:
        (trial,) = trials.ensure(connection, run.lease, [new])
    return trial.id


def test_a_queued_search_stands_nowhere(engine: Engine) -> None:
    assert standing(engine, queued(engine)) == standings.NONE


def test_an_unknown_search_is_left_out(engine: Engine) -> None:
    with reading(engine) as connection:
        assert standings.of_searches(connection, ["nobody"]) == {}
        assert standings.of_searches(connection, []) == {}


def test_the_newest_report_of_the_first_search_trial_counts(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        (other,) = trials.ensure(connection, run.lease, [trials.NewTrial("search", 0, 1, 100, {})])
    later: dict[str, Any] = {"probabilities": [[0.25, 0.5, 0.25], [0.125, 0.75, 0.125]], "val_loss_argmax": 2.0}
    insert(engine, run, report(run.trial_id, 0, val_loss_soft=5.5), report(other.id, 20, val_loss_argmax=0.5))
    assert (standing(engine, run.search_id).step, standing(engine, run.search_id).val_loss) == (0, 5.5)
    insert(engine, run, report(run.trial_id, 10, **later))
    found = replace(
        standings.NONE,
        step=10,
        probabilities=later["probabilities"],
        null_gaps=record(10).null_gaps,
        val_loss=2.0,
    )
    assert standing(engine, run.search_id) == found
    evidence: dict[str, Any] = {
        "path": [1, 1],
        "effect_nats": [[0.5, 0.0, None]] * 2,
        "effect_se": [[0.1, 0.0, None]] * 2,
    }
    insert(engine, run, report(run.trial_id, 20, **later, **evidence))
    assert standing(engine, run.search_id) == replace(found, step=20, **evidence)


def test_values_that_are_not_numbers_do_not_hide_the_rest(engine: Engine) -> None:
    run = started(engine)
    nan = float("nan")
    insert(engine, run, report(run.trial_id, 10, probabilities=[[nan, 0.5, 0.5], [nan] * 3], null_gaps=[nan, 0.5]))
    found = standing(engine, run.search_id)
    assert (found.probabilities, found.null_gaps) == ([[None, 0.5, 0.5], [None] * 3], [None, 0.5])


def test_the_result_is_what_was_chosen_and_not_any_architecture(engine: Engine) -> None:
    run = started(engine)
    chosen = put(engine, run, "budget")
    assert standing(engine, run.search_id).derived is None
    with transaction(engine) as connection:
        architectures.set_result(connection, run.lease, chosen)
    assert standing(engine, run.search_id).derived == BODY


def test_the_lowest_loss_of_retrainings_counts_but_not_the_parents(engine: Engine) -> None:
    run = started(engine)
    parent = retraining(engine, run, 2, put(engine, run, "parent"))
    first, second = (
        retraining(engine, run, number, put(engine, run, role)) for number, role in enumerate(("budget", "budget 2"))
    )
    insert(engine, run, report(run.trial_id, 10, val_loss_argmax=2.0), report(first, 0, val_loss=5.5))
    assert standing(engine, run.search_id).val_loss == 2.0
    insert(engine, run, report(parent, 10, val_loss=1.0), report(first, 10, val_loss=1.75))
    insert(engine, run, report(second, 10, val_loss=1.5), report(second, 20, val_loss=1.625))
    assert standing(engine, run.search_id).val_loss == 1.625  # of the newest reports


@pytest.mark.parametrize("quality", [{"derived_bits_per_byte": 2.5}, None])
def test_the_figure_on_test_comes_from_the_result(engine: Engine, quality: dict[str, float] | None) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        searches.set_result(connection, run.lease, {"quality": quality})
    assert standing(engine, run.search_id).test_bits_per_byte == (2.5 if quality else None)


def test_a_page_costs_one_statement_that_finds_every_row_by_a_key(engine: Engine) -> None:
    ids = [started(engine).search_id for _ in range(3)]
    statements: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        statements.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    with reading(engine) as connection:
        assert set(standings.of_searches(connection, ids)) == set(ids)
    event.remove(engine, "before_cursor_execute", note)
    ((sql, parameters),) = [each for each in statements if each[0] != "BEGIN"]
    steps = plan(engine, sql, parameters)
    assert not full_scans(steps), steps
