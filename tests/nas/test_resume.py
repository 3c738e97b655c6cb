"""Searches and retrainings on every kind of data go on to the same bits after a stop, with data opened anew."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from nas.architecture import Architecture
from nas.config import SearchRequest
from nas.data.encode import encode
from nas.data.encoded import open_encoded
from nas.data.parts import Parts
from nas.data.pin import pin_synthetic
from nas.data.synthetic.generated import synthetic_parts
from nas.retrain import Retraining
from nas.search import Search
from nas.steps import StepRecord
from tests import tiny
from tests.encoding import documents

SPACE = {"n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "candidates": ["attention", "sgu", "ffn"]}
SERVE = [{"batch": 2, "query_length": 16}]
METHOD = {
    "n_steps": 10, "batch_size": 4, "warmup_share": 0.2, "report_every": 2, "checkpoint_every": 2, "eval_windows": 4,
}  # fmt: skip
WORDS = ("fine", "great", "poor", "awful", "so", "the")


def labelled(kind: str) -> list[dict[str, Any]]:
    """Documents of 1 to 9 words: most are padded."""
    chance = random.Random(0)
    rows = []
    for number in range(120):
        words = [chance.choice(WORDS) for _ in range(number % 9)] + [f"n{number}"]
        labels = ["good" if word in WORDS[:2] else "bad" for word in words]
        one = {"text": " ".join(words), "label": max(labels)}
        rows.append({"words": words, "labels": labels} if kind == "words" else one)
    return rows


def data_of(kind: str, folder: Path) -> tuple[SearchRequest, Path | None]:
    """A request that knows its data, and where they are."""
    space, task = dict(SPACE), {"train_length": 16, "serve": SERVE, "dataset": "some"}
    if kind == "synthetic":
        task |= {"objective": "token_classification", "dataset": "in-context-recall"}
        space |= {"backbone": {"pooling": "none"}}
        return pin_synthetic(tiny.request(space=space, task=task, method=METHOD)), None
    if kind == "memory":
        space, task = tiny.RECURRENT["space"], {**tiny.RECURRENT["task"], "dataset": "some"}
    elif kind == "words":
        task |= {"objective": "token_classification"}
        space |= {"backbone": {"pooling": "none"}, "causal": False, "positions": "none"}
    else:
        task |= {"objective": "sequence_classification"}
        space |= {"backbone": {"pooling": "mean"}, "causal": False, "positions": "none"}
    fields = {"words": "words", "labels": "labels"} if kind == "words" else {}
    dataset = documents(folder, labelled(kind), **fields)
    request = tiny.request(space=space, task={**task, "tokenizer": "characters"}, method=METHOD)
    found = encode(dataset.path, dataset.card, request.task.tokenizer, folder / "cache")
    return request.with_data(found.fingerprint, found.sizes), found.folder


def opened(request: SearchRequest, folder: Path | None) -> Parts:
    return synthetic_parts(request.task) if folder is None else open_encoded(folder).parts(request.task)


def new(kind: str, request: SearchRequest, folder: Path | None) -> Search | Retraining:
    parts = opened(request, folder)
    if kind == "search":
        return Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0]))
    labels = request.space.labels
    return Retraining(request, Architecture((labels[0], labels[1]), request.space.candidates), parts=parts)


def comparable(record: StepRecord) -> StepRecord:
    return replace(record, tokens_per_s=None)


@pytest.mark.parametrize("work", ["search", "retraining"])
@pytest.mark.parametrize("kind", ["documents", "words", "synthetic", "memory"])
def test_what_is_stopped_at_every_report_has_the_bits_of_an_undisturbed_run(
    kind: str, work: str, tmp_path: Path
) -> None:
    request, folder = data_of(kind, tmp_path)
    undisturbed, current = new(work, request, folder), new(work, request, folder)
    expected = [comparable(record) for record in undisturbed.run()]
    found = [comparable(record) for record in islice(current.run(), 2)]  # at step 0 there is nothing to go on from
    while not found[-1].last:
        current.save(tmp_path / "state.safetensors")
        current = new(work, request, folder)
        current.load(tmp_path / "state.safetensors")
        found += [comparable(record) for record in islice(current.run(), 1)]
    assert found == expected
    assert all(torch.equal(parameter, undisturbed.weights[name]) for name, parameter in current.weights.items())
    if isinstance(current, Retraining) and isinstance(undisturbed, Retraining):
        assert current.result == undisturbed.result
