"""kill -9 of a trial in every phase, at random steps: each later alpha, z and effect is that of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nas import checkpoint
from nas.config.request import SearchRequest
from nas.steps import StepRecord
from tests import tiny
from tests.crash.dying_trial import run
from tests.crash.killing import seeded
from workers.folder import FolderStore, first_difference
from workers.store import TrialKey

KEY = TrialKey("search", 0, 0)
PHASES = ("warm-up", "search", "settle", "prune")
N_ROUNDS = int(os.environ.get("BLOCKWRIGHT_CRASH_ROUNDS", "10"))

METHOD: dict[str, Any] = {
    "n_steps": 36, "warmup_share": 0.3, "settle_share": 0.25, "alpha_share": 0.4, "alpha_lr": 0.2, "lr": 8e-3,
    "report_every": 3, "checkpoint_every": 5, "prune_steps": 3, "prune_windows": 8,
}  # fmt: skip
LETTERS: dict[str, Any] = {"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]}
REQUESTS: dict[str, dict[str, Any]] = {
    "straight-through": {"task": LETTERS},
    "two paths, a budget and a layout": {
        "task": LETTERS,
        "space": {"layout": ["ffn", {"present": "attention", "forbidden": ["mgk"]}]},
        "budget": {"latency": {"ratio_to_parent": 0.7}},
        "method": {"alpha_estimator": "two_path", "alpha_draws": 2, "candidate_dropout": 0.2},
    },
    "memory and dropout": {**tiny.RECURRENT, "task": {**tiny.RECURRENT["task"], "dataset": "letters"}},
}


def wanted(name: str) -> SearchRequest:
    given = REQUESTS[name]
    return tiny.request(**{**given, "method": {**METHOD, **given.get("method", {})}})


def prepared(folder: Path, request: SearchRequest) -> Path:
    folder.mkdir(parents=True)
    (folder / "wanted.json").write_text(request.model_dump_json())
    return folder


def kept(folder: Path, request: SearchRequest) -> tuple[list[StepRecord], dict[str, Any]]:
    """All records in the order in which they were written, and the tensors of the last checkpoint."""
    store = FolderStore(folder, {}, lambda kind, data: None, tiny.table(request.space))
    lines = (folder / "trials" / str(KEY) / "reports.jsonl").read_text().splitlines()
    records = store.records(KEY)
    assert len(lines) == len(records)  # no step was written twice
    newest = store.newest(KEY)
    assert newest is not None
    assert newest.last
    return records, checkpoint.read(newest.path)[0]


def run_to_death(folder: Path, step: int) -> None:
    script = Path(__file__).with_name("dying_trial.py")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(step)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if step < 0 else -signal.SIGKILL), done.stderr[-3000:]


def assert_killed_in_every_phase_it_ends_alike(name: str, tmp_path: Path, draw: random.Random) -> None:
    request = wanted(name)
    undisturbed = prepared(tmp_path / "undisturbed", request)
    run(undisturbed)
    records, tensors = kept(undisturbed, request)
    last = {phase: max(each.step for each in records if each.phase == phase) for phase in PHASES}
    assert list(last.values()) == sorted(last.values())
    assert any(nats is not None for row in records[-1].effect_nats or [] for nats in row)

    killed = prepared(tmp_path / "killed", request)
    first = 0
    for phase in PHASES:
        step = draw.randrange(first, last[phase])
        print(f"{name}: killed in {phase} behind {step} of {last[phase]} updates")
        run_to_death(killed, step)
        first = last[phase]
    run_to_death(killed, -1)
    again, tensors_again = kept(killed, request)
    assert [each.step for each in again] == [each.step for each in records]
    for before, after in zip(records, again, strict=True):
        assert first_difference(before, after) is None, f"step {before.step}: {first_difference(before, after)}"
    assert tensors.keys() == tensors_again.keys()
    assert all(tensor.equal(tensors_again[name]) for name, tensor in tensors.items())


@pytest.mark.parametrize("name", REQUESTS)
def test_a_trial_killed_in_every_phase_ends_as_an_undisturbed_one(name: str, tmp_path: Path) -> None:
    assert_killed_in_every_phase_it_ends_alike(name, tmp_path, random.Random(0))


@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_and_so_it_does_at_any_step(tmp_path: Path) -> None:
    with seeded() as draw:
        for number in range(N_ROUNDS):
            name = list(REQUESTS)[number % len(REQUESTS)]
            assert_killed_in_every_phase_it_ends_alike(name, tmp_path / str(number), draw)
