"""Selective copying, read again by a reader that has the tokens alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Generator

from nas.config.task import Task
from nas.data.objectives import Batch
from nas.data.synthetic.copying import SelectiveCopying
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import SelectiveCopyingOptions

CASES = {
    "default": (SelectiveCopyingOptions(), 256),
    "no blanks among them": (SelectiveCopyingOptions(n_symbols=3, n_copied=4), 9),
    "one": (SelectiveCopyingOptions(n_symbols=2, n_copied=1), 20),
}


def drawn(options: SelectiveCopyingOptions, length: int, n: int = 300, seed: int = 0) -> Batch:
    return SelectiveCopying(options, length).draw(n, Generator().manual_seed(seed))


@pytest.mark.parametrize(("options", "length"), CASES.values(), ids=CASES)
def test_answers_are_the_symbols_in_their_order(options: SelectiveCopyingOptions, length: int) -> None:
    batch = drawn(options, length)
    blank, mark = options.n_symbols, options.n_symbols + 1
    assert options.vocab_size == mark + 1
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        at = tokens.index(mark)
        symbols = [token for token in tokens[:at] if token != blank]
        assert len(symbols) == options.n_copied
        assert all(0 <= symbol < options.n_symbols for symbol in symbols)
        assert tokens[at + 1 :] == [blank] * options.n_copied
        assert targets == [IGNORE] * (at + 1) + symbols
        assert len(tokens) == length


def test_a_seed_tells_the_batch() -> None:
    first, again, other = (drawn(SelectiveCopyingOptions(), 256, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.tokens, other.tokens)


def test_symbols_stand_anywhere_alike_and_are_uniform() -> None:
    options = SelectiveCopyingOptions(n_symbols=4, n_copied=3)
    batch = drawn(options, 20, 4000)
    places = (batch.tokens[:, :16] < 4).float().mean(dim=0)
    assert (places - 3 / 16).abs().max() < 0.031  # five standard errors of 4,000
    shares = torch.bincount(batch.targets[:, -3:].flatten(), minlength=4) / 12_000
    assert (shares - 1 / 4).abs().max() < 0.02


@pytest.mark.parametrize(
    ("options", "length", "message"),
    [
        ({"n_symbols": 1}, 256, "n_symbols is 1; it must be between 2 and 4096"),
        ({}, 32, "train_length is 32; it must be at least 33: n_copied symbols, a mark, and an answer to each symbol"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], length: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Task(
            objective="token_classification", dataset="selective-copying", dataset_options=options, train_length=length
        )
