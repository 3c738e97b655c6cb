"""Labelled documents: what is read, what is scored, and where a label stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Generator

from nas.config.task import Task
from nas.data.encode import encode
from nas.data.encoded import Encoded
from nas.data.examples import Examples
from nas.data.objectives import Batch
from nas.data.parts import Parts
from nas.errors import DataError
from nas.heads import IGNORE
from nas.text import TooShort
from tests.encoding import chosen, documents

LABELS = ("cat", "dog", "eel")


def rows(n: int = 60) -> list[dict[str, Any]]:
    """Each document says which it is, and its label follows from that."""
    return [{"text": "x" * (n_row % 7 + 1) + f" {n_row:03}", "label": LABELS[n_row % 3]} for n_row in range(n)]


def tagged(n: int = 60) -> list[dict[str, Any]]:
    """Words with labels: numbers have one, the rest another."""
    return [
        {"words": ["the", f"{n_row:03}", "saw", "New York"], "labels": ["word", "number", "word", "word"]}
        for n_row in range(n)
    ]


def encoded(folder: Path, content: list[dict[str, Any]], kind: str = "bytes", **fields: str) -> Encoded:
    if "words" in content[0]:
        fields |= {"words": "words", "labels": "labels"}
    dataset = documents(folder, content, **fields)
    return encode(dataset.path, dataset.card, chosen(kind), folder)


def task_of(found: Encoded, length: int, kind: str = "bytes") -> Task:
    objective = "token_classification" if found.label_kind == "token" else "sequence_classification"
    return Task(objective=objective, train_length=length, tokenizer=chosen(kind), sizes=found.sizes)


def each_part(parts: Parts) -> list[Examples]:
    found = [parts.weights, parts.alpha, parts.validation, parts.test, parts.training]
    return [part for part in found if isinstance(part, Examples)]


def shown(batch: Batch, row: int) -> str:
    """What is read of a row of bytes: without padding, ends as |."""
    assert batch.key_padding is not None
    return bytes(batch.tokens[row][batch.key_padding[row]].tolist()).decode().replace("\0", "|")


def test_a_document_stands_between_two_ends_and_is_padded_to_the_length(tmp_path: Path) -> None:
    found = encoded(tmp_path, rows())
    assert found.labels == LABELS
    assert found.sizes.n_classes == 3
    task = task_of(found, 20)
    seen = []
    for part in each_part(found.parts(task))[:4]:
        batch = part.held_out(task, 99)
        assert batch.tokens.shape == (len(part), 20)
        assert batch.targets.shape == (len(part), 1)
        assert batch.key_padding is not None
        assert batch.key_padding.dtype == torch.bool
        assert (batch.tokens[~batch.key_padding] == found.eos_id).all()
        for row in range(len(part)):
            said = shown(batch, row)
            number = int(said[-4:-1])
            assert said == f"|{rows()[number]['text']}|"
            assert found.labels[int(batch.targets[row])] == rows()[number]["label"]
            seen.append(number)
    assert sorted(seen) == list(range(60))


def test_what_is_longer_than_the_length_is_cut(tmp_path: Path) -> None:
    found = encoded(tmp_path, rows())
    batch = found.parts(task_of(found, 4)).training.held_out(task_of(found, 4), 99)
    assert batch.key_padding is not None
    assert batch.key_padding.all()
    assert {shown(batch, row) for row in range(len(batch.tokens))} <= {"|x 0", "|xx ", "|xxx"}


def test_a_pair_is_parted_by_an_end(tmp_path: Path) -> None:
    pairs = [{"text": f"a{n:02}", "other": f"b{n:02}", "label": LABELS[n % 2]} for n in range(60)]
    found = encoded(tmp_path, pairs, pair="other")
    batch = found.parts(task_of(found, 16)).training.held_out(task_of(found, 16), 5)
    for row in range(5):
        said = shown(batch, row)
        assert said == f"|a{said[2:4]}|b{said[2:4]}|"


@pytest.mark.parametrize(
    ("kind", "scored"),
    [
        ("bytes", {"t": "word", "0": "number", "s": "word", "N": "word"}),
        ("characters", {"t": "word", "0": "number", "s": "word", "N": "word"}),
        ("words", {"the": "word", "<unk>": "number", "saw": "word", "New": "word"}),
        ("bpe", {"the": "word", "Ġ0": "number", "Ġsaw": "word", "ĠNew": "word"}),
    ],
    ids=["bytes", "characters", "words", "bpe"],
)
def test_a_label_stands_at_the_first_token_of_its_word(tmp_path: Path, kind: str, scored: dict[str, str]) -> None:
    found = encoded(tmp_path, tagged(), kind)
    assert found.labels == ("number", "word")
    task = task_of(found, 24, kind)
    batch = found.parts(task).test.held_out(task, 99)
    assert batch.targets.shape == batch.tokens.shape
    assert batch.key_padding is not None
    assert (batch.targets[~batch.key_padding] == IGNORE).all()
    assert (batch.targets[:, 0] == IGNORE).all()
    assert ((batch.targets != IGNORE).sum(1) == 4).all()
    for tokens, targets in zip(batch.tokens, batch.targets, strict=True):
        at = (targets != IGNORE).nonzero().ravel().tolist()
        names = [entry(found, int(tokens[place])) for place in at]
        told = dict(zip(names, (found.labels[int(targets[place])] for place in at), strict=True))
        assert [told[name] for name in names] == list(scored.values())
        for name, expected in zip(names, scored, strict=True):
            assert name == expected or name.startswith(expected) or kind == "bpe"


def entry(found: Encoded, number: int) -> str:
    if found.tokenizer["type"] == "bytes":
        return chr(number)
    from tokenizers import Tokenizer as LibraryTokenizer

    token = LibraryTokenizer.from_file(str(found.folder / "tokenizer.json")).id_to_token(number)
    assert token is not None
    return token


def test_batches_follow_the_generator_and_held_out_documents_are_always_the_same(tmp_path: Path) -> None:
    found = encoded(tmp_path, rows(200))
    task = task_of(found, 16)
    part = each_part(found.parts(task))[0]
    first, again, other = (part.batch(task, 8, Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.tokens, other.tokens)
    held_out = part.held_out(task, 10)
    assert torch.equal(held_out.tokens, part.held_out(task, 10).tokens)
    assert len({shown(held_out, row) for row in range(10)}) == 10
    assert len(part.held_out(task, 10_000).tokens) == len(part)


def test_every_document_is_drawn(tmp_path: Path) -> None:
    found = encoded(tmp_path, rows())
    task = task_of(found, 16)
    part = each_part(found.parts(task))[3]
    batch = part.batch(task, 400, Generator().manual_seed(0))
    whole = part.held_out(task, 400)
    assert {shown(batch, row) for row in range(400)} == {shown(whole, row) for row in range(len(part))}


@pytest.mark.parametrize(
    ("content", "objective", "message"),
    [
        (
            [{"text": f"document {n}"} for n in range(60)],
            "sequence_classification",
            "task.objective is 'sequence_classification' but the dataset has no labels; it must be 'causal_lm' or",
        ),
        (
            rows(),
            "token_classification",
            "task.objective is 'token_classification' but the dataset has labels of documents; it must be 'sequence_cl",
        ),
        (
            tagged(),
            "sequence_classification",
            "task.objective is 'sequence_classification' but the dataset has labels of words; it must be 'token_class",
        ),
    ],
    ids=["none", "of documents", "of words"],
)
def test_labels_of_another_kind_are_refused(
    tmp_path: Path, content: list[dict[str, Any]], objective: str, message: str
) -> None:
    found = encoded(tmp_path, content)
    with pytest.raises(DataError) as error:
        found.check(Task.model_validate({"objective": objective, "sizes": found.sizes}), 1)
    assert str(error.value).startswith(message)


def test_documents_are_also_streams_in_which_an_end_follows_each(tmp_path: Path) -> None:
    found = encoded(tmp_path, rows())
    stream = found.parts(Task()).weights
    ids = bytes(stream.ids)  # type: ignore[attr-defined]
    assert ids.endswith(b"\0")
    assert len(ids.split(b"\0")) - 1 == (found.document_ends or ())[0]
    assert found.sizes.tokens_per_byte == 1


@pytest.mark.parametrize(
    ("batch_size", "message"),
    [(8, None), (20, r"^the alpha part has \d+ documents; at least 20 are needed there$")],
    ids=["enough", "alpha"],
)
def test_too_few_documents_are_told(tmp_path: Path, batch_size: int, message: str | None) -> None:
    found = encoded(tmp_path, rows())
    if message is None:
        found.check(task_of(found, 16), batch_size)
        return
    with pytest.raises(TooShort, match=message):
        found.check(task_of(found, 16), batch_size)
