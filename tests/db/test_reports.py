from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from db import events, models, reports, searches, trials
from db.engine import reading, transaction
from db.errors import InvalidCursor, LeaseLost, NotFound
from nas.steps import StepRecord
from tests.db.rows import Started, record, report, started


def insert(engine: Engine, run: Started, *new: reports.NewReport) -> reports.Inserted:
    with transaction(engine) as connection:
        return reports.insert(connection, run.lease, new)


def told(engine: Engine, search_id: str, *types: str) -> list[tuple[str, dict[str, Any]]]:
    with reading(engine) as connection:
        return [(event.type, event.data) for event in events.after(connection, search_id) if event.type in types]


def test_columns_mirror_the_step_record() -> None:
    own = {"trial_id", "device", "created_at"}
    flags = {"last", "checkpoint"}  # tell the trial what to do; not of the state at that step
    assert {column.name for column in models.reports.c} - own == {field.name for field in fields(StepRecord)} - flags


def test_record_comes_back_bit_by_bit(engine: Engine) -> None:
    run = started(engine)
    full = StepRecord(
        step=10,
        phase="settle",
        train_loss=0.1 + 0.2,
        val_loss=1 / 3,
        val_loss_soft=math.pi,
        val_loss_argmax=5e-324,
        val_loss_sampled=2 / 3,
        tau=0.2,
        expected_ms=1e300,
        entropy=0.0,
        identity_share=0.7,
        alpha_velocity=1e-17,
        dual=1e-3,
        tokens_per_s=1234.5,
        probabilities=[[0.10000000149011612, 0.8999999761581421]],
        null_gaps=[0.1],
        updates=[[7, 3]],
        z=[[-1 / 3, 40.5]],
        path=[1],
        effect_nats=[[0.1 + 0.2, None]],
        effect_se=[[1e-9, None]],
        finalists=[[1], [0]],
        finalist_nats=[0.1 + 0.2, 1.5],
        warning="slot 0: ranking flipped",
        not_learnt="no better than at step 0",
        cut_short="ended after 10 of 40",
    )
    assert insert(engine, run, reports.NewReport(run.trial_id, full)) == reports.Inserted(1, ())
    with reading(engine) as connection:
        found = reports.newest(connection, run.trial_id)
        assert found is not None
        for stored in found:
            for field in fields(stored):
                if field.name not in ("trial_id", "created_at"):
                    assert getattr(stored, field.name) == getattr(full, field.name)
        assert reports.newest(connection, "nobody") is None
        assert trials.get(connection, run.trial_id).step == 10


def test_batch_has_one_event_per_trial(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        (other,) = trials.ensure(connection, run.lease, [trials.NewTrial("search", 0, 1, 100, {})])
    both = [report(trial_id, step) for step in (0, 10, 20) for trial_id in (run.trial_id, other.id)]
    assert insert(engine, run, *both).n_new == 6
    assert [data for _, data in told(engine, run.search_id, "reports")] == [
        {"trial": trial_id, "first_step": 0, "last_step": 20} for trial_id in (run.trial_id, other.id)
    ]
    with reading(engine) as connection:
        rows = reports.between(connection, other.id, 10, 20)
    assert [(scalars.step, matrices.step) for scalars, matrices in rows] == [(10, 10), (20, 20)]


def test_repeated_step_is_kept_once_and_told_once(engine: Engine) -> None:
    run = started(engine)
    insert(engine, run, report(run.trial_id, 0), report(run.trial_id, 10))
    faster = report(run.trial_id, 10, tokens_per_s=2000.0)
    assert insert(engine, run, faster, report(run.trial_id, 20)) == reports.Inserted(1, ())
    assert insert(engine, run, faster) == reports.Inserted(0, ())
    assert [(data["first_step"], data["last_step"]) for _, data in told(engine, run.search_id, "reports")] == [
        (0, 10),
        (20, 20),
    ]
    with reading(engine) as connection:
        ((stored, _),) = reports.between(connection, run.trial_id, 10, 10)
    assert stored.tokens_per_s == 1000.0


def test_range_of_an_event_covers_no_step_told_before(engine: Engine) -> None:
    run = started(engine)
    insert(engine, run, report(run.trial_id, 10))
    insert(engine, run, *(report(run.trial_id, step) for step in (0, 5, 10, 15, 20)))
    ranges = [(data["first_step"], data["last_step"]) for _, data in told(engine, run.search_id, "reports")]
    assert ranges == [(10, 10), (0, 5), (15, 20)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("train_loss", 2.5000000000000004),
        ("tau", None),
        ("probabilities", [[0.5, 0.25, 0.25], [0.125, 0.75, 0.12500000000000003]]),
        ("updates", [[1, 2, 3], [3, 2, 2]]),
        ("phase", "settle"),
        ("dual", 0.25),
        ("z", [[0.0, 1.0, -1.0], [0.5, 0.5, 0.5]]),
        ("path", [0, 1]),
        ("effect_nats", [[0.0, None, 0.5], [None, 0.0, None]]),
    ],
)
def test_repeated_step_that_differs_is_a_conflict(engine: Engine, name: str, value: Any) -> None:
    run = started(engine)
    insert(engine, run, report(run.trial_id, 10))
    before = told(engine, run.search_id, *events.TYPES)
    (conflict,) = insert(engine, run, report(run.trial_id, 10, **{name: value})).conflicts
    assert (conflict.trial_id, conflict.step, conflict.same_device) == (run.trial_id, 10, True)
    assert conflict.differing == {name: (getattr(record(10), name), value)}
    assert str(conflict).startswith("step 10 executed again on the same device gave another outcome: " + name)
    (conflict,) = insert(engine, run, report(run.trial_id, 10, device="gpu", **{name: value})).conflicts
    assert not conflict.same_device
    assert told(engine, run.search_id, *events.TYPES) == before
    with reading(engine) as connection:
        ((stored, matrices),) = reports.between(connection, run.trial_id, 10, 10)
    assert getattr(stored, name, getattr(matrices, name, None)) == getattr(record(10), name)


def test_conflict_reads_as_one_line() -> None:
    conflict = reports.Conflict("t", 10, {"tau": (1.0, 2.0), "updates": ([1], [2])}, False)
    assert (
        str(conflict) == "step 10 executed again on another device gave another outcome: tau was 1.0, now 2.0; updates"
    )


def test_a_step_of_an_older_version_is_told_as_such() -> None:
    conflict = reports.Conflict("t", 10, {"phase": (None, "warm-up"), "tau": (1.0, 2.0)}, True)
    assert str(conflict) == (
        "step 10 was reported by an older version of Blockwright, whose steps this one cannot repeat; submit the "
        "search again"
    )


def test_step_twice_in_a_batch_is_a_repetition(engine: Engine) -> None:
    run = started(engine)
    found = insert(engine, run, report(run.trial_id, 10), report(run.trial_id, 10, tau=1.0))
    assert found.n_new == 1
    assert found.conflicts[0].differing == {"tau": (5.0, 1.0)}


def test_a_repeated_step_that_time_now_ends_is_no_conflict(engine: Engine) -> None:
    run = started(engine)
    insert(engine, run, report(run.trial_id, 10))
    before = told(engine, run.search_id, *events.TYPES)
    said = "the search ended after 10 of 40 weight updates: max_minutes is 1"
    ended = report(run.trial_id, 10, warning=said, cut_short=said, not_learnt="no better than at step 0")
    assert insert(engine, run, ended).conflicts == ()
    assert told(engine, run.search_id, *events.TYPES) == before


def test_values_that_are_not_finite_become_null_with_a_warning(engine: Engine) -> None:
    run = started(engine)
    bad = report(
        run.trial_id,
        10,
        train_loss=math.inf,
        tau=None,
        probabilities=[[math.nan, 0.5, -math.inf], [0.25, 0.5, 0.25]],
    )
    insert(engine, run, report(run.trial_id, 0), bad)
    assert insert(engine, run, bad) == reports.Inserted(0, ())
    assert told(engine, run.search_id, "warning") == [
        ("warning", {"message": message, "trial": run.trial_id, "step": 10})
        for message in (
            "1 value of train_loss at step 10 not finite; stored as null",
            "2 values of probabilities at step 10 not finite; stored as null",
        )
    ]
    with reading(engine) as connection:
        ((stored, matrices),) = reports.between(connection, run.trial_id, 10, 10)
        # one bad cell must not break queries over all the others
        cells = connection.execute(select(models.probability_cells.c.probability)).all()
    assert stored.train_loss is None
    assert matrices.probabilities == [[None, 0.5, None], [0.25, 0.5, 0.25]]
    assert len(cells) == 12


def test_what_the_guards_say_is_told_once_as_a_warning(engine: Engine) -> None:
    run = started(engine)
    said = "slot 0: ranking flipped"
    for _ in range(2):
        insert(engine, run, report(run.trial_id, 0), report(run.trial_id, 10, warning=said))
    assert told(engine, run.search_id, "warning") == [("warning", {"message": said, "trial": run.trial_id, "step": 10})]


def test_words_that_cannot_be_kept_as_they_are_are_no_conflict(engine: Engine) -> None:
    run = started(engine)
    odd = report(run.trial_id, 10, warning="a\0b\ud800")
    insert(engine, run, odd)
    assert insert(engine, run, odd) == reports.Inserted(0, ())
    assert told(engine, run.search_id, "warning")[0][1]["message"] == "a\ufffdb\ufffd"


def test_trial_of_another_search_is_refused(engine: Engine) -> None:
    first, second = started(engine), started(engine)
    with pytest.raises(NotFound, match=f"search {second.search_id} has no trial '{first.trial_id}'"):
        insert(engine, second, report(first.trial_id, 0))


def test_lost_lease_loses_the_whole_batch(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        searches.finish(connection, run.lease, "cancelled")
    with pytest.raises(LeaseLost):
        insert(engine, run, report(run.trial_id, 0))
    with reading(engine) as connection:
        assert reports.newest(connection, run.trial_id) is None


def test_curves_come_in_pages(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        (other,) = trials.ensure(connection, run.lease, [trials.NewTrial("retrain", 0, 0, 100, {})])
    insert(engine, run, *(report(run.trial_id, step) for step in range(0, 55, 5)))
    insert(engine, run, *(report(other.id, step, probabilities=None) for step in range(0, 20, 5)))
    with reading(engine) as connection:
        seen = []
        cursor = None
        while True:
            page = reports.of_search(connection, run.search_id, limit=4, cursor=cursor)
            seen += [(found.trial_id, found.step) for found in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == [(run.trial_id, step) for step in range(0, 55, 5)] + [
            (other.id, step) for step in (0, 5, 10, 15)
        ]
        thinned = reports.of_search(connection, run.search_id, stride=20)
        assert [(found.trial_id, found.step) for found in thinned.items] == [
            *((run.trial_id, step) for step in (0, 20, 40, 50)),  # the newest is always there
            *((other.id, step) for step in (0, 15)),
        ]
        part = reports.of_search(connection, run.search_id, trial_id=other.id, first_step=5, last_step=10)
        assert [found.step for found in part.items] == [5, 10]
        matrices = reports.probabilities(connection, run.search_id, stride=25)
        assert [(found.trial_id, found.step) for found in matrices.items] == [(run.trial_id, s) for s in (0, 25, 50)]
        assert matrices.items[0].probabilities == record(0).probabilities
        assert reports.probabilities(connection, run.search_id, limit=10).next_cursor is not None
        assert reports.of_search(connection, "nobody").items == ()
        with pytest.raises(InvalidCursor):
            reports.probabilities(connection, run.search_id, cursor="x")


def test_large_batch_goes_in_at_once(engine: Engine) -> None:
    run = started(engine)
    batch = [report(run.trial_id, step) for step in range(1000)]
    assert insert(engine, run, *batch).n_new == 1000
    assert insert(engine, run, *batch) == reports.Inserted(0, ())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(attempts=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12), st.integers(1, 5)), max_size=5))
def test_replayed_events_give_every_step_exactly_once(engine: Engine, attempts: list[tuple[int, int, int]]) -> None:
    """An attempt goes some reports back, to a checkpoint, and then on, flushing a few reports at a time."""
    run = started(engine)
    n_stored = 0
    for back, n_reports, n_flush in attempts:
        first = max(0, n_stored - back)
        steps = range(first, first + n_reports)
        for start in range(0, n_reports, n_flush):
            insert(engine, run, *(report(run.trial_id, step) for step in steps[start : start + n_flush]))
        n_stored = max(n_stored, first + n_reports)
    replayed = []
    with reading(engine) as connection:
        for event in events.after(connection, run.search_id):
            if event.type == "reports":
                rows = reports.between(connection, run.trial_id, event.data["first_step"], event.data["last_step"])
                replayed += [scalars.step for scalars, _ in rows]
    assert replayed == list(range(n_stored))
