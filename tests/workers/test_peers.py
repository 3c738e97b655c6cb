"""A trial on several ranks, started as a trial is: what it reports, and that nothing of it is left however it ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from nas import checkpoint
from nas.architecture import interleaved
from nas.config.task import Tokenizer
from nas.data.corpora import text_file
from nas.data.encode import encode
from nas.errors import SearchFailed
from nas.steps import StepRecord
from tests import tiny
from workers import peers
from workers.folder import FolderStore
from workers.inline import InlineTrials
from workers.peers import RankFailed
from workers.store import Report, StopRequested, TrialKey
from workers.trainable import TrialSpec

ROOT = Path(__file__).parents[2]
KEY = TrialKey("retrain", 0, 0)


def spec(folder: Path, gpus: float = 2, n_steps: int = 6, **changed: Any) -> TrialSpec:
    """A retraining, without dropout."""
    micro_batch = 2 if gpus < 2 else None
    request = tiny.request(
        resources={"cpus": 2, "gpus": gpus}, retrain={"n_steps": n_steps}, method={"micro_batch": micro_batch}
    )
    letters = text_file(tiny.text(), folder)
    data = encode(letters.path, letters.card, Tokenizer(), folder / "cache")
    request = request.with_data(data.fingerprint, data.sizes)
    attempt = folder / f"attempt-{gpus:g}"
    attempt.mkdir(exist_ok=True)
    fields = {
        "key": KEY,
        "request": request.resolve({}, 0).model_dump(mode="json"),
        "table": None,
        "architecture": interleaved(request.space).to_json(),
        "data": str(data.folder),
        "folder": str(attempt),
        "resume": None,
    }
    return TrialSpec(**{**fields, **changed})


@pytest.fixture(autouse=True)
def _nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No process of a trial, and none of its folders."""
    monkeypatch.setattr(peers.tempfile, "tempdir", str(tmp_path))
    before = set(_children())
    yield
    assert set(_children()) <= before
    assert list(tmp_path.glob("blockwright-ranks-*")) == []


def _children(pid: int | None = None) -> list[psutil.Process]:
    """Ranks that the process has started."""
    found = psutil.Process(pid).children()
    return [each for each in found if each.status() != psutil.STATUS_ZOMBIE and "workers.peers" in each.cmdline()]


def timeless(record: StepRecord) -> StepRecord:
    return replace(record, tokens_per_s=None)


def test_two_ranks_report_and_save_what_one_does_in_two_passes(tmp_path: Path) -> None:
    two: list[Report] = []
    one: list[Report] = []
    peers.run(spec(tmp_path), two.append)
    peers.run(spec(tmp_path, gpus=0, request=_one_thread(spec(tmp_path, gpus=0))), one.append)
    assert [timeless(each.record) for each in two] == [timeless(each.record) for each in one]
    assert [each.record.step for each in two] == [0, 2, 4, 6]
    assert two[0].device != one[0].device
    saved = [each[-1].saved for each in (two, one)]
    tensors = [checkpoint.read(each.path)[0] for each in saved if each is not None]
    assert tensors[0].keys() == tensors[1].keys()
    assert all(torch.equal(tensors[0][name], tensors[1][name]) for name in tensors[0])


def _one_thread(given: TrialSpec) -> dict[str, Any]:
    """As each of two ranks has of two CPUs."""
    return {**given.request, "resources": {"cpus": 1, "gpus": 0}}


def test_a_rank_that_gives_up_fails_the_trial_in_its_own_words(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "folder", {}, lambda kind, data: None)
    failures = InlineTrials().run([spec(tmp_path, data="/nowhere")], store)
    assert failures == {
        str(KEY): "encoded data are damaged: card.json is missing; remove /nowhere to have them made again"
    }


def test_a_rank_that_breaks_fails_the_trial_with_what_broke(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RankFailed, match=r"^rank [01] of 2 broke: KeyError: 'format_version'$"):
        peers.run(spec(tmp_path, architecture={}), lambda report: None)
    assert "Traceback" in capfd.readouterr().err


def test_a_rank_that_is_killed_fails_the_trial_and_the_others_end(tmp_path: Path) -> None:
    def kill(report: Report) -> None:
        for each in _children():  # none is left where a second report had come by then
            with contextlib.suppress(psutil.Error):
                if each.cmdline()[-2] == "1":
                    each.kill()

    message = "rank 1 of 2 was killed; the kernel does so when memory runs out: a smaller batch_size"
    with pytest.raises(RankFailed, match=f"^{re.escape(message)}"):
        peers.run(spec(tmp_path, n_steps=100_000), kill)


def test_a_trial_that_is_stopped_ends_its_ranks(tmp_path: Path) -> None:
    def stop(report: Report) -> None:
        assert len(_children()) == 2
        listening = [
            each.laddr.ip for rank in _children() for each in rank.net_connections() if each.status == "LISTEN"
        ]
        assert set(listening) <= {"127.0.0.1", "::1"}
        raise StopRequested

    with pytest.raises(StopRequested):
        peers.run(spec(tmp_path, n_steps=100_000), stop)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_ranks_end_with_the_trial_s_process(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(spec(tmp_path, n_steps=100_000).to_json())
    trial = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("ranked_trial.py")), str(tmp_path / "spec.json")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert trial.stdout is not None
    with trial.stdout as steps:
        assert next(steps) == "0\n"
        ranks = _children(trial.pid)
        assert len(ranks) == 2
        trial.send_signal(number)
        assert trial.wait() == -number
    deadline = time.monotonic() + 120
    while any(each.is_running() for each in ranks) or list(tmp_path.glob("blockwright-ranks-*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_fewer_gpus_than_the_trial_was_given_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    message = r"^the trial has 2 GPUs, and its process sees 1; give it as many$"
    with pytest.raises(SearchFailed, match=message):
        peers.run(spec(tmp_path), lambda report: None)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise SystemExit(3)", "rank 1 of 2 ended with exit status 3, without a word; the log may say why"),
        ("print('{\"rep', end='')", "rank 1 of 2 ended with exit status 0, without a word; the log may say why"),
        ("import os; os.abort()", "rank 1 of 2 was ended by SIGABRT, without a word; the log may say why"),
        ('print(\'{"lost": "its peer"}\')', "rank 1 of 2 has lost another: its peer"),
    ],
    ids=["status", "amid a word", "signal", "lost"],
)
def test_how_a_rank_ended_is_told(code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program in the place of a rank's, with an end that no trial can be made to have."""
    monkeypatch.setattr(peers, "_GRACE_S", 0.1)
    program = [sys.executable, "-c", code]
    start = subprocess.Popen
    monkeypatch.setattr(
        peers.subprocess,
        "Popen",
        lambda command, **named: start(program if command[-2] == "1" else ["sleep", "600"], **named),
    )
    with pytest.raises(RankFailed, match=f"^{re.escape(message)}$"):
        peers.run(spec(tmp_path), lambda report: None)
