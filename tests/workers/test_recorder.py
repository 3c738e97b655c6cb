"""The store in the database: batches, acknowledged checkpoints, and what happens when the search is somebody else's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from db import datasets, latency_tables, queue, reports, trials
from db.engine import reading, transaction
from nas.errors import InvalidInput, SearchFailed
from nas.steps import StepRecord
from tests import tiny
from tests.postgresql import Server
from tests.workers.service import Service
from workers.recorder import Recorder
from workers.store import Planned, Report, Saved, StopRequested, TrialKey
from workers.trainable import file_sha256

KEY = TrialKey("search", 0, 0)


@dataclass
class Claimed:
    """A search that was claimed, and its recorder."""

    service: Service
    claim: queue.Claim
    recorder: Recorder
    stop: threading.Event
    lost: threading.Event

    def report(
        self, step: int, *, loss: float = 1.0, device: str = "here", saved: bool = False, last: bool = False
    ) -> Path:
        """Send a report; its checkpoint file."""
        record = StepRecord(
            step=step, train_loss=loss, tokens_per_s=step + 0.5, probabilities=[[0.25, 0.75]], null_gaps=[0.1],
            updates=[[step, 0]],
        )  # fmt: skip
        path = self.recorder.folder / "trials" / str(KEY) / "attempt-1" / f"step-{step}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        if saved:
            path.write_text(f"state after {step}")
        kept = Saved(step, path, file_sha256(path), last) if saved else None
        self.recorder.report(KEY, Report(record, kept, device))
        return path

    def kinds(self) -> list[str]:
        return [event.type for event in self.service.events(self.claim.lease.search_id)]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ""
        return
    server: Server = request.getfixturevalue("postgresql")
    with server.database() as found:
        yield found


@pytest.fixture
def claimed(tmp_path: Path, url: str) -> Iterator[Claimed]:
    service = Service(tmp_path, None, url)
    service.submit(tiny.request())
    with transaction(service.engine) as connection:
        claim = queue.claim_next(connection, "test", free_cpus=1, free_gpus=0, lease_s=1000)
    assert claim is not None
    stop, lost = threading.Event(), threading.Event()
    recorder = Recorder(service.engine, claim.lease, tmp_path, claim.attempt, stop, lost.set)
    recorder.plan([Planned(KEY, 40, {"/method/lr": 1e-3})])
    recorder.begin(KEY)
    yield Claimed(service, claim, recorder, stop, lost)
    recorder.close()
    service.engine.dispose()


def test_records_come_back_as_they_were_sent(claimed: Claimed) -> None:
    claimed.report(0)
    claimed.report(10, loss=0.1 + 0.2)
    assert claimed.recorder.records(KEY) == [
        StepRecord(
            step=step, train_loss=loss, tokens_per_s=step + 0.5, probabilities=[[0.25, 0.75]], null_gaps=[0.1],
            updates=[[step, 0]],
        )
        for step, loss in ((0, 1.0), (10, 0.1 + 0.2))
    ]  # fmt: skip


def test_everything_that_a_record_says_comes_back(claimed: Claimed) -> None:
    values: dict[str, Any] = {
        "phase": "prune",
        "path": [1],
        "warning": "slot 0 flipped\nslot 1 flipped",
        "not_learnt": "no better than at step 0",
        "cut_short": "ended after 50 of 90",
        "updates": [[3, 4]],
    }
    for field in fields(StepRecord):
        if field.name not in ("step", "last", "checkpoint", *values):
            values[field.name] = 0.1 + 0.2
    values |= {name: [[0.25, 0.75]] for name in ("probabilities", "z")} | {"null_gaps": [0.5]}
    values |= {name: [[None, 0.0]] for name in ("effect_nats", "effect_se")}
    values |= {"finalists": [[1]], "finalist_nats": [0.1 + 0.2]}
    sent = StepRecord(step=50, **values)
    claimed.recorder.report(KEY, Report(sent, None, "here"))
    assert claimed.recorder.records(KEY) == [sent]
    assert claimed.kinds()[-3:] == ["reports", "warning", "warning"]  # one for each line


def test_a_trial_that_is_given_up_is_told_once(claimed: Claimed) -> None:
    reason = "pruned at step 10: behind 2 of 3 other samples"
    claimed.report(10)
    for _ in range(2):  # a restarted runner comes to the same end
        claimed.recorder.prune(KEY, reason)
    assert claimed.kinds()[-2:] == ["reports", "trial"]
    with reading(claimed.service.engine) as connection:
        (trial,) = trials.of_search(connection, claimed.claim.lease.search_id)
    assert (trial.state, trial.reason, trial.step) == ("cancelled", reason, 10)


def test_reports_that_come_together_are_one_event(claimed: Claimed) -> None:
    for step in range(20):
        claimed.report(step)
    claimed.recorder.flush()
    assert claimed.kinds().count("reports") <= 3


def test_a_checkpoint_counts_with_all_reports_before_it(claimed: Claimed) -> None:
    assert claimed.recorder.newest(KEY) is None
    claimed.report(0)
    path = claimed.report(10, saved=True)
    assert claimed.recorder.newest(KEY) == Saved(10, path, file_sha256(path), last=False)
    assert [record.step for record in claimed.recorder.records(KEY)] == [0, 10]
    assert claimed.kinds()[-2:] == ["reports", "checkpoint"]


def test_the_last_checkpoint_ends_the_trial(claimed: Claimed) -> None:
    claimed.report(40, saved=True, last=True)
    newest = claimed.recorder.newest(KEY)
    assert newest is not None
    assert newest.last
    with reading(claimed.service.engine) as connection:
        (trial,) = trials.of_search(connection, claimed.claim.lease.search_id)
    assert trial.state == "succeeded"


def test_two_files_are_kept_and_a_damaged_one_is_passed_over(claimed: Claimed) -> None:
    paths = [claimed.report(step, saved=True) for step in (10, 20, 30)]
    claimed.recorder.flush()
    assert [path.exists() for path in paths] == [False, True, True]
    paths[2].write_text("cut off")
    newest = claimed.recorder.newest(KEY)
    assert newest is not None
    assert newest.step == 20


def test_a_checkpoint_written_again_after_later_ones_were_damaged_is_kept(claimed: Claimed) -> None:
    paths = [claimed.report(step, saved=True) for step in (10, 20, 30)]
    claimed.recorder.flush()
    for path in paths[1:]:
        path.write_text("cut off")
    assert claimed.recorder.newest(KEY) is None
    again = claimed.report(10, saved=True)  # from the beginning
    newest = claimed.recorder.newest(KEY)
    assert newest == Saved(10, again, file_sha256(again), last=False)


def test_whatever_stops_the_writing_thread_reaches_the_main_one(
    claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied", "step-10.safetensors")

    monkeypatch.setattr("workers.recorder.remove_files", refuse)
    claimed.report(10, saved=True)
    with pytest.raises(PermissionError):
        claimed.recorder.flush()
    with pytest.raises(PermissionError):
        claimed.report(20)


def test_a_step_that_runs_again_is_told_once(claimed: Claimed) -> None:
    claimed.report(10)
    claimed.recorder.flush()
    claimed.report(10)
    claimed.recorder.flush()
    assert claimed.kinds().count("reports") == 1


def test_another_number_on_an_equal_device_fails_the_search(claimed: Claimed) -> None:
    claimed.report(10)
    claimed.recorder.flush()
    claimed.report(10, loss=2.0)
    with pytest.raises(SearchFailed, match=r"train_loss"):
        claimed.recorder.flush()
    with pytest.raises(SearchFailed, match=r"train_loss"):
        claimed.report(20)


def test_what_a_restart_tells_again_is_kept_once(claimed: Claimed) -> None:
    statement = {"statement": "attention stands early", "verdict": "suggested"}
    told = []
    for _ in range(2):
        claimed.recorder.warn("all-ffn is not retrained")
        told.append(claimed.recorder.rule(statement))
    assert told[0] is not None
    assert told[0] == told[1]
    changed = {**statement, "verdict": "not supported"}
    assert claimed.recorder.rule(changed) == told[0]  # the same row, brought up to date
    kinds = claimed.kinds()
    assert (kinds.count("warning"), kinds.count("rule")) == (1, 2)


def test_another_number_on_another_device_is_a_warning(claimed: Claimed) -> None:
    claimed.report(10)
    claimed.recorder.flush()
    claimed.report(10, loss=2.0, device="elsewhere")
    claimed.recorder.flush()
    assert claimed.kinds()[-1] == "warning"


def test_a_recorder_whose_lease_is_lost_writes_nothing_and_ends_its_process(claimed: Claimed) -> None:
    with transaction(claimed.service.engine) as connection:
        queue.reclaim(connection, claimed.claim.lease, "taken away by this test")
    n_before = len(claimed.kinds())
    claimed.report(10)
    assert claimed.lost.wait(timeout=120)
    with pytest.raises(SearchFailed, match=r"the search belongs to another runner now"):
        claimed.recorder.flush()
    assert len(claimed.kinds()) == n_before
    with reading(claimed.service.engine) as connection:
        (trial,) = trials.of_search(connection, claimed.claim.lease.search_id)
        assert reports.newest(connection, trial.id) is None


def test_no_stage_is_entered_after_a_request_to_stop(claimed: Claimed) -> None:
    claimed.recorder.stage("measuring")
    claimed.stop.set()
    with pytest.raises(StopRequested):
        claimed.recorder.stage("searching")


def test_a_registered_text_is_read_and_a_built_in_one_gets_its_fingerprint(claimed: Claimed) -> None:
    path = claimed.recorder.folder.parent.parent / "letters.txt"
    path.write_bytes(tiny.text())
    with transaction(claimed.service.engine) as connection:
        datasets.register(connection, name="letters", fingerprint="f" * 64, n_bytes=20_000, path="letters.txt")
    assert claimed.recorder.dataset("letters", None).path.read_bytes() == tiny.text()
    assert claimed.recorder.dataset("python-docs", None).path.stat().st_size > 100_000
    with reading(claimed.service.engine) as connection:
        row = datasets.get(connection, "python-docs")
    assert row.path is None
    assert row.card is not None
    assert row.card["n_characters"] > 50, "it is shown as an upload is"
    with pytest.raises(InvalidInput, match=r"nowhere"):
        claimed.recorder.dataset("nowhere", None)


def test_a_table_is_found_by_its_key_and_by_its_id(claimed: Claimed) -> None:
    request = tiny.request()
    table = tiny.table(request.space)
    for _ in range(2):  # a restart pins them again, and tells nobody
        claimed.recorder.inputs(request.model_copy(update={"latency_table": table.id}), table, "key")
    assert claimed.kinds().count("latency_table") == 1
    assert claimed.recorder.table("key") == table
    assert claimed.recorder.table("another key") is None
    assert claimed.recorder.table_by_id(table.id) == table
    search = claimed.service.search(claimed.claim.lease.search_id)
    assert search.request["latency_table"] == table.id
    assert search.slot_ms == tuple(table.slot_ms(request.space))
    with pytest.raises(InvalidInput, match=r"unheard-of"):
        claimed.recorder.table_by_id("unheard-of")


def test_an_estimate_is_told_once(claimed: Claimed) -> None:
    for _ in range(2):  # a restart says it again
        claimed.recorder.estimate({"memory_bytes": 8, "seconds": 1.5, "prune_seconds": 0.0})
    assert claimed.kinds().count("estimate") == 1


def test_what_a_comparison_can_show_is_told_once_and_again_when_it_is_another(claimed: Claimed) -> None:
    first = {"message": "3 paired seeds show 0.1", "n_seeds": 3, "sd": 0.1 + 0.2, "detectable": None}
    for told in (first, first, {**first, "sd": 0.01}, first):
        claimed.recorder.power(told)
    assert claimed.kinds().count("power") == 2


def test_a_trial_is_named_by_its_id(claimed: Claimed) -> None:
    with reading(claimed.service.engine) as connection:
        (row,) = trials.of_search(connection, claimed.claim.lease.search_id)
    assert claimed.recorder.trial_id(KEY) == row.id


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)  # an SQLite file has no server
def test_reports_wait_for_a_server_that_is_restarted(claimed: Claimed, postgresql: Server) -> None:
    claimed.report(0, saved=True)
    claimed.recorder.flush()
    postgresql.stop()
    claimed.report(10, saved=True)
    postgresql.start()
    assert [record.step for record in claimed.recorder.records(KEY)] == [0, 10]
    assert claimed.kinds().count("checkpoint") == 2


def test_a_table_of_an_older_version_that_cannot_be_used_is_refused_in_words(claimed: Claimed) -> None:
    body = tiny.table(tiny.request().space).model_dump(mode="json") | {"offset_ms": -1.0}
    with transaction(claimed.service.engine) as connection:
        latency_tables.put(connection, claimed.claim.lease, table_id="a" * 32, key="added", body=body)
    with pytest.raises(InvalidInput, match=r"^latency table a{32} cannot be used: offset_ms: .*; measure it again$"):
        claimed.recorder.table_by_id("a" * 32)
