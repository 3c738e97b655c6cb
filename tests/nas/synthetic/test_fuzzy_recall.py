"""Fuzzy recall, read again by a reader that has the tokens alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Generator

from nas.config.task import Task
from nas.data.objectives import Batch
from nas.data.synthetic.fuzzy_recall import FuzzyRecall
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import FuzzyRecallOptions

Motif = tuple[int, ...]


def pairs(tokens: list[int], options: FuzzyRecallOptions) -> list[tuple[int, Motif, Motif]]:
    """Where each pair begins, its key and its value; the last may be cut."""
    found: list[tuple[int, list[int], list[int]]] = []
    for place, token in enumerate(tokens):
        key_token = token < options.n_key_tokens
        if key_token and (not found or found[-1][2]):
            found.append((place, [], []))
        found[-1][1 if key_token else 2].append(token)
    return [(place, tuple(key), tuple(value)) for place, key, value in found]


def drawn(options: FuzzyRecallOptions, length: int, n: int = 300, seed: int = 0) -> Batch:
    return FuzzyRecall(options, length).draw(n, Generator().manual_seed(seed))


CASES = {
    "default": (FuzzyRecallOptions(), 128),
    "as short as may be": (FuzzyRecallOptions(n_pairs=2, longest_key=2), 15),
    "one token each": (FuzzyRecallOptions(longest_key=1, longest_value=1), 40),
    "few tokens, so that keys collide": (FuzzyRecallOptions(2, 2, 12, 2, 2), 65),
    "long values": (FuzzyRecallOptions(longest_value=8, n_pairs=3), 50),
}


@pytest.mark.parametrize(("options", "length"), CASES.values(), ids=CASES)
def test_answers_are_what_the_tokens_tell(options: FuzzyRecallOptions, length: int) -> None:
    batch = drawn(options, length)
    assert batch.tokens.shape == batch.targets.shape == (300, length)
    assert 0 <= batch.tokens.min() <= batch.tokens.max() < options.vocab_size
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        values: dict[Motif, Motif] = {}
        expected = [IGNORE] * length
        *whole, (start, cut_key, cut_value) = pairs(tokens, options)
        for place, key, value in whole:
            assert len(set(key)) == len(key) <= options.longest_key
            assert len(set(value)) == len(value) <= options.longest_value
            if key in values:
                for number, token in enumerate(value):
                    expected[place + len(key) - 1 + number] = token - options.n_key_tokens
            assert values.setdefault(key, value) == value
        # Of the last pair only what stands there is known; whether one more token was to come, only the answer tells.
        if cut_key in values:
            value = values[cut_key]
            assert value[: len(cut_value)] == cut_value
            for number in range(len(cut_value)):
                expected[start + len(cut_key) - 1 + number] = value[number] - options.n_key_tokens
            if len(cut_value) < len(value) and targets[-1] != IGNORE:
                expected[-1] = value[len(cut_value)] - options.n_key_tokens
            elif cut_value and len(cut_value) < len(value):
                raise AssertionError("a value whose key has come before goes on unscored")
        assert targets == expected
        assert len(values) <= options.n_pairs
        assert any(target != IGNORE for target in targets)


def test_a_seed_tells_the_batch() -> None:
    first, again, other = (drawn(FuzzyRecallOptions(), 128, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.tokens, other.tokens)


def test_sizes_and_tokens_are_uniform() -> None:
    options = FuzzyRecallOptions()
    firsts = [pairs(tokens, options)[0] for tokens in drawn(options, 128, 3000).tokens.tolist()]
    for part, tokens in ((1, range(7)), (2, range(7, 15))):
        motifs = [each[part] for each in firsts]
        for size in (1, 2, 3):  # five standard errors of 3,000
            assert abs(sum(len(motif) == size for motif in motifs) / 3000 - 1 / 3) < 0.044
        for token in tokens:
            assert abs(sum(motif[0] == token for motif in motifs) / 3000 - 1 / len(tokens)) < 0.033


@pytest.mark.parametrize(
    ("options", "length", "message"),
    [
        ({"n_pairs": 0}, 128, "n_pairs is 0; it must be between 1 and 256"),
        ({"longest_key": 8}, 128, "longest_key is 8 with n_key_tokens 7; all tokens of one differ"),
        ({"longest_value": 9}, 128, "longest_value is 9 with n_value_tokens 8; all tokens of one differ"),
        ({}, 53, "train_length is 53; it must be at least 54: then 9 pairs fit in, one more than n_pairs"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], length: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Task(objective="token_classification", dataset="fuzzy-recall", dataset_options=options, train_length=length)
