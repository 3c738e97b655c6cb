"""Memorisation: one map for all examples, parts and processes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Generator

from nas.config.task import Task
from nas.data.synthetic.generated import synthetic_parts
from nas.data.synthetic.memorisation import Memorisation
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import MemorisationOptions


@pytest.mark.parametrize("length", [32, 7, 2])
def test_the_answer_at_the_mark_is_always_the_key_s(length: int) -> None:
    options = MemorisationOptions(n_keys=20)
    source, values = Memorisation(options, length), dict[int, int]()
    for seed in range(4):
        batch = source.draw(100, Generator().manual_seed(seed))
        for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            assert len(tokens) == len(targets) == length
            for key, mark, unscored, value in zip(tokens[::2], tokens[1::2], targets[::2], targets[1::2], strict=False):
                assert 0 <= key < 20 == mark
                assert unscored == IGNORE
                assert values.setdefault(key, value) == value
            assert length % 2 == 0 or targets[-1] == IGNORE
    assert sorted(values) == sorted(values.values()) == list(range(20))  # each value has one key


def test_all_parts_have_the_same_map_and_another_seed_has_another() -> None:
    task = Task(objective="token_classification", dataset="memorisation", train_length=256)
    parts = synthetic_parts(task)
    maps = []
    for part in (parts.weights, parts.alpha, parts.validation, parts.test):
        batch = part.held_out(task, 50)
        maps.append(dict(torch.stack([batch.tokens[:, ::2], batch.targets[:, 1::2]], dim=2).flatten(0, 1).tolist()))
    assert maps[0] == maps[1] == maps[2] == maps[3]
    first, other = (Memorisation(MemorisationOptions(map_seed=seed), 2).values for seed in (0, 1))
    assert dict(enumerate(first.tolist())) == maps[0]
    assert not torch.equal(first, other)


def test_keys_are_uniform_and_a_seed_tells_them() -> None:
    source = Memorisation(MemorisationOptions(n_keys=8), 32)
    first, again, other = (source.draw(1000, Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.tokens, again.tokens)
    assert not torch.equal(first.tokens, other.tokens)
    shares = torch.bincount(first.tokens[:, ::2].flatten(), minlength=8) / 16_000
    assert (shares - 1 / 8).abs().max() < 0.0135  # five standard errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_keys": 1}, "n_keys is 1; it must be between 2 and 65536"),
        ({"map_seed": -1}, "map_seed is -1; it must be between 0 and 2147483647"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Task(objective="token_classification", dataset="memorisation", dataset_options=options)
