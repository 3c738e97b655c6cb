"""A whole search without server, Ray or database: what it leaves, and that it can be stopped anywhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.config.request import SearchRequest
from nas.config.task import ServeMode, Tokenizer
from nas.data.corpora import text_file
from nas.data.encode import encode
from nas.errors import DataError, Infeasible, InvalidInput, SearchFailed
from nas.ingest.card import Dataset
from tests import tiny
from workers.inline import run_local
from workers.trainable import file_sha256

Files = dict[str, Dataset]
Events = list[tuple[str, dict[str, Any]]]


def lively(**overrides: Any) -> SearchRequest:
    """A tiny request whose alpha moves beyond chance with any seed: many large alpha steps on blocks that learn."""
    method = {
        "n_steps": 40, "lr": 8e-3, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.15, "checkpoint_every": 10,
    }  # fmt: skip
    base: dict[str, Any] = {
        "task": {"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]},
        "method": {**method, **overrides.pop("method", {})},
    }
    return tiny.request(**{**base, **overrides})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return {"letters": text_file(tiny.text(), tmp_path_factory.mktemp("data"))}


@pytest.fixture(scope="module")
def request_() -> SearchRequest:
    return lively(
        trials={"seed": 0, "n_seeds": 2}
    )  # both move well beyond chance; no budget: it would be timed, and times are not the same twice


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory, files: Files, request_: SearchRequest
) -> tuple[Path, dict[str, Any], Events]:
    """One undisturbed run: its folder, result and events."""
    folder = tmp_path_factory.mktemp("searches") / "undisturbed"
    events: Events = []
    table = tiny.table(request_.space)
    result = run_local(request_, folder, files, lambda kind, data: events.append((kind, data)), table)
    return folder, result, events


def reported(events: Events) -> list[tuple[str, int]]:
    return [(data["trial"], data["record"]["step"]) for kind, data in events if kind == "reports"]


def test_the_result_file_holds_the_result_with_all_its_parts(
    finished: tuple[Path, dict[str, Any], Events],
) -> None:
    folder, result, _ = finished
    assert json.loads((folder / "result.json").read_text()) == result
    assert set(result) == {
        "search", "probabilities", "architectures", "derived", "parent", "samples", "winner", "rule", "quality",
        "latency", "latencies", "lengths", "metrics", "positions", "export", "cut_short", "estimate", "seconds",
        "rules", "retrained", "advice", "comparisons", "power",
    }  # fmt: skip
    assert set(result["seconds"]) == {"measuring", "searching", "deriving", "retraining", "exporting", "total"}
    assert [each["role"] for each in result["architectures"]] == ["argmax", "budget", "argmax", "budget", "parent"]
    assert result["derived"] in result["architectures"]
    assert result["parent"]["string"] == "AF"
    assert result["rule"]["statement"].startswith(f"1 search, 2 seeds: {result['rule']['verdict']}; ")
    assert result["quality"]["verdict"] in ("better", "worse", "cannot tell")
    assert result["latency"]["ratio"] > 0
    assert result["cut_short"] == []


def test_the_export_is_checked_and_its_hash_is_in_the_result(finished: tuple[Path, dict[str, Any], Events]) -> None:
    folder, result, _ = finished
    archive = folder / result["export"]["file"]
    assert file_sha256(archive) == result["export"]["sha256"]
    assert result["export"]["logits_max_abs_difference"] <= 1e-5
    with zipfile.ZipFile(archive) as opened:
        assert "model.py" in opened.namelist()
        assert json.loads(opened.read("request.json"))["latency_table"] == result["search"]["latency_table"]


def test_stages_and_steps_are_told_in_order(finished: tuple[Path, dict[str, Any], Events]) -> None:
    _, _, events = finished
    stages = [data["stage"] for kind, data in events if kind == "stage"]
    assert stages == ["measuring", "searching", "deriving", "retraining", "exporting"]
    steps = [step for trial, step in reported(events) if trial == "search-0-0"]
    assert steps[0] == 0
    assert steps[-1] == 40
    assert steps == sorted(set(steps))


def test_a_finished_folder_answers_at_once(
    finished: tuple[Path, dict[str, Any], Events], files: Files, request_: SearchRequest
) -> None:
    folder, result, _ = finished
    events: Events = []
    again = run_local(
        request_, folder, files, lambda kind, data: events.append((kind, data)), tiny.table(request_.space)
    )
    assert again == result
    assert [kind for kind, _ in events] == ["result"]


@pytest.mark.parametrize("n_reports", [4, 27, 47, None], ids=lambda n: f"after {n} reports" if n else "exporting")
def test_a_search_stopped_anywhere_goes_on_to_the_same_bits(
    n_reports: int | None,
    finished: tuple[Path, dict[str, Any], Events],
    files: Files,
    request_: SearchRequest,
    tmp_path: Path,
) -> None:
    undisturbed_folder, undisturbed, told = finished
    events: Events = []

    def interrupt(kind: str, data: dict[str, Any]) -> None:
        events.append((kind, data))
        if (len(reported(events)) == n_reports) if kind == "reports" else (kind == "artifact" and n_reports is None):
            raise KeyboardInterrupt

    table = tiny.table(request_.space)
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        run_local(request_, folder, files, interrupt, table)
    result = run_local(request_, folder, files, lambda kind, data: events.append((kind, data)), table)
    assert result["probabilities"] == undisturbed["probabilities"]
    assert result["architectures"] == undisturbed["architectures"]
    assert result["quality"] == undisturbed["quality"]
    weights = [file_sha256(each / "export" / "model.safetensors") for each in (folder, undisturbed_folder)]
    assert weights[0] == weights[1]
    assert sorted(reported(events)) == sorted(reported(told))  # nothing lost, nothing told twice


def test_the_derived_architecture_is_predicted_within_the_budget(files: Files, tmp_path: Path) -> None:
    request = lively(budget={"latency": {"ratio_to_parent": 0.5}})
    events: Events = []
    result = run_local(request, tmp_path / "bound", files, lambda *told: events.append(told), tiny.table(request.space))
    assert result["derived"]["predicted_ms"] <= 0.5 * result["parent"]["predicted_ms"]
    (bound,) = result["derived"]["bounds"]  # of a table that was measured on no machine
    assert (bound["measured"], bound["verdict"]) == (None, "cannot tell")
    assert "so budget.latency is met by its prediction alone" in bound["reason"]
    assert ("warning", {"message": bound["reason"]}) in events


def test_of_several_samples_the_best_one_is_derived(files: Files, tmp_path: Path) -> None:
    request = lively(
        ranges=[
            {"pointer": "/method/lr", "low": 2e-3, "high": 2e-2, "log": True},
            {"pointer": "/method/batch_size", "low": 3, "high": 5},
        ],
        trials={"n_seeds": 1, "n_samples": 4},
    )
    events: Events = []
    folder = tmp_path / "samples"
    result = run_local(
        request, folder, files, lambda kind, data: events.append((kind, data)), tiny.table(request.space)
    )
    last = {
        data["trial"]: data["record"]["val_loss_argmax"]
        for kind, data in events
        if kind == "reports" and data["record"]["last"] and data["trial"].startswith("search")
    }
    assert [each["state"] for each in result["samples"]].count("pruned") == 2
    assert {f"search-{each['sample']}-0": each["loss"] for each in result["samples"] if not each["reason"]} == last
    best = result["search"]["sample"]
    assert last[f"search-{best}-0"] == min(last.values())
    assert (result["winner"]["sample"], result["winner"]["clear"]) == (best, False)  # one seed tells no interval
    assert 2e-3 <= result["search"]["values"]["/method/lr"] <= 2e-2
    assert result["search"]["values"]["/method/batch_size"] in (3, 4, 5)
    assert result["winner"]["values"] == result["search"]["values"]


def test_without_a_table_one_is_measured_before_any_trial(files: Files, tmp_path: Path) -> None:
    events: Events = []
    request = lively(retrain={"n_steps": 2, "n_seeds": 1, "baselines": []})
    result = run_local(request, tmp_path / "measured", files, lambda kind, data: events.append((kind, data)))
    kinds = [kind for kind, _ in events]
    assert kinds.index("latency_table") < kinds.index("trial")
    assert result["search"]["device"]["threads"] == "1"
    assert result["parent"] is None  # no baseline was asked for
    assert result["quality"] is None


def test_a_search_that_max_minutes_ended_before_it_learnt_is_told_and_fails(files: Files, tmp_path: Path) -> None:
    request = lively(method={"warmup_share": 0.0, "alpha_lr": 1.0, "max_minutes": 1e-9})
    table = tiny.table(request.space)
    events: Events = []
    with pytest.raises(SearchFailed, match=r"^seed 0: the search has not learnt: its path's loss is .* more method"):
        run_local(request, tmp_path / "brief", files, lambda kind, data: events.append((kind, data)), table)
    told = [data["message"] for kind, data in events if kind == "warning"]
    assert "the search ended after 1 of 40 weight updates: max_minutes is 1e-09" in told


class Clock:
    """Of trials: a millisecond a look, until it is told to run by more than an hour."""

    def __init__(self) -> None:
        self.seconds, self.tick = 0.0, 1e-3

    def monotonic(self) -> float:
        self.seconds += self.tick
        return self.seconds


def run_by(
    clock: Clock, late: Callable[[str, dict[str, Any]], bool], request: SearchRequest, folder: Path, files: Files
) -> tuple[dict[str, Any], Events]:
    """A local run whose trials are late from the first event that `late` names."""
    events: Events = []

    def tell(kind: str, data: dict[str, Any]) -> None:
        events.append((kind, data))
        if late(kind, data):
            clock.tick = 4000.0

    return run_local(request, folder, files, tell, tiny.table(request.space)), events


def test_a_retraining_that_max_minutes_ended_is_told_in_the_result(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("nas.training.time", clock)
    request = lively(trials={"seed": 0})
    result, events = run_by(clock, lambda kind, data: data.get("stage") == "retraining", request, tmp_path / "r", files)
    line = "the retraining ended after 1 of 6 weight updates: max_minutes is 60"
    assert result["cut_short"] == [f"trial retrain-0-0: {line}", f"trial retrain-1-0: {line}"]
    told = [(data["trial"], data["message"]) for kind, data in events if kind == "warning" and "trial" in data]
    assert told == [("retrain-0-0", line), ("retrain-1-0", line)]


def test_a_parsimony_pass_that_max_minutes_ended_is_told_in_the_result(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("nas.training.time", clock)
    request = lively(method={"prune_steps": 2, "prune_windows": 4}, trials={"seed": 0}, retrain={"n_steps": 1})

    def late(kind: str, data: dict[str, Any]) -> bool:
        return kind == "reports" and data["record"]["step"] == 40

    result, events = run_by(clock, late, request, tmp_path / "p", files)
    (line,) = result["cut_short"]
    assert re.match(
        r"trial search-0-0: the parsimony pass ended at step \d+, before all that is cheaper was tried: max_min", line
    )
    told = [data["message"] for kind, data in events if kind == "warning"]
    assert told.count(line.removeprefix("trial search-0-0: ")) == 1


def test_a_table_of_another_serve_mode_is_refused(files: Files, tmp_path: Path) -> None:
    request = lively()
    table = tiny.table(request.space, ServeMode(batch=1, query_length=16))
    with pytest.raises(
        InvalidInput,
        match=r"^latency table [0-9a-f]{32} holds for prefill of 1 x 16 tokens; the request serves prefill of 2 x 16",
    ):
        run_local(request, tmp_path / "other", files, lambda kind, data: None, table)


def test_a_folder_of_another_search_is_refused(files: Files, tmp_path: Path) -> None:
    request = lively()
    (tmp_path / "request.json").write_text(lively(name="other").model_dump_json())
    with pytest.raises(InvalidInput, match=r"holds another search; give a folder of its own"):
        run_local(request, tmp_path, files, lambda kind, data: None)


def test_a_result_of_something_else_is_not_taken_for_this_one(files: Files, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(InvalidInput, match=r"holds a result.json of something else; give a folder of its own"):
        run_local(lively(), tmp_path, files, lambda kind, data: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "result.json"]


def test_a_trained_network_that_was_lost_is_told_and_trained_again(
    finished: tuple[Path, dict[str, Any], Events], files: Files, request_: SearchRequest, tmp_path: Path
) -> None:
    def lose(kind: str, data: dict[str, Any]) -> None:
        if kind == "trial" and data["state"] == "succeeded" and data["trial"].startswith("retrain-0-"):
            for path in (tmp_path / "trials" / data["trial"]).rglob("*.safetensors"):
                path.unlink()

    table = tiny.table(request_.space)
    with pytest.raises(SearchFailed, match=r"^the last checkpoint of trial retrain-0-[0-9] is missing or damaged; res"):
        run_local(request_, tmp_path, files, lose, table)
    assert run_local(request_, tmp_path, files, lambda kind, data: None, table)["quality"] == finished[1]["quality"]


def test_a_folder_in_use_is_refused(files: Files, tmp_path: Path) -> None:
    request = lively()

    def again(kind: str, data: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput, match=rf"is in use by process {os.getpid()}; wait for it, or give another"):
            run_local(request, tmp_path, files, lambda kind, data: None, tiny.table(request.space))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_local(request, tmp_path, files, again, tiny.table(request.space))


def test_a_folder_that_cannot_be_written_is_told_in_one_line(files: Files, tmp_path: Path) -> None:
    request = lively()
    (tmp_path / "file").write_text("no folder")
    told = r"^cannot use .*file/search: not a directory; put that right and run it again"
    with pytest.raises(SearchFailed, match=told):
        run_local(request, tmp_path / "file" / "search", files, lambda kind, data: None, tiny.table(request.space))


FULL_DISK = """
import pathlib, resource, signal, sys
from nas.data.corpora import text_file
from nas.errors import SearchFailed
from tests import tiny
from tests.workers.test_inline import lively
from workers.inline import run_local
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))  # less than a checkpoint, more than all other files
request, folder = lively(), pathlib.Path(sys.argv[1])
letters = text_file(tiny.text(), folder.parent / "letters")
try:
    run_local(request, folder, {"letters": letters}, print, tiny.table(request.space))
except SearchFailed as error:
    print(error)
"""


def test_a_full_disk_ends_the_search_in_one_line_and_more_room_lets_it_go_on(files: Files, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "search")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert re.search(
        r"^trial search-0-0 failed: cannot save a checkpoint in .*attempt-1: .*too large", done.stdout, re.MULTILINE
    )
    assert not [*tmp_path.rglob("*.part")]
    request = lively()
    assert run_local(request, tmp_path / "search", files, lambda kind, data: None, tiny.table(request.space))["derived"]


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"task": {"dataset": "nowhere"}}, InvalidInput, r"unknown dataset 'nowhere'; known: "),
        ({"task": {"dataset": "short"}}, DataError, r"the weights part has 21 tokens; 4 windows of 16 tokens"),
        (
            {"task": {"dataset": "python-docs"}},
            InvalidInput,
            r"dataset 'python-docs' is built in; register the file under another name",
        ),
        (
            {
                "task": {"dataset": "token-wise", "objective": "token_classification"},
                "space": {"n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "backbone": {"pooling": "none"}},
            },
            InvalidInput,
            r"dataset 'token-wise' is built in; register the file under another name",
        ),
        (
            {"task": {"dataset": "letters", "dataset_fingerprint": "0" * 64}},
            DataError,
            r"dataset 'letters' has fingerprint [0-9a-f]{12}; the request names 0{12}",
        ),
        (
            {"budget": {"latency": {"ms": 0.5}}},
            Infeasible,
            r"budget\.latency allows 0\.5 ms; the smallest architecture has 1 ms",
        ),
        ({"latency_table": "0123456789abcdef0123456789abcdef"}, InvalidInput, r"unknown latency table '0123"),
        ({"resources": {"cpus": 1000}}, InvalidInput, r"a trial needs 1000 CPUs and 0 GPUs; this machine has"),
    ],
)
def test_what_cannot_end_well_is_refused_before_any_training(
    overrides: dict[str, Any], error: type[Exception], message: str, files: Files, tmp_path: Path
) -> None:
    short = text_file(b"thirty letters are not enough.", tmp_path)
    task = {"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]}
    request = lively(**{**overrides, "task": {**task, **overrides.get("task", {})}})
    table = None if "latency_table" in overrides else tiny.table(request.space)
    events: Events = []
    with pytest.raises(error, match=message):
        run_local(
            request,
            tmp_path / "search",
            {**files, "short": short, "python-docs": short, "token-wise": short},
            lambda kind, data: events.append((kind, data)),
            table,
        )
    assert "trial" not in [kind for kind, _ in events]


def test_a_search_in_which_nothing_moved_fails_with_the_reason(files: Files, tmp_path: Path) -> None:
    controls = {"random_signs": True}
    request = lively(method=controls, space={"candidates": ["attention", "ffn"]}, trials={"seed": 2})
    with pytest.raises(SearchFailed, match=r"seed 2: no slot's alpha moved beyond chance"):
        run_local(request, tmp_path / "flat", files, lambda kind, data: None, tiny.table(request.space))


def test_where_nothing_moved_but_a_pass_compared_blocks_that_is_told(files: Files, tmp_path: Path) -> None:
    method = {"random_signs": True, "prune_steps": 2, "prune_windows": 4}
    request = lively(method=method, space={"candidates": ["attention", "ffn"]}, trials={"seed": 2})
    events: Events = []
    run_local(
        request, tmp_path / "flat", files, lambda kind, data: events.append((kind, data)), tiny.table(request.space)
    )
    told = [data["message"] for kind, data in events if kind == "warning"]
    assert [each for each in told if "alpha moved" in each] == [
        "seed 2: no slot's alpha moved beyond chance; the parsimony pass began at a path that chance drew, and its "
        "comparisons alone decide"
    ]


def test_a_search_too_short_to_update_alpha_says_so(files: Files, tmp_path: Path) -> None:
    request = lively(method={"n_steps": 2, "warmup_share": 0.85})
    with pytest.raises(SearchFailed, match=r"alpha was never updated; give the search more steps"):
        run_local(request, tmp_path / "brief", files, lambda kind, data: None, tiny.table(request.space))


def test_a_search_whose_time_is_up_before_alpha_was_updated_names_max_minutes(files: Files, tmp_path: Path) -> None:
    request = lively(method={"max_minutes": 1e-9})
    said = r"alpha was never updated: the search ended after \d+ of \d+ weight updates: max_minutes is 1e-09; raise it$"
    with pytest.raises(SearchFailed, match=said):
        run_local(request, tmp_path / "late", files, lambda kind, data: None, tiny.table(request.space))


def test_a_failing_trial_fails_the_search_with_its_name(files: Files, tmp_path: Path) -> None:
    folder = tmp_path / "tampered"
    another = text_file(tiny.text(seed=1), tmp_path)
    other = encode(another.path, another.card, Tokenizer(), tmp_path / "encoded")

    def tamper(kind: str, data: dict[str, Any]) -> None:
        if kind == "trial" and data["state"] == "running":
            shutil.rmtree(folder / "data")
            shutil.copytree(other.folder, folder / "data")

    request = lively()
    with pytest.raises(SearchFailed, match=r"trial search-0-0 failed: the data of dataset 'letters' have changed"):
        run_local(request, folder, files, tamper, tiny.table(request.space))
