from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine

from db import checkpoints, events, queue, reports
from db.engine import reading, transaction
from db.errors import NotFound
from tests.db.rows import Started, counts, report, started


def acknowledge(engine: Engine, run: Started, new: list[reports.NewReport], step: int, **changes: Any) -> Any:
    fields = {"trial_id": run.trial_id, "path": f"a/{step}.safetensors", "sha256": "s", "attempt": 1}
    with transaction(engine) as connection:
        return checkpoints.acknowledge(connection, run.lease, new, step=step, **{**fields, **changes})


def types(engine: Engine, run: Started) -> list[str]:
    with reading(engine) as connection:
        return [event.type for event in events.after(connection, run.search_id, 4)]


def test_checkpoint_lands_with_its_reports(engine: Engine) -> None:
    run = started(engine)
    assert acknowledge(engine, run, [report(run.trial_id, step) for step in (0, 10)], 10).n_new == 2
    assert acknowledge(engine, run, [report(run.trial_id, 20)], 20, sha256="t").n_new == 1
    assert types(engine, run) == ["reports", "checkpoint"] * 2
    with reading(engine) as connection:
        newest = checkpoints.newest(connection, run.trial_id)
        assert newest is not None
        assert (newest.step, newest.path, newest.sha256, newest.attempt) == (20, "a/20.safetensors", "t", 1)
        assert [found.step for found in checkpoints.of_trial(connection, run.trial_id)] == [20, 10]
        assert checkpoints.newest(connection, "nobody") is None


def test_reports_flushed_earlier_are_enough(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        reports.insert(connection, run.lease, [report(run.trial_id, 10)])
    acknowledge(engine, run, [], 10)
    assert types(engine, run) == ["reports", "checkpoint"]


def test_checkpoint_before_its_report_is_refused_whole(engine: Engine) -> None:
    run = started(engine)
    before = counts(engine)
    with pytest.raises(ValueError, match=f"checkpoint 20 of trial {run.trial_id} comes before the report of its step"):
        acknowledge(engine, run, [report(run.trial_id, 10)], 20)
    assert counts(engine) == before


def test_checkpoint_written_again_names_the_new_file_without_an_event(engine: Engine) -> None:
    run = started(engine)
    acknowledge(engine, run, [report(run.trial_id, 10)], 10)
    acknowledge(engine, run, [report(run.trial_id, 10)], 10, path="b/10.safetensors", attempt=2)
    assert types(engine, run) == ["reports", "checkpoint"]
    with reading(engine) as connection:
        (found,) = checkpoints.of_trial(connection, run.trial_id)
    assert (found.path, found.attempt) == ("b/10.safetensors", 2)


def test_trial_that_contradicts_itself_gets_no_checkpoint(engine: Engine) -> None:
    run = started(engine)
    acknowledge(engine, run, [report(run.trial_id, 10)], 10)
    again = [report(run.trial_id, 10, tau=1.0), report(run.trial_id, 20)]
    found = acknowledge(engine, run, again, 20)
    assert (found.n_new, len(found.conflicts)) == (1, 1)
    with reading(engine) as connection:
        assert [found.step for found in checkpoints.of_trial(connection, run.trial_id)] == [10]


def test_difference_on_another_device_does_not_stop_checkpoints(engine: Engine) -> None:
    run = started(engine)
    acknowledge(engine, run, [report(run.trial_id, 10)], 10)
    again = [report(run.trial_id, 10, device="gpu", tau=1.0), report(run.trial_id, 20, device="gpu")]
    assert len(acknowledge(engine, run, again, 20).conflicts) == 1
    with reading(engine) as connection:
        assert [found.step for found in checkpoints.of_trial(connection, run.trial_id)] == [20, 10]


@pytest.mark.parametrize("path", ["/tmp/x", "../x"])
def test_file_outside_the_data_folder_is_refused(engine: Engine, path: str) -> None:
    run = started(engine)
    with pytest.raises(ValueError, match="must be relative to the data folder"):
        acknowledge(engine, run, [report(run.trial_id, 10)], 10, path=path)


def test_trial_of_another_search_is_refused(engine: Engine) -> None:
    first, second = started(engine), started(engine)
    acknowledge(engine, first, [report(first.trial_id, 10)], 10)
    with pytest.raises(NotFound, match="has no trial"):
        acknowledge(engine, second, [], 10, trial_id=first.trial_id)


def test_restart_goes_on_behind_what_was_acknowledged(engine: Engine) -> None:
    """Killed with reports beyond the checkpoint: the next attempt runs them again and nothing is lost or doubled."""
    run = started(engine, lease_s=-1)
    acknowledge(engine, run, [report(run.trial_id, step) for step in range(0, 11)], 10)
    with transaction(engine) as connection:
        reports.insert(connection, run.lease, [report(run.trial_id, step) for step in range(11, 15)])
        queue.reclaim_expired(connection)
        claimed = queue.claim_next(connection, "here:2", free_cpus=1, free_gpus=0)
        assert claimed is not None
        newest = checkpoints.newest(connection, run.trial_id)
        assert newest is not None
        new = [report(run.trial_id, step) for step in range(newest.step + 1, 21)]
        found = checkpoints.acknowledge(
            connection, claimed.lease, new, trial_id=run.trial_id, step=20, path="b", sha256="s", attempt=2
        )
    assert found == reports.Inserted(6, ())
    with reading(engine) as connection:
        rows = reports.of_search(connection, run.search_id).items
    assert [row.step for row in rows] == list(range(21))
