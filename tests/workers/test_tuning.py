"""Trials through Ray Tune: the same reports as in this process, and reasons that reach the user."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from nas.architecture import interleaved
from nas.config.request import Resources
from nas.config.task import Tokenizer
from nas.data.corpora import text_file
from nas.data.encode import encode
from nas.errors import InvalidInput, SearchFailed
from tests import tiny
from workers.cluster import Cluster, ClusterError
from workers.folder import FolderStore
from workers.inline import InlineTrials
from workers.store import StopRequested, TrialKey
from workers.trainable import TrialSpec

ONE = Resources(cpus=1, gpus=0.5)


def spec(store: FolderStore, seed: int, **changed: Any) -> TrialSpec:
    request = tiny.request()
    letters = text_file(tiny.text(), store.folder)
    data = encode(letters.path, letters.card, Tokenizer(), store.cache)
    request = request.with_data(data.fingerprint, data.sizes)
    key = TrialKey("retrain", 0, seed)
    folder = store.folder / "trials" / str(key) / "attempt-1"
    folder.mkdir(parents=True, exist_ok=True)
    fields = {
        "key": key,
        "request": request.resolve({}, seed).model_dump(mode="json"),
        "table": None,
        "architecture": interleaved(request.space).to_json(),
        "data": str(data.folder),
        "folder": str(folder),
        "resume": None,
    }
    return TrialSpec(**{**fields, **changed})


def losses(store: FolderStore, seed: int) -> list[tuple[int, float | None]]:
    return [(record.step, record.val_loss) for record in store.records(TrialKey("retrain", 0, seed))]


@pytest.mark.ray
def test_trials_report_as_in_this_process_and_failures_say_why(tmp_path: Path, ray_driver: Cluster) -> None:
    from workers.tuning import RayTrials

    through_ray = FolderStore(tmp_path / "ray", {}, lambda kind, data: None)
    here = FolderStore(tmp_path / "here", {}, lambda kind, data: None)
    listened: list[bool] = []
    trials = RayTrials(tmp_path / "tune", threading.Event(), lambda: listened.append(True))
    failures = trials.run(
        [
            spec(through_ray, 0),
            spec(through_ray, 1, data="/nowhere"),  # a failure of ours is told at once
            spec(through_ray, 2, architecture={}),  # any other one is tried again, and then told
        ],
        through_ray,
    )
    assert InlineTrials().run([spec(here, 0)], here) == {}
    assert losses(through_ray, 0) == losses(here, 0)
    assert [step for step, _ in losses(here, 0)] == [0, 2, 4, 6]
    assert set(failures) == {"retrain-0-1", "retrain-0-2"}
    assert failures["retrain-0-1"].startswith("encoded data are damaged: card.json is missing")
    assert failures["retrain-0-2"].startswith("KeyError: ")
    assert listened == [True]
    assert not (tmp_path / "tune").exists()


@pytest.mark.ray
def test_a_trial_of_two_gpus_runs_two_ranks_where_ray_has_placed_it(tmp_path: Path, ray_driver: Cluster) -> None:
    from workers.tuning import RayTrials

    through_ray = FolderStore(tmp_path / "ray", {}, lambda kind, data: None)
    here = FolderStore(tmp_path / "here", {}, lambda kind, data: None)
    trials = RayTrials(tmp_path / "tune", threading.Event(), lambda: None)
    both = [on_two_gpus(spec(through_ray, 0)), on_two_gpus(spec(through_ray, 1, architecture={}))]
    failures = trials.run(both, through_ray)
    assert InlineTrials().run([on_two_gpus(spec(here, 0))], here) == {}
    assert losses(through_ray, 0) == losses(here, 0)
    assert [step for step, _ in losses(here, 0)] == [0, 2, 4, 6]
    assert set(failures) == {"retrain-0-1"}
    assert re.match(r"rank [01] of 2 broke: KeyError: ", failures["retrain-0-1"])


def on_two_gpus(given: TrialSpec) -> TrialSpec:
    return dataclasses.replace(given, request={**given.request, "resources": {"cpus": 1, "gpus": 2}})


@pytest.mark.ray
def test_a_trial_that_is_to_wait_does_so_and_goes_on_with_the_same_bits(tmp_path: Path, ray_driver: Cluster) -> None:
    from workers.tuning import RayTrials

    store = FolderStore(tmp_path / "ray", {}, lambda kind, data: None)
    trials = RayTrials(tmp_path / "tune", threading.Event(), lambda: None)
    assert trials.run([spec(store, 0, until=3)], store) == {}
    saved = store.newest(TrialKey("retrain", 0, 0))
    assert saved is not None
    assert (saved.step, saved.last) == (4, False)  # its first report from there on
    assert [step for step, _ in losses(store, 0)] == [0, 2, 4]
    assert trials.run([spec(store, 0, resume=str(saved.path))], store) == {}
    here = FolderStore(tmp_path / "here", {}, lambda kind, data: None)
    assert InlineTrials().run([spec(here, 0)], here) == {}
    assert losses(store, 0) == losses(here, 0)


@pytest.mark.ray
def test_what_the_store_refuses_ends_the_run_with_that_very_error(tmp_path: Path, ray_driver: Cluster) -> None:
    from workers.tuning import RayTrials

    def refuse(kind: str, data: dict[str, Any]) -> None:
        if kind == "reports":
            raise SearchFailed("refused by this test")

    store = FolderStore(tmp_path, {}, refuse)
    with pytest.raises(SearchFailed, match=r"^refused by this test$"):
        RayTrials(tmp_path / "tune", threading.Event(), lambda: None).run([spec(store, 0)], store)


@pytest.mark.ray
def test_what_stops_tune_itself_is_told_by_its_last_line(
    tmp_path: Path, ray_driver: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray import tune

    from workers.tuning import RayTrials

    def stop(tuner: Any) -> None:
        raise tune.TuneError("first line\nno space left\n")

    monkeypatch.setattr(tune.Tuner, "fit", stop)
    store = FolderStore(tmp_path, {}, lambda kind, data: None)
    with pytest.raises(SearchFailed, match=r"^Ray Tune stopped: no space left$"):
        RayTrials(tmp_path / "tune", threading.Event(), lambda: None).run([spec(store, 0)], store)


@pytest.mark.ray
def test_a_call_gives_the_result_or_the_error_and_can_be_stopped(tmp_path: Path, ray_driver: Cluster) -> None:
    from workers.tuning import RayTrials

    stop = threading.Event()
    trials = RayTrials(tmp_path, stop, lambda: None)
    assert trials.call(ONE, json.loads, "[1]") == [1]
    with pytest.raises(json.JSONDecodeError, match=r"^Expecting value"):
        trials.call(ONE, json.loads, "")
    stop.set()
    with pytest.raises(StopRequested):
        trials.call(ONE, subprocess.run, ["sleep", "100"])
    with pytest.raises(StopRequested):
        trials.run([], FolderStore(tmp_path / "search", {}, lambda kind, data: None))


@pytest.mark.ray
def test_more_than_a_machine_has_is_refused(tmp_path: Path, ray_driver: Cluster) -> None:
    from workers.tuning import RayTrials

    trials = RayTrials(tmp_path, threading.Event(), lambda: None)
    trials.check(Resources(cpus=2, gpus=2))
    with pytest.raises(InvalidInput, match=r"a trial needs 1 CPUs and 3 GPUs on one machine; the largest has 2 CPUs a"):
        trials.check(Resources(cpus=1, gpus=3))


def test_an_address_where_nobody_listens_is_refused_at_once() -> None:
    from workers.tuning import connect

    with pytest.raises(ClusterError, match=r"no Ray cluster answers at '127\.0\.0\.1:1': .*refused"):
        connect("127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"no Ray cluster answers at 'nonsense'"):
        connect("nonsense")
