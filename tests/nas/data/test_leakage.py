"""The four parts never overlap: not in bytes of a text, not in token ids, and no document stands in two of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nas.config.task import Task
from nas.data.encode import encode
from nas.data.encoded import STARTS, Encoded
from nas.data.parts import Parts, Tokens
from nas.ingest.card import PARTS, Dataset, Settings
from tests.encoding import chosen, decoded, documents, raw, text

PROSE = "".join(f"line {n} of {n % 13} words,\twith é and €{'😀' * (n % 3)}\n\n" for n in range(400))
KINDS: tuple[str | Mapping[str, Any], ...] = ("bytes", "characters", "words", {"type": "bpe", "vocab_size": 320})
IDS = ["bytes", "characters", "words", "bpe"]


def ids_of(parts: Parts) -> list[np.ndarray[Any, Any]]:
    each = (parts.weights, parts.alpha, parts.validation, parts.test)
    return [part.ids for part in each if isinstance(part, Tokens)]


def place(ids: np.ndarray[Any, Any]) -> int:
    """Where in memory, and so in the file, an array begins."""
    return int(ids.__array_interface__["data"][0])


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
@pytest.mark.parametrize("ends", [None, (9_001, 10_002)], ids=["ours", "given"])
def test_each_part_of_a_text_holds_its_own_bytes_and_no_others(
    tmp_path: Path, kind: str, ends: tuple[int, int] | None
) -> None:
    content = PROSE.encode()
    dataset = text(tmp_path / "data", PROSE, ends)
    found = encode(dataset.path, dataset.card, chosen(kind), tmp_path / "cache")
    cuts = [len(content) * percent // 100 for percent in (72, 90, 95)] if ends is None else [9_001 * 80 // 100, *ends]
    if kind != "bytes":  # on to the beginning of a character
        cuts = [next(at for at in range(cut, cut + 4) if content[at] & 0xC0 != 0x80) for cut in cuts]
    parts = found.parts(Task())
    each = (parts.weights, parts.alpha, parts.validation, parts.test)
    for part, (start, end) in zip(each, pairwise([0, *cuts, len(content)]), strict=True):
        if kind == "bytes":
            assert isinstance(part, Tokens)
            assert part.ids.tobytes() == content[start:end]
            continue
        exact, told = content[start:end].decode(), decoded(found, part)
        if kind != "words":
            assert told == exact
            continue
        assert told.count("\n") == exact.count("\n")
        for word, own in zip(told.split(), exact.split(), strict=True):
            assert word in (own, "<unk>")


@settings(max_examples=15)
@given(n_ids=st.integers(2, 500), wide=st.booleans())
def test_parts_of_token_ids_follow_each_other_without_a_gap(
    tmp_path_factory: pytest.TempPathFactory, n_ids: int, wide: bool
) -> None:
    ids = np.arange(n_ids).astype("<u4" if wide else "<u2")
    folder = tmp_path_factory.mktemp("ids")
    dataset = raw(folder, ids.tobytes(), Settings("tokens", dtype=ids.dtype.name, vocab_size=n_ids))
    parts = encode(dataset.path, dataset.card, chosen("given"), folder).parts(Task())
    each = ids_of(parts)
    np.testing.assert_array_equal(np.concatenate(each), ids)
    assert isinstance(parts.training, Tokens)
    np.testing.assert_array_equal(parts.training.ids, np.concatenate(each[:2]))
    for one, other in pairwise(part for part in each if len(part)):
        assert place(one) + one.nbytes == place(other)


def read_back(found: Encoded) -> dict[str, list[str]]:
    """The documents of each part, from the bytes and where they begin."""
    assert found.document_ends is not None
    starts = np.fromfile(found.folder / STARTS, np.uint64)
    ids = np.fromfile(found.folder / "tokens.bin", np.uint8)
    assert [int(starts[end]) for end in found.document_ends] == list(found.ends)
    whole = [ids[int(start) : int(end)] for start, end in pairwise(starts)]
    assert all(document[-1] == 0 for document in whole)
    texts = [bytes(document[:-1]).decode() for document in whole]
    firsts = (0, *found.document_ends)
    return {name: texts[start:end] for name, (start, end) in zip(PARTS, pairwise(firsts), strict=True)}


seeds = st.integers(0, 2**32)


def drawn(chance: Random, n: int, most: int) -> list[int]:
    """Numbers of documents, some of which come again."""
    return [chance.randrange(most) for _ in range(n)]


def made(folder: Path, rows: list[dict[str, Any]]) -> tuple[Dataset, Encoded]:
    dataset = documents(folder, rows)
    return dataset, encode(dataset.path, dataset.card, chosen("bytes"), folder)


@settings(max_examples=15)
@given(seed=seeds)
def test_equal_documents_share_a_part_and_each_is_in_one(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    texts = [f"document {number}\nof é" for number in drawn(Random(seed), 300, 400)]
    dataset, found = made(tmp_path_factory.mktemp("dealt"), [{"text": each} for each in texts])
    parts = read_back(found)
    assert Counter(document for part in parts.values() for document in part) == Counter(texts)
    for one in PARTS:
        for other in PARTS:
            assert one == other or not set(parts[one]) & set(parts[other])
    assert {name: len(part) for name, part in parts.items()} == dataset.card.part_rows


@settings(max_examples=15)
@given(seed=seeds, test_given=st.booleans())
def test_given_parts_hold_no_document_of_a_later_one(
    tmp_path_factory: pytest.TempPathFactory, seed: int, test_given: bool
) -> None:
    chance = Random(seed)
    train, validation = drawn(chance, 300, 400), drawn(chance, 60, 800)
    test = drawn(chance, 60, 800) if test_given else []
    named = {"train": train, "validation": validation, "test": test}
    rows = [{"text": f"document {number}", "part": name} for name, numbers in named.items() for number in numbers]
    dataset, found = made(tmp_path_factory.mktemp("named"), rows)
    parts = read_back(found)
    trained = [f"document {number}" for number in train if number not in {*validation, *test}]
    watched = [f"document {number}" for number in validation if number not in test]
    assert dataset.card.n_left_out == len(train) - len(trained) + len(validation) - len(watched)
    assert Counter(parts["weights"] + parts["alpha"]) == Counter(trained)
    assert Counter(parts["validation"] + parts["test"]) == Counter([*watched, *(f"document {each}" for each in test)])
    if test_given:
        assert Counter(parts["validation"]) == Counter(watched)
    for one in PARTS:
        for other in PARTS:
            assert one == other or not set(parts[one]) & set(parts[other])
    assert {name: len(part) for name, part in parts.items()} == dataset.card.part_rows


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_a_vocabulary_knows_nothing_of_documents_that_are_not_trained_on(tmp_path: Path, kind: str) -> None:
    rows = [{"text": f"common t{number}", "part": "train"} for number in range(30)]
    rows += [{"text": f"common ÿ v{number}", "part": "validation"} for number in range(30)]
    rows += [{"text": "common ÿ v1", "part": "train"}]  # held out too, so left out
    dataset = documents(tmp_path, rows)
    assert dataset.card.n_left_out == 1
    found = encode(dataset.path, dataset.card, chosen(kind), tmp_path)
    vocabulary = json.loads((found.folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert "ÿ" not in vocabulary
    assert "v1" not in vocabulary
    assert vocabulary["<eos>"] < vocabulary["<unk>"]
