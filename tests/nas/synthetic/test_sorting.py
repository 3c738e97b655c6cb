"""Sorting, read again by a reader that has the tokens alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Generator

from nas.config.task import Task
from nas.data.synthetic.sorting import Sorting
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import SortingOptions


@pytest.mark.parametrize(("n_symbols", "length"), [(32, 128), (2, 10), (100, 2)])
def test_answers_are_the_symbols_in_rising_order(n_symbols: int, length: int) -> None:
    batch = Sorting(SortingOptions(n_symbols), length).draw(300, Generator().manual_seed(0))
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        assert len(tokens) == length
        at = tokens.index(n_symbols)
        assert at == length // 2
        assert all(0 <= token < n_symbols for token in tokens[:at])
        assert targets == [IGNORE] * at + sorted(tokens[:at])
        assert tokens[at + 1 :] == targets[at:-1]  # each answer is the token that comes next


def test_symbols_are_uniform_and_a_seed_tells_them() -> None:
    source = Sorting(SortingOptions(4), 32)
    first, again, other = (source.draw(1000, Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.tokens, other.tokens)
    shares = torch.bincount(first.tokens[:, :16].flatten(), minlength=4) / 16_000
    assert (shares - 1 / 4).abs().max() < 0.018  # five standard errors


@pytest.mark.parametrize(
    ("options", "length", "message"),
    [
        ({"n_symbols": 5000}, 128, "n_symbols is 5000; it must be between 2 and 4096"),
        ({}, 65, "train_length is 65; it must be even: half of it is sorted"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], length: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Task(objective="token_classification", dataset="sorting", dataset_options=options, train_length=length)
