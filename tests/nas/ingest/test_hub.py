"""Datasets of the library `datasets`, from disk; what is said where it is missing or the hub out of reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nas.errors import InvalidInput
from nas.ingest.hub import hub
from nas.ingest.options import Options
from tests.nas.ingest.files import read

datasets: Any = pytest.importorskip("datasets")


def saved(path: Path, **splits: Any) -> str:
    """Under `one` alone: a dataset without splits."""
    found = splits["one"] if list(splits) == ["one"] else datasets.DatasetDict(splits)
    found.save_to_disk(str(path))
    return str(path)


def reviews(n: int, word: str, labels: list[int] | None = None) -> Any:
    features = {"body": datasets.Value("string"), "stars": datasets.ClassLabel(names=["bad", "good"])}
    rows = {"body": [f"{word} {index}" for index in range(n)], "stars": labels or [index % 2 for index in range(n)]}
    return datasets.Dataset.from_dict(rows, features=datasets.Features(features))


REVIEWS = Options(text="body", label="stars")


def test_splits_become_parts_and_classes_have_names(tmp_path: Path) -> None:
    path = saved(tmp_path / "d", train=reviews(100, "a"), dev=reviews(20, "b"), test=reviews(20, "c"))
    lines, options = hub(path, REVIEWS)
    content = b"".join(lines)
    assert json.loads(content.splitlines()[1]) == {"text": "a 1", "label": "good", "part": "train"}
    card, _ = read(tmp_path, content, options)
    assert card.given_parts == {"train": 100, "validation": 20, "test": 20}
    assert card.labels == {"bad": 70, "good": 70}


def test_withheld_labels_are_passed_over(tmp_path: Path) -> None:
    path = saved(tmp_path / "d", train=reviews(100, "a"), validation=reviews(20, "b"), test=reviews(20, "c", [-1] * 20))
    lines, options = hub(path, REVIEWS)
    card, _ = read(tmp_path, b"".join(lines), options)
    assert card.part_rows == {"weights": 80, "alpha": 20, "validation": 10, "test": 10}


def test_one_split_is_dealt(tmp_path: Path) -> None:
    for path, split in (
        (saved(tmp_path / "one", one=reviews(100, "a")), None),
        (saved(tmp_path / "train", train=reviews(100, "a")), None),
        (saved(tmp_path / "two", train=reviews(100, "a"), extra=reviews(9, "b")), "train"),
    ):
        lines, options = hub(path, REVIEWS, split=split)
        card, _ = read(tmp_path, b"".join(lines), options)
        assert card.part_rows == {"weights": 72, "alpha": 18, "validation": 5, "test": 5}


def test_words_have_labels_by_name(tmp_path: Path) -> None:
    features = {
        "tokens": datasets.List(datasets.Value("string")),
        "ner_tags": datasets.List(datasets.ClassLabel(names=["O", "PER"])),
    }
    rows = {"tokens": [["Ada", f"n{index}"] for index in range(40)], "ner_tags": [[1, 0]] * 40}
    found = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    lines, options = hub(saved(tmp_path / "d", one=found), Options(words="tokens", labels="ner_tags"))
    card, canonical = read(tmp_path, b"".join(lines), options)
    assert card.labels == {"O": 40, "PER": 40}
    assert json.loads(canonical.splitlines()[2]) == {"words": ["Ada", "n2"], "labels": ["PER", "O"]}


def test_blank_texts_without_labels_are_passed_over(tmp_path: Path) -> None:
    found = datasets.Dataset.from_dict({"text": [" = A = \n", "", "words \n"], "part": ["verb"] * 3})
    lines, options = hub(saved(tmp_path / "d", one=found), Options())
    assert [json.loads(line) for line in lines] == [{"text": " = A = \n"}, {"text": "words \n"}]
    assert options == Options("jsonl", "none")


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path / "d", train=reviews(10, "a"), extra=reviews(10, "b"))
    (tmp_path / "empty").mkdir()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": path, "split": "test"}, f"{path} has no split 'test', it has: 'train', 'extra'; name one of them"),
        ({"name": path}, f"{path} has the splits 'train', 'extra'; name the one to read with option split"),
        ({"name": path, "split": "train", "options": Options()},
         f"{path} has no field 'text', it has: 'body', 'stars'; name the field with option text"),
        ({"name": str(tmp_path / "empty")},
         f"no dataset '{tmp_path}/empty': Directory {tmp_path}/empty is neither a `Dataset` directory nor a "
         "`DatasetDict` directory.; give a folder that save_to_disk wrote"),
    ]  # fmt: skip
    for told, message in cases:
        with pytest.raises(InvalidInput) as caught:
            hub(**{"options": REVIEWS, **told})
        assert str(caught.value) == message


def said_apart(code: str, **environment: str) -> str:
    """What `hub` says in a fresh interpreter."""
    call = "from nas.ingest.hub import hub\nfrom nas.ingest.options import Options\n"
    call += (
        "try:\n    hub('nobody/nothing', Options())\nexcept Exception as error:\n    print(error.code, error, sep=': ')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + call], capture_output=True, text=True, check=True,
        env={**os.environ, **environment}, timeout=120,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_missing_library_is_told() -> None:
    assert said_apart("import sys\nsys.modules['datasets'] = None\n") == (
        "not-available: the library datasets is not installed; install it with: pip install 'blockwright[datasets]'"
    )


def test_a_hub_out_of_reach_is_told(tmp_path: Path) -> None:
    said = said_apart("", HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    assert said == (
        "not-available: 'nobody/nothing' cannot be fetched, the hub is out of reach: Couldn't reach 'nobody/nothing' "
        "on the Hub (OfflineModeIsEnabled); go online, or give a folder that save_to_disk wrote"
    )
