"""In-context and noisy recall, read again by a reader that has the tokens alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Generator

from nas.blocks import block_classes
from nas.config.task import Task
from nas.data.objectives import Batch
from nas.data.synthetic.generated import synthetic_source
from nas.data.synthetic.recall import NoisyRecall, Recall
from nas.heads import IGNORE
from nas.network import Network
from nas.options import BackboneConfig, NetworkConfig, Shape, SlotConfig
from nas.specs.tasks.mechanistic import NoisyRecallOptions, RecallOptions


def read(tokens: list[int], options: RecallOptions) -> list[int]:
    """The answers that the tokens tell: at a key that has come before, what followed it there."""
    values: dict[int, int] = {}
    answers = []
    for place, token in enumerate(tokens):
        answer = IGNORE
        if token < options.n_keys:
            assert place % 2 == 0
            answer = values.get(token, IGNORE)
            if place + 1 < len(tokens):
                value = tokens[place + 1] - options.n_keys
                assert 0 <= value < options.n_values
                assert values.setdefault(token, value) == value
        answers.append(answer)
    return answers


def drawn(options: RecallOptions, length: int, n: int = 300, seed: int = 0) -> Batch:
    kind = NoisyRecall if isinstance(options, NoisyRecallOptions) else Recall
    return kind(options, length).draw(n, Generator().manual_seed(seed))


CASES: dict[str, tuple[RecallOptions, int]] = {
    "default": (RecallOptions(), 128),
    "odd length": (RecallOptions(n_keys=5, n_values=3), 31),
    "shortest": (RecallOptions(), 3),
    "more keys than pairs": (RecallOptions(n_keys=64, n_values=2), 40),
    "noisy": (NoisyRecallOptions(), 128),
    "mostly noise": (NoisyRecallOptions(n_keys=3, noise_percent=95, n_noise=1), 25),
    "no noise": (NoisyRecallOptions(noise_percent=0), 16),
}


@pytest.mark.parametrize(("options", "length"), CASES.values(), ids=CASES)
def test_answers_are_what_the_tokens_tell(options: RecallOptions, length: int) -> None:
    batch = drawn(options, length)
    assert batch.tokens.shape == batch.targets.shape == (300, length)
    assert batch.key_padding is None
    assert 0 <= batch.tokens.min() <= batch.tokens.max() < options.vocab_size
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        assert targets == read(tokens, options)
        assert targets[(length - 1) // 2 * 2] != IGNORE  # the last key is always scored


@pytest.mark.parametrize(("options", "length"), [CASES["default"], CASES["noisy"]], ids=["recall", "noisy"])
def test_a_seed_tells_the_batch(options: RecallOptions, length: int) -> None:
    first, again, other = (drawn(options, length, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.tokens, other.tokens)


def test_keys_and_values_are_uniform_and_values_drawn_anew() -> None:
    tokens = drawn(RecallOptions(), 128, 2000).tokens
    keys = torch.bincount(tokens[:, ::2].flatten(), minlength=8) / tokens[:, ::2].numel()
    assert (keys - 1 / 8).abs().max() < 0.005  # of 128,000 keys: five standard errors
    values = torch.bincount(tokens[:, 1] - 8, minlength=8) / 2000
    assert (values - 1 / 8).abs().max() < 0.035  # five standard errors of 2,000


def test_noise_takes_its_share_in_pairs() -> None:
    options = NoisyRecallOptions(noise_percent=40)
    noise = drawn(options, 128, 2000).tokens >= options.n_keys + options.n_values
    assert torch.equal(noise[:, ::2], noise[:, 1::2])
    # Of 64 pairs the last stays, and one of the others: 62 of 64 can be noise. Five standard errors of 124,000.
    assert abs(noise.float().mean().item() - 0.4 * 62 / 64) < 0.007


@pytest.mark.parametrize(
    ("task", "options", "length", "message"),
    [
        ("in-context-recall", {"n_keys": 1}, 128, "n_keys is 1; it must be between 2 and 4096"),
        ("in-context-recall", {}, 2, "train_length is 2; it must be at least 3: a pair, and its key again"),
        ("noisy-recall", {"noise_percent": 96}, 128, "noise_percent is 96; it must be between 0 and 95"),
        ("noisy-recall", {"n_noise": 0}, 128, "n_noise is 0; it must be between 1 and 4096"),
        ("noisy-recall", {}, 2, "train_length is 2; it must be at least 3: a pair, and its key again"),
    ],
)
def test_impossible_options_are_refused(task: str, options: dict[str, Any], length: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Task(objective="token_classification", dataset=task, dataset_options=options, train_length=length)


def test_two_layers_of_attention_learn_it() -> None:
    task = Task(
        objective="token_classification",
        dataset="in-context-recall",
        dataset_options={"n_keys": 4, "n_values": 4},
        train_length=16,
    )
    source, chance = synthetic_source(task), Generator().manual_seed(0)
    torch.manual_seed(0)
    slots = tuple(SlotConfig(block) for block in ("attention", "attention"))
    backbone = BackboneConfig(n_classes=4, pooling="none")
    config = NetworkConfig(Shape(32, 2, 16), task.vocab_size, slots, backbone=backbone)
    network = Network(config, block_classes(["attention"]))
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(100):
        batch = source.draw(32, chance)
        nats = network.backbone.nats(network.body(batch.tokens)[0], batch.targets)
        (nats.sum() / (batch.targets != IGNORE).sum()).backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    test = source.draw(500, Generator().manual_seed(1))
    with torch.no_grad():
        answers = network.backbone.answers(network.body(test.tokens)[0])
    scored = test.targets != IGNORE
    accuracy = (answers[scored] == test.targets[scored]).double().mean().item()
    assert accuracy > 0.95  # 1.00 after 50 updates
