"""What a search needs of its data when it is queued: that they are there, are the ones meant, fit the request, and are
long enough."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from api import regular
from api.cards import card_of, kind_of
from api.errors import ApiError
from db import datasets
from db.errors import NotFound
from db.searches import Search
from nas import catalog
from nas.config.request import SearchRequest
from nas.config.task import Task
from nas.ingest.card import PARTS, Card, Kind
from nas.text import TooShort, check_length, needed_bytes

_LABELS = {"sequence_classification": "sequence", "token_classification": "token"}
_LABELLED = {None: "no labels", "sequence": "a label for each document", "token": "a label for each word"}
_REMEDY = {
    None: "upload it with ?label= naming their field (of words: ?words= and ?labels=), or take 'causal_lm' or "
    "'masked_lm'",
    "sequence": "take 'sequence_classification'",
    "token": "take 'token_classification'",
}


def pinned(connection: Connection, body: SearchRequest) -> SearchRequest:
    """The request with the fingerprints of the uploads that it names, which are kept until the search has ended.

    A built-in text gets its fingerprint when it is read, and its length is known here once it has been read.

    Raises:
        ApiError: unknown-dataset, unknown-tokenizer; wrong-dataset where they do not fit the request; too-short for the
            longest windows and largest batches that it asks for.
    """
    task = body.task
    if task.synthetic is not None:
        return body
    update: dict[str, Any] = {}
    if task.tokenizer.name is not None:
        own = _tokenizer(connection, task)
        update["tokenizer"] = task.tokenizer.model_copy(update={"fingerprint": own.fingerprint})
    try:
        row = datasets.for_use(connection, task.dataset, task.dataset_fingerprint)
    except NotFound:
        if task.dataset not in catalog.DATASETS:
            raise _unknown(connection, task) from None
        _check_fit(body, "text", None)
    else:
        card = card_of(row)
        _check_fit(body, kind_of(row), card)
        _check_length(body, row, card)
        if row.path is not None:
            update["dataset_fingerprint"] = row.fingerprint
    return body.model_copy(update={"task": task.model_copy(update=update)}) if update else body


def _tokenizer(connection: Connection, task: Task) -> datasets.Dataset:
    name, wanted = task.tokenizer.name or "", task.tokenizer.fingerprint
    pointer = "/task/tokenizer/name"
    try:
        row = datasets.for_use(connection, name, wanted)
    except NotFound:
        known = {each.name: each for each in datasets.list(connection) if kind_of(each) == "tokenizer"}
        if name in known:
            found = known[name].fingerprint[:12]
            detail = f"tokenizer {name!r} has fingerprint {found}; the request names {str(wanted)[:12]}"
            raise ApiError(422, "unknown-tokenizer", detail, pointer="/task/tokenizer/fingerprint") from None
        names = ", ".join(sorted(known)) or "none; upload a tokenizer.json"
        raise ApiError(
            422, "unknown-tokenizer", f"unknown tokenizer {name!r}; known: {names}", pointer=pointer
        ) from None
    if (kind := kind_of(row)) != "tokenizer":
        detail = f"tokenizer {name!r} is {_a(kind)}; upload a tokenizer.json with ?format=tokenizer and name that"
        raise ApiError(422, "wrong-dataset", detail, pointer=pointer)
    return row


def _a(kind: Kind) -> str:
    return {"text": "a text", "documents": "documents", "tokens": "token ids", "tokenizer": "a tokenizer"}[kind]


def _check_fit(body: SearchRequest, kind: Kind, card: Card | None) -> None:
    """Raises: ApiError: wrong-dataset: of this kind, or with such labels, it is nothing for the request."""
    task = body.task
    given = task.tokenizer.type == "given"
    if kind == "tokenizer":
        right = f"{{'type': 'file', 'name': {task.dataset!r}}}"
        raise _wrong(task, "is a tokenizer, nothing to train on", f"name it in task.tokenizer, as {right}")
    if given != (kind == "tokens"):
        right = "it must be 'given'" if kind == "tokens" else "'given' is for uploaded token ids"
        raise _wrong(task, f"is {_a(kind)} and task.tokenizer is {task.tokenizer.type!r}", right, "/task/tokenizer")
    if not task.classifies:
        return
    if kind == "documents" and card is None:
        raise _wrong(task, "was uploaded before labels were counted", "upload the same file under this name once more")
    found = None if card is None else card.label_kind
    if found != _LABELS[task.objective]:
        told = f"has {_LABELLED[found]} and task.objective is {task.objective!r}"
        raise _wrong(task, told, _REMEDY[found], "/task/objective")
    assert card is not None
    n_classes, named = len(card.labels or {}), body.space.backbone.n_classes
    if named not in (0, n_classes):
        told = f"has {n_classes} labels and space.backbone.n_classes is {named}"
        raise _wrong(task, told, "leave it 0 to have it filled in", "/space/backbone/n_classes")


def _wrong(task: Task, told: str, remedy: str, pointer: str = "/task/dataset") -> ApiError:
    return ApiError(422, "wrong-dataset", f"dataset {task.dataset!r} {told}; {remedy}", pointer=pointer)


def _check_length(body: SearchRequest, row: datasets.Dataset, card: Card | None) -> None:
    """Raises: ApiError: too-short, as far as that can be told before it is encoded: a token takes a byte at least."""
    length, batch_size = body.task.train_length, _largest_batch(body)
    try:
        if card is not None and body.task.classifies:
            _check_documents(card, batch_size)
        elif card is not None and card.kind == "tokens":
            needed = needed_bytes(length, batch_size)
            if card.n_rows < needed:
                raise TooShort(f"{card.n_rows} tokens; batches of {batch_size} windows of {length} need {needed}")
        elif card is None or card.settings.ends is None:  # given parts may be cut anywhere
            check_length(row.n_bytes, length, batch_size)
    except TooShort as error:
        detail = f"dataset {body.task.dataset!r}: {error}"
        raise ApiError(422, error.code, detail, pointer="/task/dataset") from None


def _check_documents(card: Card, batch_size: int) -> None:
    """Raises: TooShort: a part has fewer documents than one batch, or than the two that tell of a spread."""
    assert card.part_rows is not None
    for part, needed in zip(PARTS, (batch_size, batch_size, 2, 2), strict=True):
        if card.part_rows[part] < needed:
            raise TooShort(
                f"the {part} part has {card.part_rows[part]} of its {card.n_rows} documents; it needs {needed}"
            )


def _largest_batch(body: SearchRequest) -> int:
    varied = [each for each in body.ranges if each.pointer == "/method/batch_size"]
    return max([body.method.batch_size, *(body.method_with({each.pointer: each.high}).batch_size for each in varied)])


def _unknown(connection: Connection, task: Task) -> ApiError:
    name, wanted = task.dataset, task.dataset_fingerprint
    known = {each.name: each for each in datasets.list(connection)}
    if name in known:
        detail = (
            f"dataset {name!r} has fingerprint {known[name].fingerprint[:12]}; the request names {str(wanted)[:12]}"
        )
        return ApiError(422, "unknown-dataset", detail, pointer="/task/dataset_fingerprint")
    uploaded = {each.name for each in known.values() if kind_of(each) != "tokenizer"}
    names = ", ".join(sorted({*catalog.DATASETS, *catalog.TASKS, *uploaded}))
    return ApiError(422, "unknown-dataset", f"unknown dataset {name!r}; known: {names}", pointer="/task/dataset")


def check_resumable(connection: Connection, search: Search, data_dir: Path) -> None:
    """Raises: ApiError: dataset-removed: data are gone, and the search was stopped before it kept its own."""
    for name, fingerprint in _uploads(search):
        try:
            datasets.for_use(connection, name, fingerprint)
        except NotFound:
            if _has_read(data_dir / "searches" / search.id):
                return
            detail = (
                f"dataset {name!r} was removed before search {search.id} had read it; upload the same text "
                "again under this name, then resume"
            )
            raise ApiError(409, "dataset-removed", detail) from None


def _uploads(search: Search) -> Sequence[tuple[str, str | None]]:
    """Name and fingerprint of each upload that it reads."""
    task = search.request["task"]
    named = [(search.dataset, task.get("dataset_fingerprint"))]
    tokenizer = task.get("tokenizer") or {}  # older requests have none
    if tokenizer.get("name"):
        named.append((tokenizer["name"], tokenizer.get("fingerprint")))
    return [each for each in named if each[0] not in catalog.DATASETS and each[0] not in catalog.TASKS]


def _has_read(folder: Path) -> bool:
    """Whether the search has kept its data: encoded, or as a text in older versions."""
    return any(regular.first_bytes(folder / name, 1) for name in ("data/card.json", "dataset.txt"))
