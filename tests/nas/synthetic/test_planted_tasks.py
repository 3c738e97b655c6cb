"""Planted tasks: each example is read by a plain reader of the rule, and cheap readers score what their lines say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
import torch
from torch import Generator

from nas import catalog
from nas.config.request import read_request
from nas.config.task import Task
from nas.data.objectives import Batch
from nas.data.synthetic.generated import synthetic_source
from nas.errors import InvalidInput
from nas.heads import IGNORE
from nas.specs.tasks.planted import SPECS, commonest_shares

NAMES = [spec.name for spec in SPECS]
OTHER: dict[str, dict[str, int]] = {
    "token-wise": {"n_symbols": 5, "permutation": 3},
    "offset": {"n_symbols": 4, "distance": 1},
    "lookup": {"n_keys": 6, "n_values": 3, "n_pairs": 6},
    "shift-then-match": {"n_keys": 5, "n_values": 2, "n_pairs": 1},
}
CASES = [(name, options, length) for name in NAMES for options, length in (({}, 64), (OTHER[name], 16))]
each_case = pytest.mark.parametrize(
    ("name", "options", "length"), CASES, ids=[f"{name}-{length}" for name, _, length in CASES]
)
each_task = pytest.mark.parametrize("name", NAMES)


def task_of(name: str, options: dict[str, Any], length: int = 64) -> Task:
    return Task(objective="token_classification", dataset=name, dataset_options=dict(options), train_length=length)


def drawn(task: Task, n: int, seed: int = 0) -> Batch:
    return synthetic_source(task).draw(n, Generator().manual_seed(seed))


def shifted(tokens: list[int], options: dict[str, int]) -> list[int | None]:
    return [tokens[at - options["distance"]] if at >= options["distance"] else None for at in range(len(tokens))]


def looked_up(tokens: list[int], options: dict[str, int]) -> list[int | None]:
    n_pairs, known, answers = options["n_pairs"], {}, list[int | None]()
    for at, token in enumerate(tokens):
        if at < n_pairs:
            key, value = divmod(token, options["n_values"])
            assert key < options["n_keys"]
            assert key not in known
            known[key] = value
            answers.append(None)
        else:
            answers.append(known[token - options["n_keys"] * options["n_values"]])
    return answers


def recalled(tokens: list[int], options: dict[str, int]) -> list[int | None]:
    n_pairs, n_keys, known = options["n_pairs"], options["n_keys"], dict[int, int]()
    pairs, queries = tokens[: 2 * n_pairs], tokens[2 * n_pairs :]
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        assert key < n_keys
        assert key not in known
        known[key] = value - n_keys
    return [None] * len(pairs) + [known[key] for key in queries]


RULES: dict[str, Callable[[list[int], dict[str, int]], list[int | None]]] = {
    "offset": shifted,
    "lookup": looked_up,
    "shift-then-match": recalled,
}


@pytest.mark.parametrize("name", list(RULES))
@pytest.mark.parametrize("given", [True, False], ids=["other options", "defaults"])
def test_every_answer_is_what_the_rule_gives(name: str, given: bool) -> None:
    task = task_of(name, OTHER[name] if given else {})
    batch = drawn(task, 200)
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        assert [None if each == IGNORE else each for each in targets] == RULES[name](tokens, task.dataset_options)


def test_token_wise_maps_symbols_by_one_permutation_that_its_seed_fixes() -> None:
    images = []
    for permutation in (0, 0, 1):
        batch = drawn(task_of("token-wise", {"permutation": permutation}), 300)
        image: dict[int, int] = {}
        for token, target in zip(batch.tokens.flatten().tolist(), batch.targets.flatten().tolist(), strict=True):
            assert image.setdefault(token, target) == target
        assert sorted(image) == sorted(image.values()) == list(range(32))
        images.append(image)
    assert images[0] == images[1] != images[2]


@each_case
def test_tokens_and_answers_are_within_what_the_options_tell(name: str, options: dict[str, int], length: int) -> None:
    task = task_of(name, options, length)
    sizes, batch = task.synthetic_options(), drawn(task, 300)
    scored = batch.targets[batch.targets != IGNORE]
    assert batch.tokens.shape == batch.targets.shape == (300, length)
    assert batch.tokens.dtype == batch.targets.dtype == torch.long
    assert batch.key_padding is None
    assert 0 <= int(batch.tokens.min()) <= int(batch.tokens.max()) < sizes.vocab_size
    assert set(scored.tolist()) == set(range(sizes.n_classes))  # each answer is given somewhere
    assert bool((batch.targets != IGNORE).any(dim=1).all())


@each_task
def test_the_same_seed_draws_the_same_examples_and_another_one_others(name: str) -> None:
    task = task_of(name, {})
    first, again, other = (drawn(task, 8, seed) for seed in (4, 4, 5))
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.tokens, other.tokens)


def test_keys_of_lookup_and_their_values_are_uniform() -> None:
    batch = drawn(task_of("lookup", {}), 2000)
    counts = torch.bincount(batch.tokens[:, :44].flatten(), minlength=432)[:384]
    expected = 2000 * 44 / 384
    assert float((counts - expected).abs().max()) < 5 * math.sqrt(expected)  # five standard errors


def commonest(seen: list[int]) -> int:
    return Counter(seen).most_common(1)[0][0]


def guessed(task: Task, batch: Batch) -> float:
    """Accuracy of the reader of the second reference line."""
    options, right, asked = task.dataset_options, 0, 0
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        for at, target in enumerate(targets):
            if target == IGNORE:
                continue
            if task.dataset == "offset":
                guess = commonest(tokens[:at])
            elif task.dataset == "lookup":
                guess = commonest([token % options["n_values"] for token in tokens[: options["n_pairs"]]])
            else:
                guess = commonest(tokens[1 : 2 * options["n_pairs"] : 2]) - options["n_keys"]
            right += guess == target
            asked += 1
    return right / asked


@pytest.mark.parametrize("name", list(RULES))
def test_who_knows_the_values_alone_scores_its_reference_line(name: str) -> None:
    task = task_of(name, {}, 24 if name == "offset" else 64)  # its reader counts anew at each token
    lines = list(task.synthetic_options().reference_lines(task.train_length).values())
    accuracy = guessed(task, drawn(task, 1500))
    # Answers of one window are not independent: at worst 1,500 independent ones, of which this is four standard errors.
    assert abs(accuracy - lines[1]) < 4 * math.sqrt(lines[1] * (1 - lines[1]) / 1500)
    assert lines[0] < lines[1]


@each_case
def test_any_one_answer_is_right_as_often_as_its_reference_line_says(
    name: str, options: dict[str, int], length: int
) -> None:
    task = task_of(name, options, length)
    targets = drawn(task, 4000).targets
    line = task.synthetic_options().reference_lines(length)["any answer"]
    accuracy = float((targets[targets != IGNORE] == 1).float().mean())
    assert abs(accuracy - line) < 4.5 * math.sqrt(line * (1 - line) / 4000)  # as above


@pytest.mark.parametrize(("n_drawn", "n_values"), [(1, 2), (3, 2), (4, 3), (5, 4)])
def test_the_share_of_the_commonest_is_that_of_all_assignments(n_drawn: int, n_values: int) -> None:
    largest = [max(Counter(each).values()) for each in product(range(n_values), repeat=n_drawn)]
    assert commonest_shares(n_drawn, n_values)[-1] == float(Fraction(sum(largest), len(largest) * n_drawn))


@pytest.mark.parametrize(
    ("name", "options", "length", "message"),
    [
        ("token-wise", {"n_symbols": 1}, 64, "n_symbols is 1; it must be between 2 and 4096"),
        ("offset", {"distance": 0}, 64, "distance is 0; it must be between 1 and 65535"),
        ("offset", {}, 7, "synthetic task 'offset': distance is 7 at length 7; it must be at most 6"),
        ("lookup", {"n_keys": 43}, 64, "n_pairs is 44 with n_keys 43; each pair has a key of its own"),
        ("lookup", {}, 44, "n_pairs 44 take 44 tokens of length 44; one must be left for a query"),
        ("lookup", {"n_values": 1}, 64, "n_values is 1; it must be between 2 and 4096"),
        ("shift-then-match", {"n_pairs": 33}, 128, "n_pairs is 33 with n_keys 32; each pair has a key of its own"),
        ("shift-then-match", {}, 16, "n_pairs 8 take 16 tokens of length 16; one must be left for a query"),
        ("shift-then-match", {"pairs": 8}, 64, "unknown option 'pairs' of task 'shift-then-match'; known: n_keys, n_"),
    ],
)
def test_options_that_make_no_task_are_refused(name: str, options: dict[str, int], length: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task_of(name, options, length)


@each_task
def test_a_request_names_it_as_its_dataset_and_must_be_causal(name: str) -> None:
    body = {
        "task": {
            "objective": "token_classification",
            "dataset": name,
            "train_length": 64,
            "serve": [{"query_length": 64}],
        },
        "space": {"positions": "none", "backbone": {"pooling": "none"}},
    }
    assert read_request(body).task.vocab_size == catalog.TASKS[name].options().vocab_size
    body["space"] = {"causal": False, "backbone": {"pooling": "none"}}
    with pytest.raises(InvalidInput, match=r"but space\.causal is false; it must be true"):
        read_request(body)


@pytest.mark.parametrize(
    ("name", "line"), [("offset", 0.118), ("lookup", 0.206), ("shift-then-match", 0.208)], ids=lambda each: str(each)
)
def test_the_lines_at_64_tokens_are_what_docs_say(name: str, line: float) -> None:
    lines = task_of(name, {}).synthetic_options().reference_lines(64)
    assert list(lines.values())[1] == pytest.approx(line, abs=5e-4)


def test_all_of_them_can_be_answered_without_fail() -> None:
    assert [spec.best[0] for spec in SPECS] == [1.0] * 4
