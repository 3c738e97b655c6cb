"""Pins a request to its data: by their fingerprint, with the sizes that a network must have. No database, no files."""

from __future__ import annotations

from nas.config.request import SearchRequest
from nas.config.task import DataSizes, Task
from nas.data.synthetic.generated import synthetic_fingerprint
from nas.errors import DataError


def pin_synthetic(request: SearchRequest) -> SearchRequest:
    """The request of a synthetic task, complete.

    Raises:
        DataError: it names another version of the task, or other options.
    """
    options, found = request.task.synthetic_options(), synthetic_fingerprint(request.task)
    check_fingerprint(request.task, found)
    return request.with_data(found, DataSizes(vocab_size=options.vocab_size, n_classes=options.n_classes))


def check_fingerprint(task: Task, found: str) -> None:
    """Raises: DataError: the task names other data than those found."""
    wanted = task.dataset_fingerprint
    if wanted is not None and found != wanted:
        raise DataError(f"dataset {task.dataset!r} has fingerprint {found[:12]}; the request names {wanted[:12]}")
