"""ListOps, read again by a recursive reader that has the tokens alone, and drawn again by the rules as told."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Generator

from nas.config.task import Task
from nas.data.synthetic.listops import ListOps
from nas.errors import DataError
from nas.specs.tasks.listops import ListOpsOptions, ShortListOpsOptions

MIN, MAX, MED, SM, CLOSE = range(11, 16)


def read(tokens: list[int], at: int = 0, depth: int = 1) -> tuple[int, int, int, int]:
    """Value, place behind, depth of the deepest node and most arguments of the expression that begins at a place."""
    head = tokens[at]
    if 1 <= head <= 10:
        return head - 1, at + 1, depth, 0
    assert MIN <= head <= SM
    values, at, deepest, most = [], at + 1, depth, 0
    while tokens[at] != CLOSE:
        value, at, below, widest = read(tokens, at, depth + 1)
        values.append(value)
        deepest, most = max(deepest, below), max(most, widest)
    assert len(values) >= 2
    ordered, middle = sorted(values), len(values) // 2
    if head == MIN:
        result = ordered[0]
    elif head == MAX:
        result = ordered[-1]
    elif head == SM:
        result = sum(values) % 10
    else:
        result = ordered[middle] if len(values) % 2 else int((ordered[middle - 1] + ordered[middle]) / 2)
    return result, at + 1, deepest, max(most, len(values))


# [MAX 2 9 [MIN 4 7 ] 0 ] and others, by hand; ids: digit + 1, operators by name.
@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        ([8], 7),
        ([MAX, 3, 10, MIN, 5, 8, CLOSE, 1, CLOSE], 9),
        ([MIN, 5, 8, 4, CLOSE], 3),
        ([SM, 10, 8, 3, CLOSE], 8),
        ([MED, 10, 2, 4, CLOSE], 3),
        ([MED, 2, 5, 10, 3, CLOSE], 3),
    ],
    ids=["digit", "max over min", "min", "sum modulo 10", "median of three", "median of four, truncated"],
)
def test_the_reader_reads_what_was_worked_out_by_hand(tokens: list[int], value: int) -> None:
    assert read(tokens)[:2] == (value, len(tokens))


CASES = {
    "short": (ShortListOpsOptions(), 64, 2000),
    "full": (ListOpsOptions(), 2000, 120),
    "flat": (ShortListOpsOptions(max_depth=2, max_args=3, longer_than=1, shorter_than=6), 5, 300),
    "two lengths": (ShortListOpsOptions(max_depth=3, max_args=2, longer_than=4, shorter_than=8), 9, 300),
}


@pytest.mark.parametrize(("options", "length", "n"), CASES.values(), ids=CASES)
def test_drawn_expressions_keep_the_rules_and_are_read_rightly(options: ListOpsOptions, length: int, n: int) -> None:
    batch = ListOps(options, length).draw(n, Generator().manual_seed(0))
    assert batch.tokens.shape == (n, length)
    assert batch.targets.shape == (n, 1)
    assert batch.key_padding is not None
    targets, padding = batch.targets[:, 0].tolist(), batch.key_padding.tolist()
    for row, target, real in zip(batch.tokens.tolist(), targets, padding, strict=True):
        size = sum(real)
        assert real == [True] * size + [False] * (length - size)
        assert row[size:] == [0] * (length - size)
        assert options.longer_than < size < options.shorter_than
        value, end, deepest, most = read(row[:size])
        assert (value, end) == (target, size)
        assert deepest <= options.max_depth
        assert most <= options.max_args


def grown(rng: random.Random, options: ListOpsOptions, depth: int = 1) -> list[int]:
    """A node as the rules tell it."""
    if depth == options.max_depth or rng.random() > 0.25:
        return [rng.randint(1, 10)]
    children = [grown(rng, options, depth + 1) for _ in range(rng.randint(2, options.max_args))]
    return [rng.randint(MIN, SM), *(token for child in children for token in child), CLOSE]


def test_expressions_are_as_likely_as_the_rules_make_them() -> None:
    options, rng, n = ShortListOpsOptions(), random.Random(0), 6000
    wanted: list[list[int]] = []
    while len(wanted) < n:
        tokens = grown(rng, options)
        if options.longer_than < len(tokens) < options.shorter_than:
            wanted.append(tokens)
    batch = ListOps(options, 59).draw(4 * n, Generator().manual_seed(0))
    found = [[token for token in row if token] for row in batch.tokens.tolist()]
    for what in (lambda tokens: read(tokens)[0], lambda tokens: len(tokens) // 8, lambda tokens: read(tokens)[2]):
        by_rule, drawn = Counter(map(what, wanted)), Counter(map(what, found))
        for outcome in by_rule.keys() | drawn.keys():
            share = drawn[outcome] / (4 * n)
            # Five standard errors of the difference.
            assert abs(by_rule[outcome] / n - share) < 5 * (share * (1 - share) * (1 / n + 1 / (4 * n))) ** 0.5 + 1e-3
    by_rule, drawn = Counter(chain.from_iterable(wanted)), Counter(chain.from_iterable(found))
    for token in range(1, 16):
        assert by_rule[token] / by_rule.total() == pytest.approx(drawn[token] / drawn.total(), abs=0.005)


def test_a_seed_tells_the_batch() -> None:
    source = ListOps(ShortListOpsOptions(), 59)
    first, again, other = (source.draw(1500, Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.tokens, other.tokens)


@pytest.mark.parametrize(
    ("task", "options", "length", "message"),
    [
        ("listops-short", {"max_args": 1}, 59, "max_args is 1; it must be between 2 and 20"),
        (
            "listops-short",
            {"longer_than": 59},
            59,
            "shorter_than is 60 and longer_than 59; a length must lie between",
        ),
        (
            "listops",
            {"max_depth": 3},
            2000,
            "longer_than is 500; with max_depth 3 and max_args 10 no expression has more than 122 tokens",
        ),
        (
            "listops",
            {},
            1998,
            "train_length is 1998; it must be at least 1999, the longest that shorter_than keeps",
        ),
    ],
)
def test_impossible_options_are_refused(task: str, options: dict[str, Any], length: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Task(objective="sequence_classification", dataset=task, dataset_options=options, train_length=length)


def test_lengths_that_hardly_occur_are_refused_when_they_are_drawn() -> None:
    options = ShortListOpsOptions(max_depth=3, max_args=6, longer_than=47, shorter_than=51)
    message = (
        r"^\d of \d{5} expressions drawn have more than 47 and fewer than 51 tokens; at least one in 10000 must: "
        "change max_depth or max_args, or keep more lengths$"
    )
    with pytest.raises(DataError, match=message):
        ListOps(options, 50).draw(4, Generator().manual_seed(0))
