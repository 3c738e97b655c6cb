"""What a search needs of its text when it is queued: that it is there, is the one meant, and is long enough."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from api import regular
from api.errors import ApiError
from db import datasets
from db.errors import NotFound
from db.searches import Search
from nas import catalog
from nas.config import SearchRequest
from nas.text import TooShort, check_length


def pinned(connection: Connection, body: SearchRequest) -> SearchRequest:
    """The request with the fingerprint of the uploaded text that it names, which is kept until the search has ended.

    A built-in text gets its fingerprint when it is read, and its length is known here once it has been read.

    Raises:
        ApiError: unknown-dataset, or too-short for the longest windows and largest batches that the request asks for.
    """
    task = body.task
    try:
        row = datasets.for_use(connection, task.dataset, task.dataset_fingerprint)
    except NotFound:
        if task.dataset in catalog.DATASETS:
            return body
        raise _unknown(connection, body) from None
    try:
        check_length(row.n_bytes, task.train_length, _largest_batch(body))
    except TooShort as error:
        raise ApiError(422, error.code, f"dataset {task.dataset!r}: {error}", pointer="/task/dataset") from None
    if row.path is None:
        return body
    return body.model_copy(update={"task": task.model_copy(update={"dataset_fingerprint": row.fingerprint})})


def _largest_batch(body: SearchRequest) -> int:
    varied = [each for each in body.ranges if each.pointer == "/method/batch_size"]
    return max([body.method.batch_size, *(body.method_with({each.pointer: each.high}).batch_size for each in varied)])


def _unknown(connection: Connection, body: SearchRequest) -> ApiError:
    name, wanted = body.task.dataset, body.task.dataset_fingerprint
    known = {each.name: each for each in datasets.list(connection)}
    if name in known:
        detail = (
            f"dataset {name!r} has fingerprint {known[name].fingerprint[:12]}; the request names {str(wanted)[:12]}"
        )
        return ApiError(422, "unknown-dataset", detail, pointer="/task/dataset_fingerprint")
    names = ", ".join(sorted({*catalog.DATASETS, *known}))
    return ApiError(422, "unknown-dataset", f"unknown dataset {name!r}; known: {names}", pointer="/task/dataset")


def check_resumable(connection: Connection, search: Search, data_dir: Path) -> None:
    """Raises: ApiError: dataset-removed: the text is gone, and the search was stopped before it took its own copy."""
    if search.dataset in catalog.DATASETS:
        return
    try:
        datasets.for_use(connection, search.dataset, search.request["task"]["dataset_fingerprint"])
    except NotFound:
        if regular.first_bytes(data_dir / "searches" / search.id / "dataset.txt", 1):
            return
        detail = (
            f"dataset {search.dataset!r} was removed before search {search.id} had read it; upload the same text "
            "again under this name, then resume"
        )
        raise ApiError(409, "dataset-removed", detail) from None
