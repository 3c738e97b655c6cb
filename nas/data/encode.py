"""Encode a dataset once, into a cache that later searches and all trials find by what it was made of.

Nothing is ever held whole: texts go through in pieces, documents in batches. Who comes while another process encodes
the same waits for it and takes what it made.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas.config.task import DataSizes, Tokenizer
from nas.data.documents import N_TRAINING, TEST, in_batches, read_documents
from nas.data.encoded import CARD, FORMAT, LABELS, STARTS, TOKENIZER, TOKENS, Encoded, open_encoded, sha256
from nas.data.pieces import BLOCK, batches, file_pieces, text_ends
from nas.data.tokenizer import Bytes, Encoder, from_file, learn, with_fingerprint
from nas.data.vocabulary import Training
from nas.errors import DataError
from nas.ingest.card import PARTS, Card
from nas.text import ENDS_PERCENT

__all__ = ["Encoded", "encode", "open_encoded"]

_NUMBERS = range(len(PARTS))


def encode(path: Path, card: Card, tokenizer: Tokenizer, cache: Path, *, tokenizer_file: Path | None = None) -> Encoded:
    """Find the encoded data in the cache, or write them there.

    Args:
        path: canonical file of the dataset.
        card: what is known of it.
        tokenizer: how text becomes token ids.
        cache: folder of all encoded data; made if need be.
        tokenizer_file: of a tokenizer of type "file".

    Raises:
        DataError: the tokenizer does not fit the dataset, one of the files is not the one that was registered, or what
            the cache holds is damaged.
    """
    _check_kind(card, tokenizer)
    if tokenizer.type == "file":
        assert tokenizer_file is not None
        tokenizer = with_fingerprint(tokenizer, tokenizer_file)
    key = _key(card, tokenizer)
    folder = cache / key
    if folder.exists():
        return open_encoded(folder)
    cache.mkdir(parents=True, exist_ok=True)
    with _lock(cache / f".{key}.lock"):
        if not folder.exists():
            _check_content(path, card)
            part = cache / f".{key}"
            shutil.rmtree(part, ignore_errors=True)  # of a process that was ended: we have the lock
            part.mkdir()
            try:
                _write(path, card, tokenizer, tokenizer_file, part, key)
                part.rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return open_encoded(folder)


def _check_kind(card: Card, tokenizer: Tokenizer) -> None:
    if card.kind == "tokenizer":
        raise DataError("the dataset is a tokenizer; name it in task.tokenizer, and data in task.dataset")
    if card.kind == "tokens" and tokenizer.type != "given":
        raise DataError(f"task.tokenizer is {tokenizer.type!r} but the dataset is token ids; it must be 'given'")
    if card.kind != "tokens" and tokenizer.type == "given":
        raise DataError(
            f"task.tokenizer is 'given' but the dataset is {card.kind}; write bytes, characters, words, bpe or file"
        )


def _key(card: Card, tokenizer: Tokenizer) -> str:
    made_of = {"format": FORMAT, "fingerprint": card.fingerprint, "tokenizer": tokenizer.model_dump(mode="json")}
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def _check_content(path: Path, card: Card) -> None:
    """Raises: DataError: the file is not what its fingerprint says, so nothing may be kept under that."""
    digest = card.settings.digest()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    if digest.hexdigest() != card.fingerprint:
        raise DataError(
            f"the dataset's file has fingerprint {digest.hexdigest()[:12]}, not {card.fingerprint[:12]} as when it was "
            f"registered; register it again: {path}"
        )


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One process at a time; the kernel gives the lock back however that ends."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class _Made:
    """What has been written, as in `Encoded`, and the UTF-8 bytes of the test part."""

    vocab_size: int
    eos_id: int | None
    dtype: str
    ends: tuple[int, ...]
    test_bytes: int
    document_ends: tuple[int, ...] | None = None


def _write(path: Path, card: Card, tokenizer: Tokenizer, tokenizer_file: Path | None, folder: Path, key: str) -> None:
    """All files of a folder, the card last."""
    if card.kind == "documents":
        made = _write_documents(path, card, tokenizer, tokenizer_file, folder)
    elif tokenizer.type in ("bytes", "given"):
        made = _link(path, card, folder)
    else:
        made = _write_text(path, card, tokenizer, tokenizer_file, folder)
    for each in folder.iterdir():
        if each.stat().st_nlink == 1:  # the canonical file's own mode is not ours to change
            each.chmod(0o444)
    n_test = made.ends[3] - made.ends[2]
    encoded = Encoded(
        folder=folder,
        key=key,
        fingerprint=card.fingerprint,
        corpus=card.settings.corpus,
        tokenizer=tokenizer.model_dump(mode="json"),
        sizes=DataSizes(
            vocab_size=made.vocab_size,
            n_classes=len(card.labels or ()),
            tokens_per_byte=n_test / made.test_bytes if n_test and made.test_bytes else 1.0,
        ),
        eos_id=made.eos_id,
        dtype=made.dtype,
        ends=made.ends,
        document_ends=made.document_ends,
        labels=tuple(card.labels or ()),
        label_kind=card.label_kind,
        files={each.name: (each.stat().st_size, sha256(each)) for each in sorted(folder.iterdir())},
    )
    (folder / CARD).write_text(json.dumps(encoded.card(), indent=1) + "\n")
    (folder / CARD).chmod(0o444)


def _link(path: Path, card: Card, folder: Path) -> _Made:
    """The canonical file is what is read: bytes of a text, or ids that were given."""
    try:
        os.link(path, folder / TOKENS)
    except OSError:  # another file system, or one without links
        shutil.copyfile(path, folder / TOKENS)
    settings = card.settings
    if card.kind == "text":
        _, *ends = text_ends(path, settings.ends, whole=False)
        return _Made(Bytes.vocab_size, Bytes.eos_id, "uint8", tuple(ends), test_bytes=ends[3] - ends[2])
    assert settings.vocab_size is not None
    dtype = np.dtype(settings.dtype)
    n_tokens = path.stat().st_size // dtype.itemsize
    ends = [*(n_tokens * percent // 100 for percent in ENDS_PERCENT), n_tokens]
    return _Made(settings.vocab_size, settings.eos_id, dtype.name, tuple(ends), test_bytes=0)  # nobody knows of what


def _write_text(path: Path, card: Card, tokenizer: Tokenizer, tokenizer_file: Path | None, folder: Path) -> _Made:
    cuts = text_ends(path, card.settings.ends, whole=True)
    stretches = list(pairwise(cuts))
    training = Training((file_pieces(path, *each) for each in stretches[:2]), documents=False)
    encoder = _encoder(tokenizer, tokenizer_file, training, cuts[2], folder)
    ends = []
    with (folder / TOKENS).open("wb") as file:
        for stretch in stretches:
            for batch in batches(file_pieces(path, *stretch)):
                ids, _ = encoder.encode(batch)
                file.write(ids.data)
            ends.append(file.tell() // np.dtype(encoder.dtype).itemsize)
    _keep(encoder, folder)
    return _Made(
        encoder.vocab_size, encoder.eos_id, np.dtype(encoder.dtype).name, tuple(ends), test_bytes=cuts[4] - cuts[3]
    )


def _write_documents(path: Path, card: Card, tokenizer: Tokenizer, tokenizer_file: Path | None, folder: Path) -> _Made:
    """Each part goes to files of its own, since documents come mixed; they are put together at the end."""
    texts = (text for document in read_documents(path, card) if document.part < N_TRAINING for text in document.texts)
    encoder = _encoder(tokenizer, tokenizer_file, Training(texts, documents=True), card.n_bytes, folder)
    n_tokens, n_documents = [0] * len(PARTS), [0] * len(PARTS)
    test_bytes = 0
    names = (TOKENS, STARTS, LABELS) if card.label_kind else (TOKENS, STARTS)
    with ExitStack() as stack:
        files = [[stack.enter_context((folder / f"{name}.{part}").open("wb")) for name in names] for part in _NUMBERS]
        for part, batch in in_batches(read_documents(path, card), BLOCK):
            arrays: tuple[NDArray[Any], ...] = batch.encode(encoder, of_words=card.label_kind == "token")
            for file, array in zip(files[part], arrays, strict=False):  # labels come last, where there are any
                file.write(array.data)
            n_tokens[part] += len(arrays[0])
            n_documents[part] += len(batch.documents)
            test_bytes += sum(each.n_bytes for each in batch.documents) if part == TEST else 0
    for name in names:
        _join(folder, name)
    _sizes_to_starts(folder / STARTS)
    _keep(encoder, folder)
    return _Made(
        encoder.vocab_size,
        encoder.eos_id,
        np.dtype(encoder.dtype).name,
        tuple(accumulate(n_tokens)),
        test_bytes,
        tuple(accumulate(n_documents)),
    )


def _encoder(
    tokenizer: Tokenizer, tokenizer_file: Path | None, training: Training, n_bytes: int, scratch: Path
) -> Encoder:
    if tokenizer.type == "bytes":
        return Bytes()
    if tokenizer_file is not None:
        return from_file(tokenizer_file)
    return learn(tokenizer, training, n_bytes=n_bytes, scratch=scratch)


def _keep(encoder: Encoder, folder: Path) -> None:
    content = encoder.to_json()
    if content is not None:
        (folder / TOKENIZER).write_bytes(content.encode())


def _join(folder: Path, name: str) -> None:
    """The files of the parts, one after another."""
    with (folder / name).open("wb") as file:
        for part in _NUMBERS:
            path = folder / f"{name}.{part}"
            with path.open("rb") as one:
                shutil.copyfileobj(one, file, BLOCK)
            path.unlink()


def _sizes_to_starts(path: Path) -> None:
    """Tokens of each document become where it begins, and where the last one ends."""
    sizes = path.with_suffix(".sizes")
    path.rename(sizes)
    start = 0
    with sizes.open("rb") as read, path.open("wb") as written:
        written.write(np.uint64(0).tobytes())
        while block := read.read(BLOCK):
            starts = np.cumsum(np.frombuffer(block, np.int64)) + start
            written.write(starts.astype(np.uint64).data)
            start = int(starts[-1])
    sizes.unlink()
