"""A dataset as token ids, in a folder that all trials on a node share as memory maps.

    tokens.bin       ids of the parts, one after another, little-endian uint8, uint16 or uint32
    starts.bin       of documents: where in tokens.bin each begins, and where the last ends, uint64
    labels.bin       where there are labels: int32, one for each document, or for each token (most are IGNORE)
    tokenizer.json   of the library `tokenizers`; none of bytes and given ids
    card.json        what it was made of, sizes, and the sha256 of the other files

A folder is written once, under another name, and then renamed: what is there is whole.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nas.config.task import DataSizes, Task
from nas.data.examples import Examples
from nas.data.parts import Part, Parts, Tokens, token_parts
from nas.data.pieces import BLOCK
from nas.errors import DataError
from nas.ingest.card import PARTS
from nas.text import TooShort

FORMAT = 2  # grows when the same data and tokenizer give other files
CARD, TOKENS, STARTS, LABELS, TOKENIZER = "card.json", "tokens.bin", "starts.bin", "labels.bin", "tokenizer.json"

_LABELLED = {
    None: ("no labels", "'causal_lm' or 'masked_lm'"),
    "sequence": ("labels of documents", "'sequence_classification'"),
    "token": ("labels of words", "'token_classification'"),
}


@dataclass(frozen=True)
class Encoded:
    """The encoded data, opened.

    Args:
        folder: where its files are.
        key: of the dataset, the tokenizer and this format.
        fingerprint: of the dataset.
        corpus: standard corpus whose conventions hold, or None.
        tokenizer: as in a request.
        sizes: what a network must know.
        eos_id: what ends a document; None of token ids that were given without.
        dtype: of the ids: "uint8", "uint16" or "uint32".
        ends: where each part ends in tokens.bin, by PARTS.
        document_ends: the same in documents; None of what is one stream.
        labels: names of the classes, by number; empty without.
        label_kind: whether each document has a label, or each word.
        files: name -> its bytes and their sha256.
    """

    folder: Path
    key: str
    fingerprint: str
    corpus: str | None
    tokenizer: dict[str, Any]
    sizes: DataSizes
    eos_id: int | None
    dtype: str
    ends: tuple[int, ...]
    document_ends: tuple[int, ...] | None
    labels: tuple[str, ...]
    label_kind: Literal["sequence", "token"] | None
    files: dict[str, tuple[int, str]]

    def parts(self, task: Task) -> Parts:
        """The four parts: streams of tokens for language modelling, labelled documents for classification.

        Raises:
            DataError: the objective needs other labels than there are.
        """
        ids = self._array(TOKENS, self.dtype)
        if not task.classifies:
            return token_parts(ids, *self.ends[:3])
        wanted = "token" if task.objective == "token_classification" else "sequence"
        if self.label_kind != wanted:
            has, right = _LABELLED[self.label_kind]
            raise DataError(f"task.objective is {task.objective!r} but the dataset has {has}; it must be {right}")
        assert self.document_ends is not None
        assert self.eos_id is not None
        starts, labels = self._array(STARTS, "<u8"), self._array(LABELS, "<i4")
        alpha, validation, test, end = self.document_ends
        bounds = ((0, alpha), (alpha, validation), (validation, test), (test, end), (0, validation))
        return Parts(
            *(
                Examples(ids, starts[first : last + 1], labels, first, self.eos_id, wanted == "token")
                for first, last in bounds
            )
        )

    def check(self, task: Task, batch_size: int) -> None:
        """Refuse what is too short, or has not the labels that are asked for.

        The weights and the alpha part must each hold one batch without overlap, the other two parts two windows or
        documents each, since one tells nothing of the spread.

        Args:
            task: with the length of a window.
            batch_size: windows or documents of a batch.

        Raises:
            DataError: one of the parts holds less.
        """
        parts = self.parts(task)
        each = (parts.weights, parts.alpha, parts.validation, parts.test)
        for name, part, n in zip(PARTS, each, (batch_size, batch_size, 2, 2), strict=True):
            _check_part(name, part, n, task.train_length)

    def check_whole(self) -> None:
        """Read all files.

        Raises:
            DataError: one is not what was written.
        """
        for name, (_, digest) in self.files.items():
            if sha256(self.folder / name) != digest:
                raise _damaged(self.folder, f"{name} has changed")

    def _array(self, name: str, dtype: DTypeLike) -> NDArray[Any]:
        """A file as a memory map, which is read where it is used."""
        if not self.files[name][0]:
            return np.empty(0, dtype)
        with (self.folder / name).open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        # Windows are at random places: reading on behind each took 3 to 8 times as long from a file of 1 GB.
        mapped.madvise(mmap.MADV_RANDOM)
        return np.frombuffer(mapped, dtype)

    def card(self) -> dict[str, Any]:
        """What card.json holds; `vocab_size` and `n_tokens` are for who lists encodings."""
        starts = (0, *self.ends[:3])
        return {
            "format": FORMAT,
            "key": self.key,
            "fingerprint": self.fingerprint,
            "corpus": self.corpus,
            "tokenizer": self.tokenizer,
            "vocab_size": self.sizes.vocab_size,
            "n_tokens": {name: end - start for name, start, end in zip(PARTS, starts, self.ends, strict=True)},
            "sizes": self.sizes.model_dump(mode="json"),
            "eos_id": self.eos_id,
            "dtype": self.dtype,
            "ends": self.ends,
            "document_ends": self.document_ends,
            "labels": self.labels,
            "label_kind": self.label_kind,
            "files": self.files,
        }


def open_encoded(folder: Path) -> Encoded:
    """What a folder holds; of its files only the sizes are looked at, so that the largest opens at once.

    Raises:
        DataError: there is none, it is damaged, or another version wrote it.
    """
    try:
        card = json.loads((folder / CARD).read_bytes())
        version = card["format"]
        found = Encoded(
            folder=folder,
            key=card["key"],
            fingerprint=card["fingerprint"],
            corpus=card["corpus"],
            tokenizer=card["tokenizer"],
            sizes=DataSizes(**card["sizes"]),
            eos_id=card["eos_id"],
            dtype=card["dtype"],
            ends=tuple(card["ends"]),
            document_ends=card["document_ends"] and tuple(card["document_ends"]),
            labels=tuple(card["labels"]),
            label_kind=card["label_kind"],
            files={name: (n_bytes, digest) for name, (n_bytes, digest) in card["files"].items()},
        )
    except FileNotFoundError:
        raise _damaged(folder, f"{CARD} is missing") from None
    except (ValueError, KeyError, TypeError):
        raise _damaged(folder, f"{CARD} cannot be read") from None
    if version != FORMAT:
        raise _damaged(folder, f"{CARD} has format {version!r}, not {FORMAT}")
    for name, (n_bytes, _) in found.files.items():
        try:
            size = (folder / name).stat().st_size
        except FileNotFoundError:
            raise _damaged(folder, f"{name} is missing") from None
        if size != n_bytes:
            raise _damaged(folder, f"{name} has {size:,} bytes, not {n_bytes:,}")
    return found


def _damaged(folder: Path, what: str) -> DataError:
    return DataError(f"encoded data are damaged: {what}; remove {folder} to have them made again")


def sha256(path: Path) -> str:
    """Of a file of any size."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _check_part(name: str, part: Part, n: int, length: int) -> None:
    if isinstance(part, Examples):
        if len(part) < n:
            raise TooShort(f"the {name} part has {len(part):,} documents; at least {n:,} are needed there")
        return
    assert isinstance(part, Tokens)
    needed = n * length + 1
    if len(part.ids) < needed:
        raise TooShort(
            f"the {name} part has {len(part.ids):,} tokens; {n:,} windows of {length:,} tokens need at least {needed:,}"
        )
