"""Metrics against values worked out by hand on small texts and tables; no figure is ever undefined."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas import catalog
from nas.config.task import DataSizes, Task
from nas.metrics import Outcome, accuracy, f1, macro_f1, majority, matthews, metrics, positive_f1, report, value

LN2 = math.log(2)
# Of 10 examples of class 0, 7 are answered 0; of 5 of class 1, 4; of 3 of class 2, none.
COUNTS = [[7, 2, 1], [1, 4, 0], [2, 1, 0]]
SQUARE = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 10**6), min_size=n, max_size=n), min_size=n, max_size=n)
)


def task(objective: str = "causal_lm", tokenizer: str = "bytes", tokens_per_byte: float = 1.0, **more: Any) -> Task:
    return Task.model_validate(
        {
            "objective": objective,
            "tokenizer": {"type": tokenizer, "name": "mine"} if tokenizer == "file" else tokenizer,
            "sizes": DataSizes(vocab_size=300, n_classes=3, tokens_per_byte=tokens_per_byte),
            **more,
        }
    )


def unigram_nats(tokens: Sequence[object]) -> float:
    """Mean nats per token of the model that knows how often each of them stands here, and nothing else."""
    counts = Counter(tokens)
    return -sum(math.log(counts[token] / len(tokens)) for token in tokens) / len(tokens)


@pytest.mark.parametrize(
    ("wanted", "corpus", "names"),
    [
        (task(), None, ["bits per byte"]),
        (task(), "enwik8", ["bits per character"]),
        (task(), "text8", ["bits per character"]),
        (task(), "wikitext-2", ["bits per byte"]),
        (task(tokenizer="characters"), "text8", ["bits per character"]),
        (task(tokenizer="characters"), None, ["bits per character"]),
        (task(tokenizer="words"), "wikitext-103", ["word perplexity"]),
        (task(tokenizer="bpe"), "enwik8", ["bits per byte", "token perplexity"]),
        (task(tokenizer="file"), None, ["bits per byte", "token perplexity"]),
        (task(tokenizer="given"), None, ["token perplexity"]),
        (task("masked_lm"), "enwik8", ["bits per masked byte", "perplexity of masked tokens"]),
        (task("masked_lm", "bpe"), None, ["bits per masked token", "perplexity of masked tokens"]),
        (task("sequence_classification"), None, ["accuracy", "macro F1"]),
        (task("sequence_classification", "words"), "mrpc", ["accuracy", "F1"]),
        (task("sequence_classification"), "sst-2", ["accuracy"]),
        (task("sequence_classification"), "cola", ["Matthews correlation", "accuracy"]),
        (task("token_classification", "words"), None, ["token accuracy", "macro F1"]),
    ],
    ids=[
        "bytes", "enwik8", "text8 as bytes", "other corpus", "text8", "characters", "words", "bpe", "file", "given",
        "masked bytes", "masked bpe", "documents", "mrpc", "sst-2", "cola", "tokens",
    ],
)  # fmt: skip
def test_each_task_has_the_metrics_of_its_field(wanted: Task, corpus: str | None, names: list[str]) -> None:
    found = metrics(wanted, corpus)
    assert [metric.name for metric in found] == names
    assert all(metric.lower_is_better == (wanted.objective in ("causal_lm", "masked_lm")) for metric in found)
    assert all(metric.unit for metric in found)


@pytest.mark.parametrize("name", sorted(catalog.TASKS))
def test_synthetic_tasks_are_told_in_accuracy_beside_the_best_and_chance(name: str) -> None:
    spec = catalog.TASKS[name]
    counts = [[3, 1], [0, 4]]
    (entry,) = report(_synthetic(name), None, [Outcome(0.5, counts)])
    assert entry["name"] == ("accuracy" if spec.objective == "sequence_classification" else "token accuracy")
    assert (entry["derived"], entry["chance"], entry["majority"], entry["best"]) == (7 / 8, 0.5, 0.5, spec.best[0])


def _synthetic(name: str) -> Task:
    """With default options at the shortest length that they take."""
    for length in (2**power for power in range(1, 14)):
        try:
            return Task.model_validate(
                {"objective": catalog.TASKS[name].objective, "dataset": name, "train_length": length}
            )
        except ValueError:
            continue
    raise AssertionError(f"{name} takes no length")


# -- language, by hand ----------------------------------------------------------------------------------------------


def test_word_perplexity_of_a_small_text() -> None:
    """the 2/7, five others 1/7 each: the geometric mean of 7/2, 7/2 and five times 7 is 7 / 2^(2/7)."""
    words = ["the", "cat", "sat", "on", "the", "mat", "<eos>"]
    (metric,) = metrics(task(tokenizer="words"), "wikitext-2")
    assert value(metric, Outcome(unigram_nats(words)), task(tokenizer="words")) == pytest.approx(7 / 2 ** (2 / 7))


def test_bits_per_character_of_a_small_text() -> None:
    """In "abacabad" a is 1/2, b 1/4, c and d 1/8: 1, 2, 3 and 3 bits, 4 + 4 + 3 + 3 for 8 characters."""
    wanted = task(tokenizer="characters")
    (metric,) = metrics(wanted, "text8")
    assert value(metric, Outcome(unigram_nats("abacabad")), wanted) == pytest.approx(14 / 8)


def test_bits_per_byte_count_the_bytes_of_a_character() -> None:
    """Each of the 4 bytes of two e acute stands twice in 4: 1 bit per byte, though 2 bits per character."""
    assert value(metrics(task())[0], Outcome(unigram_nats("éé".encode())), task()) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["bpe", "file"])
def test_tokens_of_several_bytes_are_told_in_bits_per_byte_and_in_token_perplexity(kind: str) -> None:
    """2 tokens for the 7 bytes of "low low", each one of 4 equally likely: 2 bits * 2 / 7."""
    wanted = task(tokenizer=kind, tokens_per_byte=2 / 7)
    entries = report(wanted, None, [Outcome(math.log(4))])
    assert [entry["derived"] for entry in entries] == pytest.approx([4 / 7, 4.0])


def test_a_masked_token_is_no_share_of_the_bytes() -> None:
    wanted = task("masked_lm", "bpe", tokens_per_byte=0.25)
    assert [entry["derived"] for entry in report(wanted, None, [Outcome(3 * LN2)])] == pytest.approx([3.0, 8.0])


def outcomes(*perplexities: float) -> list[Outcome]:
    return [Outcome(math.log(each)) for each in perplexities]


def test_seeds_are_averaged_and_paired_in_the_metrics_own_unit() -> None:
    """Differences of -40 and -44: mean -42, standard error 2, and t of one degree of freedom 12.706."""
    (entry,) = report(task(tokenizer="words"), None, outcomes(10, 30), outcomes(50, 74))
    assert entry == {
        "name": "word perplexity", "unit": "words", "lower_is_better": True,
        "derived": pytest.approx(20.0), "parent": pytest.approx(62.0),
        "derived_seeds": pytest.approx([10.0, 30.0]), "parent_seeds": pytest.approx([50.0, 74.0]),
        "derived_half": pytest.approx(12.706 * 10, abs=1e-2), "parent_half": pytest.approx(12.706 * 12, abs=1e-2),
        "difference": pytest.approx(-42.0),
        "low": pytest.approx(-42 - 12.706 * 2, abs=1e-3), "high": pytest.approx(-42 + 12.706 * 2, abs=1e-3),
    }  # fmt: skip


def test_one_seed_and_no_parent_have_no_interval() -> None:
    (entry,) = report(task(tokenizer="words"), None, outcomes(10), outcomes(50))
    assert (entry["difference"], entry["low"], entry["high"]) == (pytest.approx(-40.0), None, None)
    (entry,) = report(task(tokenizer="words"), None, outcomes(10, 12))
    assert [entry[name] for name in ("parent", "parent_seeds", "parent_half", "difference", "low", "high")] == [
        None, [], *[None] * 4
    ]  # fmt: skip


def test_a_perplexity_beyond_all_numbers_is_none_and_so_is_what_hangs_on_it() -> None:
    (entry,) = report(task(tokenizer="words"), None, [*outcomes(10), Outcome(1e4)], outcomes(20, 30))
    assert (entry["derived_seeds"], entry["parent"]) == ([pytest.approx(10.0), None], pytest.approx(25.0))
    assert [entry[name] for name in ("derived", "derived_half", "difference", "low", "high")] == [None] * 5
    (entry,) = report(task(tokenizer="words"), None, [Outcome(709.7), Outcome(709.7)])
    assert entry["derived"] is None, "each is a number, their sum is none"
    (entry,) = report(task(tokenizer="words"), None, [Outcome(709.5), Outcome(1.0)], [Outcome(1.0), Outcome(709.5)])
    assert [entry[name] for name in ("derived_half", "difference", "low")] == [None, 0.0, None]  # squares are beyond


def test_seeds_that_agree_have_not_shown_how_seeds_differ() -> None:
    solved, half = Outcome(0.1, [[2, 0], [0, 2]]), Outcome(0.7, [[1, 1], [1, 1]])
    entry = report(task("sequence_classification"), None, [solved, solved], [half, half])[0]
    assert [entry[name] for name in ("derived", "difference")] == [1.0, 0.5]
    assert [entry[name] for name in ("derived_half", "parent_half", "low", "high")] == [None] * 4


# -- labels, by hand ------------------------------------------------------------------------------------------------


def test_scores_of_a_small_table() -> None:
    assert accuracy(COUNTS) == pytest.approx(11 / 18)
    assert f1(COUNTS, 0) == pytest.approx(2 * 7 / (10 + 10))  # 10 answers, 10 examples
    assert f1(COUNTS, 1) == pytest.approx(2 * 4 / (7 + 5))
    assert f1(COUNTS, 2) == 0.0
    assert macro_f1(COUNTS) == pytest.approx((0.7 + 2 / 3 + 0) / 3)


def test_scores_of_two_classes_are_the_definitions() -> None:
    right_0, wrong_1, wrong_0, right_1 = 50, 10, 5, 35
    counts = [[right_0, wrong_1], [wrong_0, right_1]]
    precision, recall = right_1 / (right_1 + wrong_1), right_1 / (right_1 + wrong_0)
    assert positive_f1(counts) == pytest.approx(2 * precision * recall / (precision + recall))
    both = (right_1 + wrong_1) * (right_1 + wrong_0) * (right_0 + wrong_1) * (right_0 + wrong_0)
    assert matthews(counts) == pytest.approx((right_1 * right_0 - wrong_1 * wrong_0) / math.sqrt(both))


def test_baselines_are_those_of_always_the_most_frequent_class() -> None:
    assert majority(COUNTS) == [[10, 0, 0], [5, 0, 0], [3, 0, 0]]
    entries = report(task("sequence_classification"), None, [Outcome(1.0, COUNTS)], [Outcome(1.0, majority(COUNTS))])
    assert [entry["majority"] for entry in entries] == pytest.approx([10 / 18, 2 * 10 / 28 / 3])
    assert [entry["parent"] for entry in entries] == [entry["majority"] for entry in entries]


def test_the_majoritys_f1_and_correlation_follow_the_positive_class() -> None:
    often, seldom = [[10, 20], [20, 48]], [[48, 20], [20, 10]]
    mrpc, cola = task("sequence_classification"), task("sequence_classification")
    assert report(mrpc, "mrpc", [Outcome(1.0, often)])[1]["majority"] == pytest.approx(2 * 68 / (98 + 68))
    assert report(mrpc, "mrpc", [Outcome(1.0, seldom)])[1]["majority"] == 0.0
    assert report(cola, "cola", [Outcome(1.0, often)])[0]["majority"] == 0.0


@given(SQUARE)
def test_no_score_is_ever_undefined_or_out_of_its_range(counts: list[list[int]]) -> None:
    """Whatever is empty: a class, a column of answers, all of it."""
    for score in (accuracy, macro_f1, *([positive_f1] if len(counts) > 1 else [])):
        assert 0 <= score(counts) <= 1 + 1e-12
    assert -1 - 1e-9 <= matthews(counts) <= 1 + 1e-9
    json.dumps(report(task("token_classification", "words"), None, [Outcome(0.0, counts)]), allow_nan=False)


@given(SQUARE, st.randoms(use_true_random=False))
def test_the_order_of_classes_does_not_matter(counts: list[list[int]], random: Any) -> None:
    order = list(range(len(counts)))
    random.shuffle(order)
    turned = [[counts[row][column] for column in order] for row in order]
    for score in (accuracy, macro_f1, matthews):
        assert score(turned) == pytest.approx(score(counts), abs=1e-9)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=5))
def test_answers_that_are_all_right_score_one(examples: list[int]) -> None:
    counts = [[each if row == column else 0 for column in range(len(examples))] for row, each in enumerate(examples)]
    assert [score(counts) for score in (accuracy, macro_f1, matthews)] == pytest.approx([1.0, 1.0, 1.0])


def test_other_options_than_the_defaults_have_no_known_best() -> None:
    for name in sorted(catalog.TASKS):
        default = _synthetic(name)
        other = default.model_copy(update={"dataset_options": {**default.dataset_options, **_changed(name)}})
        (entry,) = report(other, None, [Outcome(0.5, [[3, 1], [0, 4]])])
        assert "best" not in entry


def _changed(name: str) -> dict[str, Any]:
    """The first option that is a number, one larger."""
    for option, standing in vars(catalog.TASKS[name].options()).items():
        if type(standing) is int:
            return {option: standing + 1}
    raise AssertionError(f"{name} has no option that is a number")
