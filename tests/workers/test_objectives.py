"""Masked language models and decoders with memory, each from its request to a model that runs alone."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from nas.blocks import block_classes
from nas.config.request import SearchRequest
from nas.data.corpora import text_file
from nas.export.program import fill, read_network
from nas.ingest.card import Dataset
from tests import tiny
from workers.inline import run_local

Files = dict[str, Dataset]
MASK = 256  # behind the bytes
LIVELY = {
    "n_steps": 150, "warmup_share": 0.3, "alpha_share": 0.5, "alpha_lr": 0.05, "alpha_estimator": "soft", "lr": 2e-2,
    "batch_size": 16, "report_every": 25, "checkpoint_every": 25,
}  # fmt: skip


def lively(kind: dict[str, Any], **method: Any) -> SearchRequest:
    """A request whose alpha moves further than chance does, on its text."""
    task = {**kind["task"], "dataset": "round" if kind["task"].get("objective") else "letters"}
    return tiny.request(**{**kind, "task": task, "method": {**LIVELY, **method}})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("data")
    return {"letters": text_file(tiny.text(), folder), "round": text_file(tiny.ROUND, folder)}


def exported(folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    """Some files of an export: the README's text, and what the JSON files hold."""
    assert result["export"]["logits_max_abs_difference"] <= 1e-5
    with zipfile.ZipFile(folder / result["export"]["file"]) as archive:
        texts = {name: archive.read(name).decode() for name in ("README.md", "config.json", "tokenizer.json")}
    return {name: text if name == "README.md" else json.loads(text) for name, text in texts.items()}


def test_a_search_of_an_encoder_ends_in_a_model_that_fills_in_hidden_bytes(files: Files, tmp_path: Path) -> None:
    request = lively({**tiny.MASKED, "retrain": {**tiny.MASKED["retrain"], "n_steps": 100}})
    folder = tmp_path / "masked"
    result = run_local(request, folder, files, lambda kind, data: None)  # with a table measured here
    assert {each["role"] for each in result["architectures"]} == {"argmax", "budget"}
    assert "S" in result["derived"]["string"]  # alone it looks at other tokens
    assert result["export"]["sample"].startswith("a ")
    files_ = exported(folder, result)
    assert "| test bits per masked byte, mean of the seeds |" in files_["README.md"]
    assert "bits per byte" not in files_["README.md"]
    assert (files_["config.json"]["vocab_size"], files_["config.json"]["shape"]["causal"]) == (257, False)
    assert files_["tokenizer.json"]["mask_id"] == MASK
    network = read_network(folder / "export", block_classes(["sgu", "ffn"]))
    prompt = torch.tensor(list(b"cdab_dabcd_bcdab"))
    prompt[prompt == ord("_")] = MASK
    filled = fill(network, prompt, MASK, temperature=0, generator=torch.Generator())
    assert bytes(filled.tolist()) == b"cdabcdabcdabcdab"


def test_an_interrupted_search_with_memory_ends_in_the_model_of_an_undisturbed_one(
    files: Files, tmp_path: Path
) -> None:
    request = lively(tiny.RECURRENT, n_steps=160, report_every=10, checkpoint_every=10)
    table = tiny.table(request.space, request.task.serve[0])
    told: list[str] = []

    def interrupt(kind: str, data: dict[str, Any]) -> None:
        told.append(kind)
        if kind == "reports" and told.count("reports") == 7:
            raise KeyboardInterrupt

    undisturbed = run_local(request, tmp_path / "undisturbed", files, lambda kind, data: None, table)
    with pytest.raises(KeyboardInterrupt):
        run_local(request, tmp_path / "stopped", files, interrupt, table)
    result = run_local(request, tmp_path / "stopped", files, lambda kind, data: None, table)
    assert result["probabilities"] == undisturbed["probabilities"]
    assert result["quality"] == undisturbed["quality"]
    assert result["quality"]["unit"] == "bits per byte"
    weights = [(tmp_path / name / "export" / "model.safetensors").read_bytes() for name in ("undisturbed", "stopped")]
    assert weights[0] == weights[1]
    files_ = exported(tmp_path / "stopped", result)
    assert files_["config.json"]["norm_position"] == "post"
    assert files_["config.json"]["shape"]["memory_length"] == 24
    assert "| test bits per byte, mean of the seeds |" in files_["README.md"]
    assert ", 1 seed |" in files_["README.md"]
    assert result["quality"]["n_windows"] == 8
    assert result["latency"]["ratio"] > 0
