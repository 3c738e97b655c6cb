"""What is known of a search's data when it is submitted: what does not fit is refused with what would."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from api.settings import Settings
from db import datasets, models
from db.engine import transaction
from nas.ingest.card import Card
from tests.api.running import TINY, Running, running
from tests.api.test_datasets import ROOT
from tests.api.test_uploads import IDS, JSONL, post, tokenizer_json

SEARCHES = "/api/v1/searches"
WORDS = b"".join(b'{"words": ["a", "b%d"], "labels": ["%s", "O"]}\n' % (n, (b"X", b"O")[n % 2]) for n in range(400))
UPLOADS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "text": (b"a line of text\n" * 1000, {}),
    "docs": (JSONL, {"format": "jsonl"}),  # a label each
    "words": (WORDS, {"format": "jsonl", "words": "words", "labels": "labels"}),  # one for each word
    "bare": (JSONL.replace(b'"label"', b'"other"'), {"format": "jsonl"}),  # none
    "ids": (IDS, {"format": "tokens", "dtype": "uint16", "vocab_size": 300}),
    "own": (tokenizer_json(), {"format": "tokenizer"}),
}


def submit(service: Running, dataset: str, tokenizer: Any = None, **changes: Any) -> Any:
    """The answer to a small search on these data; `space` and `task` are merged."""
    task = {**TINY["task"], "dataset": dataset, **changes.pop("task", {})}
    if tokenizer is not None:
        task["tokenizer"] = tokenizer
    space = {**TINY["space"], **changes.pop("space", {})}
    return service.http.post(SEARCHES, json={**TINY, "space": space, "task": task, **changes})


def encoder(objective: str, **backbone: Any) -> dict[str, Any]:
    return {"task": {"objective": objective}, "space": {"causal": False, "backbone": backbone}}


def put(service: Running, *names: str) -> None:
    for name in names:
        data, options = UPLOADS[name]
        answer = post(service, data, name, **options)
        assert answer.status_code == 201, answer.text


@pytest.fixture(scope="module")
def uploads(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with one of each kind, which no test removes."""
    folder = tmp_path_factory.mktemp("uploads")
    shutil.copy(migrated, folder / "blockwright.db")
    with running(Settings(data_dir=folder, port=0)) as service:
        put(service, *UPLOADS)
        yield service


OWN = {"type": "file", "name": "own"}
FITS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "text in bytes": ("text", "bytes", {}),
    "text in words": ("text", "words", {}),
    "documents with labels as text": ("docs", "bpe", {}),
    "documents without": ("bare", "characters", {}),
    "ids": ("ids", "given", {}),
    "own tokenizer": ("text", OWN, {}),
    "labels of documents": ("docs", None, encoder("sequence_classification")),
    "as many classes": ("docs", None, encoder("sequence_classification", n_classes=2)),
    "labels of words": ("words", "words", encoder("token_classification", pooling="none")),
    "masked": ("docs", None, encoder("masked_lm")),
    "built in": ("python-docs", "words", {}),
}


@pytest.mark.parametrize("case", FITS)
def test_data_that_fit_are_taken(uploads: Running, case: str) -> None:
    dataset, tokenizer, changes = FITS[case]
    answer = submit(uploads, dataset, tokenizer, **changes)
    assert answer.status_code == 201, answer.text


REFUSED: dict[str, tuple[tuple[str, Any, dict[str, Any]], str, str, str]] = {
    "a tokenizer as dataset": (
        ("own", None, {}), "wrong-dataset", "/task/dataset",
        "dataset 'own' is a tokenizer, nothing to train on; name it in task.tokenizer, as {'type': 'file', 'name': "
        "'own'}",
    ),
    "a dataset as tokenizer": (
        ("text", {"type": "file", "name": "docs"}, {}), "wrong-dataset", "/task/tokenizer/name",
        "tokenizer 'docs' is documents; upload a tokenizer.json with ?format=tokenizer and name that",
    ),
    "unknown tokenizer": (
        ("text", {"type": "file", "name": "none"}, {}), "unknown-tokenizer", "/task/tokenizer/name",
        "unknown tokenizer 'none'; known: own",
    ),
    "another tokenizer": (
        ("text", {**OWN, "fingerprint": "a" * 64}, {}), "unknown-tokenizer", "/task/tokenizer/fingerprint",
        "the request names aaaaaaaaaaaa",
    ),
    "ids in bytes": (
        ("ids", "bytes", {}), "wrong-dataset", "/task/tokenizer",
        "dataset 'ids' is token ids and task.tokenizer is 'bytes'; it must be 'given'",
    ),
    "text as ids": (
        ("text", "given", {}), "wrong-dataset", "/task/tokenizer",
        "dataset 'text' is a text and task.tokenizer is 'given'; 'given' is for uploaded token ids",
    ),
    "a built-in text as ids": (
        ("python-docs", "given", {}), "wrong-dataset", "/task/tokenizer", "dataset 'python-docs' is a text",
    ),
    "no labels": (
        ("bare", None, encoder("sequence_classification")), "wrong-dataset", "/task/objective",
        "dataset 'bare' has no labels and task.objective is 'sequence_classification'; upload it with ?label= naming "
        "their field (of words: ?words= and ?labels=), or take 'causal_lm' or 'masked_lm'",
    ),
    "labels of a built-in text": (
        ("python-docs", None, encoder("sequence_classification")), "wrong-dataset", "/task/objective", "has no labels",
    ),
    "other labels": (
        ("words", None, encoder("sequence_classification")), "wrong-dataset", "/task/objective",
        "dataset 'words' has a label for each word and task.objective is 'sequence_classification'; take "
        "'token_classification'",
    ),
    "another number of classes": (
        ("docs", None, encoder("sequence_classification", n_classes=3)), "wrong-dataset", "/space/backbone/n_classes",
        "dataset 'docs' has 2 labels and space.backbone.n_classes is 3; leave it 0 to have it filled in",
    ),
    "few documents": (
        ("docs", None, {**encoder("sequence_classification"), "method": {"n_steps": 20, "batch_size": 300}}),
        "too-short", "/task/dataset", "dataset 'docs': the weights part has ",
    ),
    "few ids": (
        ("ids", "given", {"method": {"n_steps": 20, "batch_size": 300}}), "too-short", "/task/dataset",
        "dataset 'ids': 5000 tokens; batches of 300 windows of 16 need 26673",
    ),
    "unknown": (
        ("none", None, {}), "unknown-dataset", "/task/dataset", "unknown dataset 'none'; known: bare, ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_data_that_do_not_fit_are_refused_with_what_would(uploads: Running, case: str) -> None:
    (dataset, tokenizer, changes), code, pointer, detail = REFUSED[case]
    before = uploads.http.get(SEARCHES).json()["items"]
    answer = submit(uploads, dataset, tokenizer, **changes)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert detail in answer.json()["detail"]
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert uploads.http.get(SEARCHES).json()["items"] == before


def test_documents_whose_labels_were_never_counted_are_to_be_uploaded_again(service: Running) -> None:
    put(service, "docs")
    with service.engine.begin() as connection:
        connection.execute(update(models.datasets).values(card=None))
    answer = submit(service, "docs", **encoder("sequence_classification"))
    assert answer.json()["detail"] == (
        "dataset 'docs' was uploaded before labels were counted; upload the same file under this name once more"
    )


def test_a_built_in_text_that_was_read_is_checked_by_its_card(service: Running) -> None:
    with transaction(service.engine) as connection:
        card = Card.of_text("a" * 64, 500)
        datasets.register(
            connection, name="python-docs", fingerprint=card.fingerprint, n_bytes=500, card=card.to_json()
        )
    assert submit(service, "python-docs").json()["code"] == "too-short"
    assert submit(service, "python-docs", "given").json()["code"] == "wrong-dataset"


def test_a_synthetic_task_needs_no_dataset(service: Running) -> None:
    task = {
        "dataset": "token-wise", "objective": "token_classification", "train_length": 16, "serve": TINY["task"]["serve"]
    }  # fmt: skip
    space = {**TINY["space"], "backbone": {"pooling": "none"}}
    answer = service.http.post(SEARCHES, json={**TINY, "space": space, "task": task})
    assert answer.status_code == 201, answer.text
    assert answer.json()["request"]["task"]["dataset_fingerprint"] is None
    for name in ("token-wise", "listops"):
        refused = post(service, JSONL, name, format="jsonl")
        assert (refused.status_code, refused.json()["code"]) == (409, "name-taken")


def test_a_tokenizer_is_pinned_and_stays_while_a_search_needs_it(service: Running) -> None:
    put(service, "text", "own")
    search = submit(service, "text", OWN).json()
    own = service.http.get(f"{ROOT}/own").json()
    assert search["request"]["task"]["tokenizer"]["fingerprint"] == own["fingerprint"]
    assert (own["n_uses"], own["in_use_by"]) == (1, [search["id"]])
    answer = service.http.delete(f"{ROOT}/own")
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset-in-use")
    service.http.post(f"{SEARCHES}/{search['id']}/cancel")
    assert service.http.delete(f"{ROOT}/own").status_code == 204
    resume = f"{SEARCHES}/{search['id']}/resume"
    refused = service.http.post(resume)
    assert (refused.status_code, refused.json()["code"]) == (409, "dataset-removed")
    assert refused.json()["detail"].startswith(f"dataset 'own' was removed before search {search['id']} had read it")
    kept = service.data_dir / "searches" / search["id"] / "data" / "card.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    assert service.http.post(resume).json()["state"] == "queued"
