"""What a search learns from: found once, encoded once, and kept with the search until it is deleted.

The encoded data are shared by all trials on a node as memory maps. A search keeps hard links of its own, so that it
goes on, and can be taken up again, whatever becomes of the dataset's name and of the cache.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from nas.config.request import SearchRequest
from nas.config.task import Task, Tokenizer
from nas.data.encode import encode
from nas.data.encoded import TOKENIZER, Encoded, open_encoded
from nas.data.parts import Parts
from nas.data.pin import check_fingerprint, pin_synthetic
from nas.data.synthetic.generated import synthetic_parts
from nas.errors import DataError
from workers.store import Store

FOLDER = "data"  # of the search's own folder


@dataclass(frozen=True)
class Prepared:
    """The data of a search.

    Args:
        request: with their fingerprint and sizes.
        folder: of the encoded data; None of a synthetic task, whose examples are drawn.
        corpus: standard corpus whose conventions hold, if any.
        tokenizer: file of a learnt or uploaded one.
        eos_id: what ends a document, if anything.
        labels: names of the classes, by number; empty without.
    """

    request: SearchRequest
    folder: Path | None
    corpus: str | None = None
    tokenizer: Path | None = None
    eos_id: int | None = None
    labels: tuple[str, ...] = ()


def prepare(request: SearchRequest, store: Store) -> Prepared:
    """Find the data that the request names and encode them, or take what an earlier attempt has kept.

    Raises:
        InvalidInput: no such dataset or tokenizer, or the request does not fit it.
        DataError: they cannot be read, are not the ones that the request names, or are too short.
    """
    task = request.task
    if task.synthetic is not None:
        return Prepared(pin_synthetic(request), None)
    encoded = _kept(task, store) or _keep(_encode(task, store), store)
    task = task.model_copy(update={"tokenizer": Tokenizer.model_validate(encoded.tokenizer)})
    pinned = request.model_copy(update={"task": task}).with_data(encoded.fingerprint, encoded.sizes)
    encoded.check(pinned.task, request.method.batch_size)
    learnt = encoded.folder / TOKENIZER
    return Prepared(
        pinned,
        encoded.folder,
        encoded.corpus,
        tokenizer=learnt if learnt.exists() else None,
        eos_id=encoded.eos_id,
        labels=encoded.labels,
    )


def open_parts(request: SearchRequest, folder: str | None) -> Parts:
    """The parts, in a trial.

    Args:
        request: prepared, with the trial's own batch size, which a sample may have raised.
        folder: of the encoded data; None of a synthetic task.

    Raises:
        DataError: the folder holds other data than the search began with, or too little for the batch.
    """
    task = request.task
    if folder is None:
        return synthetic_parts(task)
    encoded = open_encoded(Path(folder))
    if encoded.fingerprint != task.dataset_fingerprint:
        raise DataError(f"the data of dataset {task.dataset!r} have changed since the search began")
    encoded.check(task, request.method.batch_size)
    return encoded.parts(task)


def _kept(task: Task, store: Store) -> Encoded | None:
    """What an earlier attempt has kept, if it is whole and what is wanted."""
    folder = store.folder / FOLDER
    if task.dataset_fingerprint is None or not folder.exists():
        return None
    try:
        encoded = open_encoded(folder)
        encoded.check_whole()
    except DataError:
        return None
    chosen = Tokenizer.model_validate(encoded.tokenizer)
    if task.tokenizer.fingerprint is None:
        chosen = chosen.model_copy(update={"fingerprint": None})
    return encoded if (encoded.fingerprint, chosen) == (task.dataset_fingerprint, task.tokenizer) else None


def _encode(task: Task, store: Store) -> Encoded:
    dataset = store.dataset(task.dataset, task.dataset_fingerprint)
    check_fingerprint(task, dataset.card.fingerprint)
    chosen, file = task.tokenizer, None
    if chosen.name is not None:
        own = store.dataset(chosen.name, chosen.fingerprint)
        chosen, file = chosen.model_copy(update={"fingerprint": own.card.fingerprint}), own.path
    encoded = encode(dataset.path, dataset.card, chosen, store.cache, tokenizer_file=file)
    encoded.check_whole()
    return encoded


def _keep(encoded: Encoded, store: Store) -> Encoded:
    """The same data in the search's own folder: as hard links where the file system has them."""
    folder, part = store.folder / FOLDER, store.folder / f".{FOLDER}.{os.getpid()}"
    for each in (folder, part):
        shutil.rmtree(each, ignore_errors=True)
    shutil.copytree(encoded.folder, part, copy_function=_link)
    part.rename(folder)
    return open_encoded(folder)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
