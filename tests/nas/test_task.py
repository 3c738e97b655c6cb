"""A task's data in a request: tokenisers, synthetic tasks, labels, and what is filled in once the data are known."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from nas.config.request import SearchRequest, read_request
from nas.config.task import DataSizes, Task, Tokenizer
from nas.errors import InvalidInput
from tests import tiny

LABELLED: dict[str, Any] = {
    "space": {"backbone": {"pooling": "mean"}},
    "task": {"objective": "sequence_classification", "dataset": "reviews"},
}
TAGGED: dict[str, Any] = {
    "space": {"backbone": {"pooling": "none"}},
    "task": {"objective": "token_classification", "dataset": "tags"},
}
LOOKUP: dict[str, Any] = {
    "space": {"backbone": {"pooling": "none"}, "max_len": 64},
    "task": {
        "objective": "token_classification", "dataset": "lookup", "train_length": 64, "serve": [{"query_length": 64}],
    },
}  # fmt: skip


def changed(base: dict[str, Any], part: str, **values: Any) -> dict[str, Any]:
    return {**base, part: {**base.get(part, {}), **values}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"task": {"tokenizer": "byte"}}, "task.tokenizer.type: input should be 'bytes', 'characters', 'words', 'bpe', "
         "'file' or 'given'"),
        ({"task": {"tokenizer": "file"}}, "task.tokenizer: type is 'file' and name is None; file needs a name, others "
         "take none"),
        ({"task": {"tokenizer": {"type": "words", "name": "mine"}}}, "task.tokenizer: type is 'words' and name is "
         "'mine'; file needs a name, others take none"),
        ({"task": {"tokenizer": {"type": "bytes", "vocab_size": 300}}}, "task.tokenizer: vocab_size is 300 with type "
         "'bytes'; only words and bpe are cut to it"),
        ({"task": {"tokenizer": {"type": "bpe", "min_count": 2}}}, "task.tokenizer: min_count is 2 with type 'bpe'; "
         "only words are counted"),
        ({"task": {"tokenizer": {"type": "bpe", "fingerprint": "0" * 64}}}, "task.tokenizer: fingerprint is of an "
         "uploaded tokenizer, and type is 'bpe'; leave it out"),
        ({"task": {"tokenizer": {"type": "bpe", "vocab_size": 256}}}, "task.tokenizer.vocab_size: input should be "
         "greater than or equal to 257"),
        ({"task": {"dataset_options": {"n_keys": 3}}}, "task: dataset 'python-docs' takes no options; only synthetic "
         "tasks do"),
        (changed(LOOKUP, "task", objective="causal_lm"), "task: objective is 'causal_lm' but synthetic task 'lookup' "
         "is token_classification; it must be that"),
        (changed(LOOKUP, "task", tokenizer="words"), "task: synthetic task 'lookup' draws token ids itself; leave the "
         "tokenizer out"),
        (changed(LOOKUP, "task", dataset_options={"keys": 3}), "task: unknown option 'keys' of task 'lookup'; known: "
         "n_keys, n_pairs, n_values"),
        (changed(LOOKUP, "task", dataset_options={"n_keys": 10}), "task: options of task 'lookup': "),
        (changed(LOOKUP, "space", causal=False), "task.dataset is 'lookup' but space.causal is false; it must be true"),
        (changed(LABELLED, "space", memory_length=8), "memory_length is 8 but task.objective is "
         "'sequence_classification', whose examples stand alone; it must be 0"),
        (changed(LABELLED, "space", backbone={"pooling": "none"}, causal=False), "space.backbone.pooling is 'none' but "
         "task.objective is 'sequence_classification'; it must be 'mean' or 'first'"),
        (changed(LABELLED, "space", backbone={"pooling": "first"}), "space.backbone.pooling is 'first' but "
         "task.objective is 'sequence_classification' in a decoder, whose first token sees no other; it must be "
         "'mean'"),
        (changed(TAGGED, "space", backbone={"pooling": "first"}), "space.backbone.pooling is 'first' but "
         "task.objective is 'token_classification'; it must be 'none'"),
        ({"space": {"causal": True}, "task": {"objective": "masked_lm"}}, "task.objective is 'masked_lm' but "
         "space.causal is true; it must be false"),
        ({"space": {"backbone": {"n_classes": 3, "pooling": "mean"}}}, "space.backbone.n_classes is 3 but "
         "task.objective is 'causal_lm', which predicts tokens; it must be 0"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_task_that_makes_no_sense_is_refused_in_one_line(body: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)}"):
        read_request(body)


def test_a_tokenizers_name_stands_for_its_type_and_is_written_out() -> None:
    task = Task.model_validate({"tokenizer": "words"})
    assert task.tokenizer == Tokenizer(type="words")
    assert Task.model_validate_json(task.model_dump_json()) == task


def test_a_synthetic_tasks_options_are_written_out() -> None:
    options = read_request(LOOKUP).task.dataset_options
    assert options == {"n_keys": 48, "n_values": 8, "n_pairs": 44}
    again = SearchRequest.model_validate(json.loads(read_request(LOOKUP).model_dump_json()))
    assert again == read_request(LOOKUP)


@pytest.mark.parametrize(
    ("task", "unit"),
    [
        ({}, "bits per byte"),
        ({"objective": "masked_lm"}, "bits per masked byte"),
        ({"tokenizer": "characters"}, "bits per character"),
        ({"tokenizer": "words"}, "bits per word"),
        ({"tokenizer": "bpe"}, "bits per byte"),
        ({"tokenizer": "given"}, "bits per token"),
        ({"tokenizer": "bpe", "objective": "masked_lm"}, "bits per masked token"),
        (LABELLED["task"], "bits per label"),
        (LOOKUP["task"], "bits per answer"),
    ],
    ids=str,
)
def test_a_task_says_what_its_quality_is_told_in(task: dict[str, Any], unit: str) -> None:
    assert Task.model_validate(task).quality_unit == unit


def test_tokens_of_a_learnt_vocabulary_are_told_in_bytes_once_their_size_is_known() -> None:
    task = Task(tokenizer=Tokenizer(type="bpe"), sizes=DataSizes(vocab_size=500, tokens_per_byte=0.25))
    assert task.units_per_token == 4.0  # bytes
    assert task.vocab_size == 500
    assert Task(tokenizer=Tokenizer(type="words"), sizes=task.sizes).units_per_token == 1.0
    assert Task(objective="masked_lm", tokenizer=Tokenizer(type="bpe"), sizes=task.sizes).units_per_token == 1.0


def test_a_mask_stands_behind_the_tokenizers_ids() -> None:
    task = Task(objective="masked_lm", tokenizer=Tokenizer(type="words"), sizes=DataSizes(vocab_size=1000))
    assert (task.mask_id, task.vocab_size) == (1000, 1001)


def test_classes_and_vocabulary_are_filled_in() -> None:
    request = read_request({**LABELLED, "task": {**LABELLED["task"], "tokenizer": "words"}})
    known = request.with_data("a" * 64, DataSizes(vocab_size=1000, n_classes=3))
    assert known.space.backbone.n_classes == 3
    assert known.task.vocab_size == 1000
    assert known.task.dataset_fingerprint == "a" * 64
    assert read_request(json.loads(known.model_dump_json())) == known, "what is stored can be sent again"
    assert known.with_data("a" * 64, DataSizes(vocab_size=1000, n_classes=3)) == known


def test_labels_are_no_matter_to_language_modelling() -> None:
    known = tiny.request().with_data("a" * 64, DataSizes(vocab_size=256, n_classes=3))
    assert known.space.backbone.n_classes == 0


@pytest.mark.parametrize(
    ("backbone", "sizes", "message"),
    [
        ({"pooling": "mean"}, DataSizes(vocab_size=256), "task.objective is 'sequence_classification' but dataset "
         "'reviews' has no such labels; add it again and say which field holds them"),
        ({"pooling": "mean", "n_classes": 4}, DataSizes(vocab_size=256, n_classes=3), "space.backbone.n_classes is 4 "
         "but dataset 'reviews' has 3 labels; leave it 0 to have it filled in"),
    ],
    ids=["no labels", "other number"],
)  # fmt: skip
def test_data_that_do_not_fit_the_request_are_refused(backbone: dict[str, Any], sizes: DataSizes, message: str) -> None:
    request = read_request({**LABELLED, "space": {"backbone": backbone}})
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)}$"):
        request.with_data("a" * 64, sizes)


def test_a_vocabulary_that_the_space_cannot_take_is_refused_once_it_is_known() -> None:
    space = {
        "d_model": 16, "n_heads": 2, "max_len": 16,
        "backbone": {"cutoffs": [300, 600], "div_value": 8, "tied_head": True},
    }  # fmt: skip
    request = tiny.request(space=space, task={"tokenizer": {"type": "words", "vocab_size": 299}})
    with pytest.raises(InvalidInput, match="the last cluster of d_model 16 would have no width"):
        request.with_data("a" * 64, DataSizes(vocab_size=5000))
