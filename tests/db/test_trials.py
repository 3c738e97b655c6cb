from __future__ import annotations

import pytest
from sqlalchemy import Engine

from db import events, queue, searches, trials
from db.engine import reading, transaction
from db.errors import NotFound
from db.trials import NewTrial
from tests.db.rows import claim, counts, started


def test_restarted_runner_gets_the_same_trials(engine: Engine) -> None:
    run = started(engine)
    wanted = [
        NewTrial("search", 0, 1, 100, {}),
        NewTrial("search", 0, 0, 100, {}),
        NewTrial("retrain", 2, 0, 50, {"/method/lr": 0.5}, "architecture"),
    ]
    with transaction(engine) as connection:
        first = trials.ensure(connection, run.lease, wanted)
        before = searches.get(connection, run.search_id).last_event
        assert trials.ensure(connection, run.lease, wanted) == first
        assert searches.get(connection, run.search_id).last_event == before
    assert [(trial.kind, trial.sample, trial.seed) for trial in first] == [
        ("search", 0, 1),
        ("search", 0, 0),
        ("retrain", 2, 0),
    ]
    assert first[1].id == run.trial_id
    assert (first[2].params, first[2].architecture_id, first[2].n_steps) == ({"/method/lr": 0.5}, "architecture", 50)
    with reading(engine) as connection:
        assert [trial.seed for trial in trials.of_search(connection, run.search_id, kind="search")] == [0, 1]
        assert [trial.kind for trial in trials.of_search(connection, run.search_id)] == ["search", "search", "retrain"]
        assert trials.get(connection, first[2].id) == first[2]


def test_trial_is_never_reused_for_something_else(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        trials.ensure(connection, run.lease, [NewTrial("retrain", 0, 7, 50, {}, "first")])
        with pytest.raises(
            ValueError, match=r"trial retrain 0 of seed 7 is there for architecture first .* not second"
        ):
            trials.ensure(connection, run.lease, [NewTrial("retrain", 0, 7, 50, {}, "second")])


def test_states_are_kept_and_told(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        trials.finish(connection, run.lease, run.trial_id, "lost", reason="the node went away")
        trials.start(connection, run.lease, run.trial_id, attempt=2, device="gpu")
        running = trials.get(connection, run.trial_id)
        trials.finish(connection, run.lease, run.trial_id, "succeeded", result={"val_loss": 1.5})
        done = trials.get(connection, run.trial_id)
        told = [event.data["state"] for event in events.after(connection, run.search_id) if event.type == "trial"]
    assert (running.state, running.reason, running.attempt, running.device) == ("running", None, 2, "gpu")
    assert running.finished_at is None
    assert (done.state, done.result, done.started_at) == ("succeeded", {"val_loss": 1.5}, running.started_at)
    assert done.finished_at is not None
    assert told == ["queued", "running", "lost", "running", "succeeded"]


def test_trial_of_another_search_is_not_touched(engine: Engine) -> None:
    first, second = started(engine), started(engine)
    before = counts(engine)
    with transaction(engine) as connection:
        for trial_id in (first.trial_id, "nobody"):
            with pytest.raises(NotFound, match="no trial"):
                trials.start(connection, second.lease, trial_id, attempt=1)
            with pytest.raises(NotFound, match="no trial"):
                trials.finish(connection, second.lease, trial_id, "succeeded")
    assert counts(engine) == before


def test_trial_rests_in_a_known_state_with_a_reason(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        with pytest.raises(ValueError, match="a trial cannot finish as 'running'; known: succeeded"):
            trials.finish(connection, run.lease, run.trial_id, "running")
        with pytest.raises(ValueError, match="a failed trial needs a reason"):
            trials.finish(connection, run.lease, run.trial_id, "failed")


def test_trials_wait_for_the_next_attempt(engine: Engine) -> None:
    run = started(engine, lease_s=-1)
    with transaction(engine) as connection:
        trials.ensure(connection, run.lease, [NewTrial("search", 0, 1, 100, {})])
        queue.reclaim_expired(connection)
    lease = claim(engine).lease
    with transaction(engine) as connection:
        assert [trial.state for trial in trials.of_search(connection, run.search_id)] == ["lost", "queued"]
        trials.start(connection, lease, run.trial_id, attempt=2)
        searches.finish(connection, lease, "failed", reason="x")
        assert [trial.state for trial in trials.of_search(connection, run.search_id)] == ["cancelled", "cancelled"]
