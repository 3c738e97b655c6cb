"""Compression: its rule, and that a request with it reads all answers off the last token."""

from __future__ import annotations

import pytest
import torch
from torch import Generator

from nas.config.request import read_request
from nas.config.task import Task
from nas.data.synthetic.compression import Compression
from nas.errors import InvalidInput
from nas.heads import IGNORE
from nas.retrain import build
from nas.specs.tasks.mechanistic import CompressionOptions


@pytest.mark.parametrize(("n_symbols", "length"), [(15, 32), (2, 2)])
def test_answers_are_the_symbols_themselves(n_symbols: int, length: int) -> None:
    batch = Compression(CompressionOptions(n_symbols), length).draw(300, Generator().manual_seed(0))
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        assert len(tokens) == length
        assert tokens[-1] == n_symbols
        assert all(0 <= token < n_symbols for token in tokens[:-1])
        assert targets == [*tokens[:-1], IGNORE]


def test_symbols_are_uniform_and_a_seed_tells_them() -> None:
    source = Compression(CompressionOptions(), 32)
    first, again, other = (source.draw(2000, Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.tokens, again.tokens)
    assert not torch.equal(first.tokens, other.tokens)
    shares = torch.bincount(first.tokens[:, :-1].flatten(), minlength=15) / 62_000
    assert (shares - 1 / 15).abs().max() < 0.005  # five standard errors


def test_a_single_symbol_is_refused() -> None:
    with pytest.raises(ValueError, match="n_symbols is 1; it must be between 2 and 4096"):
        Task(objective="token_classification", dataset="compression", dataset_options={"n_symbols": 1})


def body(pooling: str) -> dict[str, object]:
    return {
        "space": {
            "n_slots": 1, "d_model": 8, "n_heads": 2, "max_len": 8, "candidates": ["attention", "ffn"],
            "backbone": {"n_classes": 15, "pooling": pooling},
        },
        "task": {
            "objective": "token_classification", "dataset": "compression", "train_length": 8,
            "serve": [{"query_length": 8}],
        },
    }  # fmt: skip


@pytest.mark.parametrize("pooling", ["none", "mean"])
def test_answers_of_each_token_by_itself_are_refused(pooling: str) -> None:
    message = f"^space.backbone.pooling is '{pooling}' but task.dataset is 'compression'; it must be 'unroll'$"
    with pytest.raises(InvalidInput, match=message):
        read_request(body(pooling))


def test_unrolling_is_for_such_tasks_alone() -> None:
    asked = body("unroll")
    asked["task"] = {**asked["task"], "dataset": "memorisation"}  # type: ignore[dict-item]
    message = "^space.backbone.pooling is 'unroll' but task.objective is 'token_classification'; it must be 'none'$"
    with pytest.raises(InvalidInput, match=message):
        read_request(asked)


def test_a_network_answers_from_the_last_token_alone() -> None:
    request = read_request(body("unroll"))
    network = build(request.network_config(["ffn"], request.task.vocab_size)).eval()
    batch = Compression(CompressionOptions(), 8).draw(5, Generator().manual_seed(0))
    with torch.no_grad():
        logits = network(batch.tokens)
    assert logits.shape == (5, 8, 15)
    # No block mixes tokens here, and the last one is always the mark: all examples get the same answers.
    torch.testing.assert_close(logits, logits[:1].expand_as(logits))
