"""The store of a search without server keeps its promise after any interruption."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from nas.errors import InvalidInput, SearchFailed
from nas.steps import StepRecord
from tests import tiny
from workers.folder import FolderStore
from workers.store import Report, Saved, TrialKey
from workers.trainable import file_sha256

KEY = TrialKey("search", 0, 7)


def open_store(folder: Path, events: list[tuple[str, dict[str, Any]]] | None = None) -> FolderStore:
    told = events if events is not None else []
    return FolderStore(folder, {}, lambda kind, data: told.append((kind, data)))


def report(store: FolderStore, step: int, *, loss: float = 1.0, device: str = "here", checkpoint: bool = False) -> None:
    record = StepRecord(step=step, train_loss=loss, tokens_per_s=float(step), checkpoint=checkpoint)
    saved = None
    if checkpoint:
        path = store.folder / "trials" / str(KEY) / f"attempt-{store.attempt}" / f"step-{step}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"state after {step}")
        saved = Saved(step, path, file_sha256(path), last=False)
    store.report(KEY, Report(record, saved, device))


def test_records_and_the_newest_checkpoint_are_there_for_the_next_attempt(tmp_path: Path) -> None:
    first = open_store(tmp_path)
    report(first, 0)
    report(first, 10, checkpoint=True)
    second = open_store(tmp_path)
    assert second.attempt == first.attempt + 1
    assert [record.step for record in second.records(KEY)] == [0, 10]
    newest = second.newest(KEY)
    assert newest is not None
    assert (newest.step, newest.path.read_text()) == (10, "state after 10")


def test_a_report_cut_off_in_the_middle_is_dropped(tmp_path: Path) -> None:
    report(open_store(tmp_path), 0)
    file = tmp_path / "trials" / str(KEY) / "reports.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:20])
    again = open_store(tmp_path)
    report(again, 10)
    assert [record.step for record in open_store(tmp_path).records(KEY)] == [0, 10]


def test_each_line_of_a_warning_is_told_once(tmp_path: Path) -> None:
    record = StepRecord(step=5, warning="slot 0 flipped\nslot 1 flipped")
    told: list[tuple[str, dict[str, Any]]] = []
    for _ in range(2):  # the step runs again after a restart
        open_store(tmp_path, told).report(KEY, Report(record, None, "here"))
    warnings = [data for kind, data in told if kind == "warning"]
    assert warnings == [
        {"message": message, "trial": "search-0-7", "step": 5} for message in ("slot 0 flipped", "slot 1 flipped")
    ]


def test_two_checkpoints_are_kept_and_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for step in (10, 20, 30):
        report(store, step, checkpoint=True)
    files = sorted((tmp_path / "trials" / str(KEY) / "attempt-1").glob("*.safetensors"))
    assert [file.stem for file in files] == ["step-20", "step-30"]
    files[1].write_text("cut off")
    newest = store.newest(KEY)
    assert newest is not None
    assert newest.step == 20
    files[0].unlink()
    assert store.newest(KEY) is None


def test_a_step_that_runs_again_is_kept_and_told_once(tmp_path: Path) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    store = open_store(tmp_path, events)
    report(store, 10)
    report(store, 10)
    assert [kind for kind, _ in events] == ["reports"]
    assert len(store.records(KEY)) == 1


def test_a_step_that_time_ends_when_it_runs_again_is_no_other_step(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    record = StepRecord(step=10, train_loss=2.5)
    store.report(KEY, Report(record, None, "here"))
    ended = dataclasses.replace(
        record, warning="the search ended after 10 of 40 weight updates: max_minutes is 1", last=True
    )
    store.report(KEY, Report(ended, None, "here"))
    assert store.records(KEY) == [record]


def test_records_of_an_earlier_version_are_read_and_warnings_are_told_once(tmp_path: Path) -> None:
    trial = tmp_path / "trials" / str(KEY)
    trial.mkdir(parents=True)
    (trial / "reports.jsonl").write_text('{"device": "here", "record": {"step": 0, "train_loss": 2.5}}\n')
    events: list[tuple[str, dict[str, Any]]] = []
    store = open_store(tmp_path, events)
    assert store.records(KEY) == [StepRecord(step=0, train_loss=2.5)]
    said = StepRecord(step=10, phase="settle", path=[1], effect_nats=[[None, 0.0]], warning="slot 0: ranking flipped")
    for _ in range(2):
        store.report(KEY, Report(said, None, "here"))
    assert events[1:] == [("warning", {"message": said.warning, "trial": str(KEY), "step": 10})]
    assert open_store(tmp_path).records(KEY)[-1] == said
    again = StepRecord(step=0, phase="warm-up", train_loss=2.5)
    with pytest.raises(
        SearchFailed, match=r"^trial search-0-7: step 0 was reported by an older version of Blockwright"
    ):
        store.report(KEY, Report(again, None, "here"))


def test_another_number_on_an_equal_device_fails_and_on_another_device_warns(tmp_path: Path) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    store = open_store(tmp_path, events)
    report(store, 10)
    with pytest.raises(SearchFailed, match=r"trial search-0-7: train_loss of step 10 is not what it was .* equal dev"):
        report(store, 10, loss=2.0)
    report(store, 10, loss=2.0, device="elsewhere")
    assert events[-1][0] == "warning"
    assert "the device is another one" in events[-1][1]["message"]
    assert store.records(KEY)[0].train_loss == 1.0


@pytest.mark.parametrize("changed", [{"tokens_per_s": 0.5}, {"last": True, "checkpoint": True}])
def test_what_the_clock_decides_may_differ(tmp_path: Path, changed: dict[str, Any]) -> None:
    store = open_store(tmp_path)
    report(store, 10)
    store.report(KEY, Report(dataclasses.replace(store.records(KEY)[0], **changed), None, "here"))


def test_the_table_is_an_input_that_restarts_keep(tmp_path: Path) -> None:
    request = tiny.request()
    table = tiny.table(request.space)
    assert open_store(tmp_path).table("key") is None
    open_store(tmp_path).inputs(request, table, "key")
    assert open_store(tmp_path).table("key of another device") == table
    with pytest.raises(InvalidInput, match=r"unknown latency table 'other'; without a server, give the table itself"):
        open_store(tmp_path).table_by_id("other")
