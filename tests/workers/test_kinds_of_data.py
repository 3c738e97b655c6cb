"""Every kind of data from its file to a model that runs alone: labels, words, learnt vocabularies, token ids, tasks."""

from __future__ import annotations

import json
import math
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as Library

from nas.blocks import block_classes
from nas.config.request import SearchRequest
from nas.export.program import read_network
from nas.ingest.card import Dataset
from nas.ingest.options import Options
from nas.ingest.read import ingest
from tests import tiny
from workers.inline import run_local

WORDS = {"good": ("fine", "great", "lovely", "bright"), "bad": ("poor", "awful", "dull", "broken")}
LIVELY = {
    "n_steps": 150, "warmup_share": 0.3, "alpha_share": 0.5, "alpha_lr": 0.05, "alpha_estimator": "soft", "lr": 2e-2,
    "batch_size": 16, "report_every": 50, "checkpoint_every": 75, "prune_steps": 4, "prune_windows": 16,
}  # fmt: skip


def registered(path: Path, **options: Any) -> Dataset:
    """A file of any format as a dataset beside it."""
    guessed = Options.guess(path.name)
    card = ingest(path, path.parent / "datasets", Options(**{**vars(guessed), **options}), max_bytes=2**30)
    return Dataset(path.parent / "datasets" / card.file_name, card)


def searched(folder: Path, files: dict[str, Dataset], **parts: Any) -> tuple[SearchRequest, dict[str, Any]]:
    """A search of two slots with a made-up table, and its result."""
    base: dict[str, Any] = {"method": LIVELY, "retrain": {"n_steps": 60, "n_seeds": 1, "test_windows": 30}}
    request = tiny.request(**{**base, **parts})
    table = tiny.table(request.space, request.task.serve[0])
    return request, run_local(request, folder, files, lambda kind, data: None, table)


def exported(folder: Path, result: dict[str, Any], *names: str) -> list[str]:
    assert result["export"]["logits_max_abs_difference"] <= 1e-5
    with zipfile.ZipFile(folder / result["export"]["file"]) as archive:
        return [archive.read(name).decode() for name in names]


def reviews(path: Path, n: int = 400) -> None:
    rng = random.Random(0)
    with path.open("w") as file:
        for _ in range(n):
            label = rng.choice(["bad", "good"])
            words = [rng.choice(WORDS[label]) for _ in range(3)] + [rng.choice(["the", "a", "so"]) for _ in range(2)]
            rng.shuffle(words)
            file.write(json.dumps({"text": " ".join(words), "label": label}) + "\n")


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_labelled_documents_end_in_a_classifier(tmp_path: Path, pooling: str) -> None:
    reviews(tmp_path / "reviews.jsonl")
    request, result = searched(
        tmp_path / "search",
        {"reviews": registered(tmp_path / "reviews.jsonl")},
        space={
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "causal": pooling == "mean",
            "backbone": {"pooling": pooling}, "candidates": ["attention", "ffn", "identity"],
        },
        task={
            "objective": "sequence_classification", "dataset": "reviews", "tokenizer": "words", "train_length": 16,
            "serve": [{"batch": 2, "query_length": 16}],
        },
    )  # fmt: skip
    assert request.space.backbone.n_classes == 0, "the data tell"
    assert result["quality"]["unit"] == "bits per label"
    accuracy = result["metrics"][0]
    assert accuracy["name"] == "accuracy"
    assert accuracy["derived"] > 0.9 > accuracy["majority"] >= 0.5
    assert accuracy["derived"] == pytest.approx(sum(accuracy["derived_seeds"]) / len(accuracy["derived_seeds"]))
    assert result["positions"]["derived"] == pytest.approx([result["quality"]["derived_bits_per_byte"] * 0.6931472])
    config, readme = exported(tmp_path / "search", result, "config.json", "README.md")
    assert json.loads(config)["backbone"]["n_classes"] == 2
    assert "accuracy" in readme
    assert "good" in result["export"]["sample"] or "bad" in result["export"]["sample"]


def test_labelled_words_end_in_a_tagger(tmp_path: Path) -> None:
    rng = random.Random(0)
    with (tmp_path / "tags.jsonl").open("w") as file:
        for _ in range(300):
            kinds = [rng.choice(["bad", "good"]) for _ in range(6)]
            file.write(json.dumps({"words": [rng.choice(WORDS[kind]) for kind in kinds], "labels": kinds}) + "\n")
    _, result = searched(
        tmp_path / "search",
        {"tags": registered(tmp_path / "tags.jsonl", words="words", labels="labels")},
        space={
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "causal": False, "positions": "none",
            "backbone": {"pooling": "none"}, "candidates": ["attention", "ffn", "identity"],
        },
        task={
            "objective": "token_classification", "dataset": "tags", "tokenizer": "words", "train_length": 16,
            "serve": [{"batch": 2, "query_length": 16}],
        },
    )  # fmt: skip
    assert [each["name"] for each in result["metrics"]] == ["token accuracy", "macro F1"]
    assert result["metrics"][0]["derived"] > 0.9


def by_hand(folder: Path, metric: str) -> float:
    """The metric of the exported model, counted anew: from the text's last twentieth, its vocabulary and the logits."""
    text = (folder / "lines.txt").read_text()
    test = text[len(text) * 95 // 100 :]  # all of it is ASCII
    library = Library.from_file(str(folder / "search" / "data" / "tokenizer.json"))
    said = {"word perplexity": test.replace("\n", " <eos> ").split(), "bits per character": list(test)}.get(metric)
    entries = library.encode(test).tokens if said is None else said
    ids = [library.token_to_id(entry) for entry in entries]
    if None in ids:  # a word that is cut at the part's beginning
        ids = [library.token_to_id("<unk>") if each is None else each for each in ids]
    network = read_network(folder / "search" / "export", block_classes(["attention", "ffn", "identity", "sgu", "mgk"]))
    n_windows = min(30, (len(ids) - 1) // 16)
    surprise = 0.0
    for number in range(n_windows):
        start = number * ((len(ids) - 1) // n_windows)
        with torch.no_grad():
            logits = network(torch.tensor([ids[start : start + 16]]))[0].double()
        for place in range(16):
            total = sum(math.exp(each) for each in logits[place].tolist())
            surprise -= math.log(math.exp(float(logits[place][ids[start + place + 1]])) / total)
    nats = surprise / (16 * n_windows)
    if metric == "word perplexity":
        return math.exp(nats)
    n_units = len(test.encode()) if metric == "bits per byte" else len(test)
    return nats * len(ids) / n_units / math.log(2)


@pytest.mark.parametrize(
    ("tokenizer", "unit", "metric"),
    [
        ("words", "bits per word", "word perplexity"),
        ("characters", "bits per character", "bits per character"),
        ({"type": "bpe", "vocab_size": 300}, "bits per byte", "bits per byte"),
    ],
    ids=["words", "characters", "bpe"],
)
def test_text_is_learnt_in_any_vocabulary(tmp_path: Path, tokenizer: Any, unit: str, metric: str) -> None:
    rng = random.Random(0)
    lines = ["the " + " ".join(rng.choice(WORDS["good"]) for _ in range(6)) for _ in range(600)]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    _, result = searched(
        tmp_path / "search",
        {"lines": registered(tmp_path / "lines.txt")},
        task={
            "dataset": "lines", "tokenizer": tokenizer, "train_length": 16, "serve": [{"batch": 2, "query_length": 16}],
        },
    )  # fmt: skip
    assert result["quality"]["unit"] == unit
    assert result["metrics"][0]["name"] == metric
    assert len(result["positions"]["derived"]) == 16
    assert result["metrics"][0]["derived"] == pytest.approx(by_hand(tmp_path, metric), rel=1e-4)
    (tokens,) = exported(tmp_path / "search", result, "tokenizer.json")
    assert "great" in tokens or metric != "word perplexity"
    assert set("".join(WORDS["good"])) & set(result["export"]["sample"])


def test_token_ids_that_were_given_are_searched_on_and_exported(tmp_path: Path) -> None:
    ids = [letter - ord("a") for letter in tiny.text()]
    (tmp_path / "ids.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    given = registered(tmp_path / "ids.bin", format="tokens", dtype="uint16", vocab_size=26)
    _, result = searched(
        tmp_path / "search",
        {"ids": given},
        task={
            "dataset": "ids", "tokenizer": "given", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}],
        },
    )  # fmt: skip
    assert result["quality"]["unit"] == "bits per token"
    assert result["metrics"][0]["name"] == "token perplexity"
    assert result["metrics"][0]["derived"] < 26, "better than a guess"


def test_a_synthetic_task_is_searched_on_without_any_file(tmp_path: Path) -> None:
    request, result = searched(
        tmp_path / "search",
        {},
        space={
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "positions": "none",
            "backbone": {"pooling": "none"},
        },
        task={
            "objective": "token_classification", "dataset": "token-wise", "dataset_options": {"n_symbols": 8},
            "train_length": 16, "serve": [{"batch": 2, "query_length": 16}],
        },
    )  # fmt: skip
    assert not (tmp_path / "search" / "data").exists()
    assert result["search"]["dataset_fingerprint"] != request.task.dataset_fingerprint
    assert result["metrics"][0]["derived"] > 0.9, "the embedding alone can tell"
    assert result["metrics"][0]["chance"] == 1 / 8
