"""The retraining stage: baselines, a grid of learning rates, warm starts and a teacher, in whole tiny searches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nas.config.request import SearchRequest
from nas.data.corpora import text_file
from nas.errors import SearchFailed
from nas.ingest.card import Dataset
from tests import tiny
from workers.inline import run_local
from workers.stages.numbering import Numbering

Files = dict[str, Dataset]
Events = list[tuple[str, dict[str, Any]]]
BASELINES = ["interleaved", "sandwich", "random", "all-ffn", "all-attention"]


def request(**retrain: Any) -> SearchRequest:
    return tiny.request(
        space={"n_slots": 4, "d_model": 16, "n_heads": 2, "max_len": 16},
        task={"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]},
        method={
            "n_steps": 40, "lr": 8e-3, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.15,
            "checkpoint_every": 10,
        },
        trials={"n_seeds": 2},
        retrain={"n_steps": 6, "n_seeds": 3, "test_windows": 8, **retrain},
    )  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return {"letters": text_file(tiny.text(), tmp_path_factory.mktemp("data"))}


def run(asked: SearchRequest, folder: Path, files: Files) -> tuple[dict[str, Any], Events]:
    events: Events = []
    table = tiny.table(asked.space)
    return run_local(asked, folder, files, lambda kind, data: events.append((kind, data)), table), events


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, files: Files) -> tuple[Path, dict[str, Any], Events]:
    folder = tmp_path_factory.mktemp("searches") / "all"
    return folder, *run(request(baselines=BASELINES, lrs=[0.1, 1.0]), folder, files)


def by_name(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in result["retrained"]}


def test_every_baseline_is_trained_and_held_against_the_derived_one(
    finished: tuple[Path, dict[str, Any], Events],
) -> None:
    _, result, _ = finished
    layouts = by_name(result)
    baselines = ["interleaved", "sandwich", "all-ffn", "all-attention", "random 1", "random 2"]
    assert [name for name in layouts if not name.startswith("derived")] == baselines
    assert layouts["sandwich"]["string"] == "AAFF"
    assert layouts["derived"]["slots"] == result["derived"]["slots"]
    comparisons = {each["second"]: each for each in result["comparisons"]}
    assert [*comparisons] == [name for name in layouts if name != "derived"]
    for name, found in comparisons.items():
        assert (found["first"], found["n_seeds"]) == ("derived", 3)
        difference = layouts["derived"]["mean"] - layouts[name]["mean"]
        assert found["difference"] == pytest.approx(difference, abs=1e-6)
        assert found["low"] <= found["difference"] <= found["high"]
        assert found["detectable"] >= 0
        assert (found["latency"] is None) == name.startswith("derived ")
    quality = result["quality"]
    same = comparisons["interleaved"]
    assert (same["difference"], same["low"], same["high"]) == (
        quality["difference"], quality["low"], quality["high"],
    )  # fmt: skip


def test_a_layout_tells_its_trials_costs_and_intervals(finished: tuple[Path, dict[str, Any], Events]) -> None:
    _, result, events = finished
    ended = {data["trial"] for kind, data in events if kind == "trial" and data["state"] == "succeeded"}
    for each in result["retrained"]:
        assert each["seeds"] == [0, 1, 2]
        assert len(each["trials"]) == 3
        assert set(each["trials"]) <= ended
        assert each["lr"] in (pytest.approx(8e-4), 8e-3)
        assert len(each["val_loss"]) == len(each["test"]) == 3
        assert each["low"] < each["mean"] < each["high"]
    layouts = by_name(result)
    assert layouts["all-ffn"]["cache_bytes"] == 0
    assert layouts["all-attention"]["cache_bytes"] > 0
    assert layouts["all-ffn"]["parameters"] > layouts["all-attention"]["parameters"]
    assert layouts["sandwich"]["flops"] == layouts["interleaved"]["flops"]


def test_random_stacks_cost_what_the_derived_one_does(finished: tuple[Path, dict[str, Any], Events]) -> None:
    layouts = by_name(finished[1])
    for name in ("random 1", "random 2"):
        assert layouts[name]["predicted_ms"] == pytest.approx(layouts["derived"]["predicted_ms"], rel=0.05)
        assert layouts[name]["slots"] != layouts["derived"]["slots"]


def test_each_architecture_takes_the_rate_that_validates_best_with_the_first_seed(
    finished: tuple[Path, dict[str, Any], Events],
) -> None:
    folder, result, events = finished
    losses: dict[str, float] = {}
    values: dict[str, dict[str, float]] = {}
    for kind, data in events:
        if kind == "reports" and data["record"]["last"]:
            losses[data["trial"]] = data["record"]["val_loss"]
        if kind == "trial" and data["state"] == "queued":
            values[data["trial"]] = data["values"]
    known = json.loads((folder / "retrainings.json").read_text())
    for each in result["retrained"]:
        number = int(each["trials"][0].split("-")[1])
        tried = {
            n: losses[f"retrain-{n}-0"] for n, entry in enumerate(known) if entry["network"] == known[number]["network"]
        }
        assert len(tried) == 2
        assert number == min(tried, key=lambda n: tried[n])
        assert values[each["trials"][0]]["/method/lr"] == pytest.approx(each["lr"])
        others = [f"retrain-{n}-1" for n in tried if n != number]
        assert not any(other in losses for other in others)  # the rate that lost gets no other seed


def test_what_can_be_shown_is_told_before_any_retraining_and_again_before_the_random_ones(
    finished: tuple[Path, dict[str, Any], Events],
) -> None:
    _, result, events = finished
    told = [number for number, (kind, _) in enumerate(events) if kind == "power"]
    queued = [
        number
        for number, (kind, data) in enumerate(events)
        if kind == "trial" and data["state"] == "queued" and data["trial"].startswith("retrain-")
    ]
    assert len(told) == 2
    assert told[0] < queued[0]
    assert told[1] < queued[-1]
    assert [data for kind, data in events if kind == "power"] == result["power"]
    first, second = result["power"]
    assert first["source"] == "the losses of 2 search seeds, which are not paired"
    assert first["message"].startswith("retraining: 3 paired seeds show a difference from ")
    assert second["source"].endswith("networks retrained before, on validation")
    assert first["unit"] == second["unit"] == result["quality"]["unit"]


@pytest.mark.parametrize("after", [3, 14, 26])
def test_stopped_anywhere_it_goes_on_with_the_same_trials_and_numbers(
    after: int, finished: tuple[Path, dict[str, Any], Events], files: Files, tmp_path: Path
) -> None:
    undisturbed, expected, told = finished
    asked = request(baselines=BASELINES, lrs=[0.1, 1.0])
    folder = tmp_path / "stopped"
    ended: list[str] = []

    def interrupt(kind: str, data: dict[str, Any]) -> None:
        if kind == "trial" and data["state"] == "succeeded" and data["trial"].startswith("retrain-"):
            ended.append(data["trial"])
            if len(ended) == after:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_local(asked, folder, files, interrupt, tiny.table(asked.space))
    result, events = run(asked, folder, files)
    assert (folder / "retrainings.json").read_text() == (undisturbed / "retrainings.json").read_text()
    assert result["retrained"] == expected["retrained"]
    for one, other in zip(result["comparisons"], expected["comparisons"], strict=True):
        assert {**one, "latency": None} == {**other, "latency": None}
    started = [data["trial"] for kind, data in events if kind == "trial" and data["state"] == "running"]
    assert not set(started) & set(ended)  # what had ended is not run again
    assert {*started, *ended} == {
        data["trial"]
        for kind, data in told
        if kind == "trial" and data["state"] == "succeeded" and data["trial"].startswith("retrain-")
    }


def test_a_warm_start_begins_lower_and_is_told(files: Files, tmp_path: Path) -> None:
    (cold, _), (warm, events) = (
        run(request(start=start), tmp_path / start, files) for start in ("scratch", "supernet")
    )
    assert by_name(warm)["derived"]["slots"] == by_name(cold)["derived"]["slots"]
    for name in ("derived", "interleaved"):
        assert by_name(warm)[name]["mean"] < by_name(cold)[name]["mean"] - 0.1
    warnings = [data["message"] for kind, data in events if kind == "warning"]
    assert any(each.startswith("retrain.start is supernet: the search trained the blocks") for each in warnings)


def test_everything_learns_from_the_parent_which_is_trained_first_and_by_itself(files: Files, tmp_path: Path) -> None:
    result, events = run(request(distil={"weight": 0.9}), tmp_path / "taught", files)
    plain, _ = run(request(), tmp_path / "plain", files)
    layouts = by_name(result)
    assert layouts["teacher"]["slots"] == layouts["interleaved"]["slots"]
    assert layouts["teacher"]["test"] == by_name(plain)["interleaved"]["test"]
    assert layouts["interleaved"]["test"] != layouts["teacher"]["test"]
    assert layouts["derived"]["test"] != by_name(plain)["derived"]["test"]
    assert "teacher" not in [each["second"] for each in result["comparisons"]]
    queued = [data["trial"] for kind, data in events if kind == "trial" and data["trial"].startswith("retrain-")]
    assert queued[0] == layouts["teacher"]["trials"][0] == "retrain-0-0"


def test_a_rate_at_which_training_diverges_is_out_of_the_running(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "nas.retrain.learning_rate", lambda step, n, method: float("nan") if method.lr > 0.02 else method.lr
    )
    result, _ = run(request(lrs=[1, 100]), tmp_path / "one", files)
    assert {each["lr"] for each in result["retrained"]} == {8e-3}
    with pytest.raises(
        SearchFailed, match=r"^trial retrain-1-0 failed, as with every other of retrain.lrs: training di"
    ):
        run(request(lrs=[50, 100]), tmp_path / "none", files)


def test_one_seed_is_told_to_show_nothing(files: Files, tmp_path: Path) -> None:
    result, _ = run(request(n_seeds=1), tmp_path / "one", files)
    (told,) = result["power"]
    assert told["message"].startswith("retraining: one seed of each network cannot show that a difference holds")
    assert told["detectable"] is None
    assert all(each["detectable"] is None for each in result["comparisons"])
    assert {each["low"] for each in result["retrained"]} == {None}


def test_numbers_are_given_once_and_found_again(tmp_path: Path) -> None:
    numbering = Numbering(tmp_path)
    first = numbering.give("a", {"/method/lr": 0.1}, False, "id of a")
    assert numbering.give("a", {"/method/lr": 0.2}, False, "id of a").number == 1
    assert numbering.give("a", {"/method/lr": 0.1}, True, "id of a").number == 2
    numbering.save()
    again = Numbering(tmp_path)
    assert again.give("a", {"/method/lr": 0.1}, False, "another id") == first
    assert again.architecture_of("a") == "id of a"
    assert again.architecture_of("b") is None
    assert again.give("b", {}, False, "id of b").number == 3
