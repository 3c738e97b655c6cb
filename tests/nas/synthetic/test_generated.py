"""Parts of synthetic tasks: what they train on is always new, what they hold out is always the same."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import torch
from torch import Generator

from nas.config.task import Task
from nas.data.objectives import Batch
from nas.data.parts import Part
from nas.data.synthetic.generated import Generated, synthetic_fingerprint, synthetic_parts, synthetic_source
from nas.training import generator

NAMES = ["token-wise", "offset", "lookup", "shift-then-match"]


def task_of(name: str, length: int = 64, **options: Any) -> Task:
    return Task(objective="token_classification", dataset=name, dataset_options=options, train_length=length)


def equal(first: Batch, second: Batch) -> bool:
    return torch.equal(first.tokens, second.tokens) and torch.equal(first.targets, second.targets)


@pytest.mark.parametrize("name", NAMES)
def test_batches_follow_the_generator_that_is_given_and_nothing_else(name: str) -> None:
    task = task_of(name)
    parts = synthetic_parts(task)
    draws, again = Generator().manual_seed(1), Generator().manual_seed(1)
    first, second = parts.weights.batch(task, 4, draws), parts.weights.batch(task, 4, draws)
    torch.manual_seed(7)
    assert equal(first, parts.weights.batch(task, 4, again))
    assert equal(second, parts.alpha.batch(task, 4, again))
    assert not equal(first, second)


@pytest.mark.parametrize("name", NAMES)
def test_held_out_examples_are_the_same_at_every_call_and_differ_between_parts(name: str) -> None:
    task = task_of(name)
    first, again = synthetic_parts(task), synthetic_parts(task)
    seen = []
    for kind in ("weights", "alpha", "validation", "test"):
        part: Part = getattr(first, kind)
        batch = part.held_out(task, 16)
        assert batch.tokens.shape == (16, 64)
        assert equal(batch, part.held_out(task, 16))
        assert equal(batch, getattr(again, kind).held_out(task, 16))
        seen.append(batch.tokens.flatten().tolist())
    assert len({tuple(each) for each in seen}) == 4


def test_what_is_trained_on_in_the_end_is_drawn_as_for_the_weights() -> None:
    parts = synthetic_parts(task_of("offset"))
    assert parts.training is parts.weights


# Of the first 8 test examples. When one changes, runs of before cannot be repeated: raise the task's `version`.
PINNED = {
    "token-wise": "5af3af78afdb15b1",
    "offset": "73cd0fb3718f1946",
    "lookup": "907b15c4accc4695",
    "shift-then-match": "8fc6c6b848d1e1bb",
}


@pytest.mark.parametrize("name", NAMES)
def test_held_out_examples_are_the_same_in_every_process(name: str) -> None:
    task = task_of(name)
    batch = synthetic_parts(task).test.held_out(task, 8)
    said = repr([batch.tokens.tolist(), batch.targets.tolist()])
    assert hashlib.sha256(said.encode()).hexdigest()[:16] == PINNED[name]


def test_no_training_of_a_trial_draws_what_is_held_out() -> None:
    task = task_of("token-wise")
    source = synthetic_source(task)
    held_out = [Generated(source, number).held_out(task, 2).tokens for number in range(4)]
    for seed in (0, 1, 2, 3, 2**28, 2**31 - 1):  # torch keeps 32 bits of a seed, so those of trials come round
        for stream in range(10):
            tokens = source.draw(2, generator(seed, stream)).tokens
            assert not any(torch.equal(tokens, each) for each in held_out)


def test_the_fingerprint_is_of_task_options_and_length() -> None:
    same = synthetic_fingerprint(task_of("offset"))
    assert len(same) == 64
    assert same == synthetic_fingerprint(task_of("offset", distance=7))
    others = [task_of("offset", distance=6), task_of("offset", length=32), task_of("token-wise")]
    assert len({same, *(synthetic_fingerprint(each) for each in others)}) == 4
