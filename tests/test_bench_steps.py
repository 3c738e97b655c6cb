"""The benches of steps run at toy sizes, and count what they say. Figures are printed where they are made."""

from __future__ import annotations

import json
import sys

import pytest
import torch

from bench import gpu_step, search_step
from nas.retrain import Retraining


def run(bench: object, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    threads = torch.get_num_threads()
    bench.main()  # type: ignore[attr-defined]
    torch.set_num_threads(threads)


def test_search_step_shows_its_goals_and_ends_in_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(search_step, monkeypatch, "--tiny", "--no-nni", "--rounds", "1", "--steps", "5")
    shown = capsys.readouterr().out
    assert "weight step / models alone" in shown
    assert "from 3 to 8 candidates" in shown
    found = json.loads(shown.splitlines()[-1])
    assert all(len(each) == 1 and each[0] > 0 for each in found["seconds"].values())
    assert found["memory"]["soft"]["moments_mb"] == 2 * found["memory"]["soft"]["weights_mb"] > 0
    assert not any(name.startswith("NNI") for name in found["ratios"])


def test_models_alone_are_the_stacks_of_a_fair_round() -> None:
    models = search_step.alone(search_step.sized(search_step.KINDS, tiny=True))
    assert all(isinstance(model, Retraining) for model in models)
    by_slot = zip(*(model.architecture.labels for model in models), strict=True)
    assert all(sorted(labels) == sorted(search_step.KINDS) for labels in by_slot)


def test_ratios_are_taken_within_rounds() -> None:
    found = {"soft": [2.0, 4.0, 6.0], "models alone": [1.0, 1.0, 2.0]}
    (row,) = search_step.ratios(found).values()
    assert (row["low"], row["median"], row["high"], row["met"]) == (2.5, 3.0, 3.5, False)


def test_gpu_step_runs_on_a_cpu_and_counts_the_arithmetic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(gpu_step, monkeypatch, "--device", "cpu", "--tiny", "--rounds", "1", "--batch", "2")
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    request = gpu_step.sized(True, 2)
    assert found["weight_flops"] == 3 * gpu_step.forward_flops(request)
    assert found["weight_share"] == pytest.approx(
        found["weight_flops"] / found["weight_ms"] * 1e3 / found["peak_flops_per_s"]
    )
    assert found["whole_of_models_alone"] > 0  # by wall time: a busy machine may time five steps longer than six
    assert found["weight_of_models_alone"] > 0
    assert -1 < found["growth_from_3_to_8_candidates"] < 1


def test_gpu_step_says_that_there_is_no_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        run(gpu_step, monkeypatch)
    assert capsys.readouterr().err.startswith("no GPU here: nothing is measured;")
