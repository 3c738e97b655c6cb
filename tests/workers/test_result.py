"""What a search with serve modes, lengths and a present model tells in its result and in the export's README."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from nas.advice import advise
from nas.config.request import SearchRequest
from nas.data.corpora import text_file
from nas.ingest.card import Dataset
from tests import tiny
from workers.inline import run_local

SERVE = [{"batch": 2, "query_length": 16}, {"mode": "decode", "batch": 1, "query_length": 8}]


def request() -> SearchRequest:
    return tiny.request(
        space={
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16,
            "layout": [{"present": "attention", "forbidden": ["identity"]}, {"present": "sgu"}],
        },
        task={"dataset": "letters", "train_length": 16, "serve_lengths": [8, 16, 32], "serve": SERVE},
        method={"n_steps": 80, "lr": 8e-3, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.15},
        retrain={"baselines": ["interleaved", "present"]},
    )  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Dataset]:
    return {"letters": text_file(tiny.text(), tmp_path_factory.mktemp("data"))}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, files: dict[str, Dataset]) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("searches") / "one"
    return folder, run_local(request(), folder, files, lambda kind, data: None, tiny.table(request().space))


def test_latency_is_told_for_every_serve_mode_and_the_first_alone(finished: tuple[Path, dict[str, Any]]) -> None:
    _, result = finished
    modes = result["latencies"]
    assert [(each["serve"]["mode"], each["serve"]["query_length"]) for each in modes] == [
        ("prefill", 16),
        ("decode", 8),
    ]
    assert result["latency"] == {name: value for name, value in modes[0].items() if name != "serve"}
    assert all(each["low"] <= each["ratio"] <= each["high"] for each in modes)


def test_the_present_model_is_what_the_derived_one_is_held_against(finished: tuple[Path, dict[str, Any]]) -> None:
    _, result = finished
    assert [each["role"] for each in result["architectures"]] == ["argmax", "budget", "parent", "present"]
    assert (result["parent"]["role"], result["parent"]["slots"]) == ("present", ["attention", "sgu"])


def test_what_to_take_is_a_layout_that_was_trained_and_follows_from_the_comparisons(
    finished: tuple[Path, dict[str, Any]],
) -> None:
    folder, result = finished
    advice = result["advice"]
    assert advice["take"] in {None, *(each["name"] for each in result["retrained"])}
    others = [each for each in result["comparisons"] if not each["second"].startswith("derived ")]
    assert advice == asdict(advise(others, "present"))
    assert advice["sentence"].removesuffix(".") in (folder / "report.md").read_text().replace("\\", "")


def test_every_length_is_told_with_what_keeps_a_network_out(finished: tuple[Path, dict[str, Any]]) -> None:
    _, result = finished
    assert [each["length"] for each in result["lengths"]] == [8, 16, 32]
    short, _, long = result["lengths"]
    assert short["difference"]["low"] <= short["difference"]["high"]
    assert len(short["positions"]["parent"]) == 8
    assert long["parent"]["why"].startswith("candidate 'sgu' cannot run there")
    assert long["difference"] is None


def test_the_readme_of_the_export_tells_both_on_a_line_each(finished: tuple[Path, dict[str, Any]]) -> None:
    folder, result = finished
    with zipfile.ZipFile(folder / result["export"]["file"]) as opened:
        lines = opened.read("README.md").decode().splitlines()
    (by_length,) = [line for line in lines if line.startswith("| test bits per byte by tokens of input |")]
    assert f" 8: {result['lengths'][0]['derived']['bits']:.3f}; 16: " in by_length
    (latency,) = [line for line in lines if line.startswith("| latency against the present model |")]
    assert "prefill of 2 x 16 tokens: " in latency
    assert "; decode of 1 x 8 tokens: " in latency
    assert any(line.startswith("| against the present model |") for line in lines)


def test_timings_are_remembered_so_that_a_restart_exports_the_same_bytes(
    finished: tuple[Path, dict[str, Any]], files: dict[str, Dataset]
) -> None:
    folder, result = finished
    (folder / "result.json").unlink()
    again = run_local(request(), folder, files, lambda kind, data: None, tiny.table(request().space))
    assert again["latencies"] == result["latencies"]
    assert again["export"]["sha256"] == result["export"]["sha256"]
    assert again["lengths"] == json.loads(json.dumps(result["lengths"]))
