"""Documents one by one: what each says, in which part it stands, and its tokens and labels.

A document is one or two texts, or words; its tokens are those of its texts, with the end of a document behind each.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas.data.parts import TokenIds
from nas.data.pieces import pieces
from nas.data.tokenizer import Encoder
from nas.heads import IGNORE
from nas.ingest.card import GIVEN_PARTS, Card, content, document_digest, later_parts, part_of

N_TRAINING, TEST = 2, 3  # parts that are learnt from, and the one that figures are of, in PARTS


@dataclass(frozen=True)
class Document:
    """A document of the canonical file.

    Args:
        part: its place in PARTS.
        texts: the pieces of its text, and of its pair; or its words, each but the first behind a space.
        labels: the class of each word, or the one of the document; empty without.
    """

    part: int
    texts: tuple[Sequence[str], ...]
    labels: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        """UTF-8 bytes of its texts; an end is one byte, as it is where bytes are tokens."""
        return sum(len(piece.encode()) for text in self.texts for piece in text) + len(self.texts)


def read_documents(path: Path, card: Card) -> Iterator[Document]:
    """All that are in a part: those that also stand in a later given one are left out."""
    assert card.deal is not None
    held_out = _held_out(path) if card.n_left_out else {}
    numbers = {label: number for number, label in enumerate(card.labels or ())}
    for row in _rows(path):
        digest = document_digest(content(row))
        given = row.get("part")
        if any(_holds(held_out[name], digest) for name in later_parts(given) if name in held_out):
            continue
        yield Document(part_of(digest >> 48, given, card.deal), _texts(row), _labels(row, numbers))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        yield from map(json.loads, file)


def _held_out(path: Path) -> dict[str, NDArray[np.uint64]]:
    """Digests of the documents of given validation and test parts, each sorted."""
    found = {name: array("Q") for name in GIVEN_PARTS[1:]}
    for row in _rows(path):
        if (given := row.get("part")) in found:
            found[given].append(document_digest(content(row)))
    return {name: np.unique(np.array(digests, np.uint64)) for name, digests in found.items()}


def _holds(held_out: NDArray[np.uint64], digest: int) -> bool:
    place = int(np.searchsorted(held_out, np.uint64(digest)))
    return place < len(held_out) and int(held_out[place]) == digest


def _texts(row: Mapping[str, Any]) -> tuple[Sequence[str], ...]:
    if "words" in row:
        return ([word if at == 0 else f" {word}" for at, word in enumerate(row["words"])],)
    return tuple(list(pieces([row[name].encode()])) for name in ("text", "pair") if name in row)


def _labels(row: Mapping[str, Any], numbers: Mapping[str, int]) -> tuple[int, ...]:
    if "labels" in row:
        return tuple(numbers[label] for label in row["labels"])
    return (numbers[row["label"]],) if "label" in row else ()


@dataclass
class Batch:
    """Documents that are encoded together."""

    documents: list[Document] = field(default_factory=list)
    n_characters: int = 0

    def add(self, document: Document) -> None:
        self.documents.append(document)
        self.n_characters += sum(len(piece) for text in document.texts for piece in text)

    def encode(self, encoder: Encoder, *, of_words: bool) -> tuple[TokenIds, NDArray[np.int64], NDArray[np.int32]]:
        """Tokens, how many each document has, and labels: of documents, or of tokens where words have them."""
        texts = [text for document in self.documents for text in document.texts]
        ids, lengths = encoder.encode([piece for text in texts for piece in text])
        text_of = np.repeat(np.arange(len(texts)), [len(text) for text in texts])  # of each piece
        sizes = np.bincount(text_of, weights=lengths, minlength=len(texts)).astype(np.int64) + 1
        tokens = np.full(len(ids) + len(texts), encoder.eos_id, encoder.dtype)
        inside = np.ones(len(tokens), bool)
        inside[np.cumsum(sizes) - 1] = False
        tokens[inside] = ids
        firsts = np.cumsum([0, *(len(document.texts) for document in self.documents)])[:-1]
        classes = np.array([label for document in self.documents for label in document.labels], np.int32)
        if of_words:
            labels = np.full(len(tokens), IGNORE, np.int32)
            starts = np.cumsum(lengths) - lengths
            skipped = _spaces(ids, starts, lengths, encoder)
            found = skipped < lengths  # a word may be nothing to a tokenizer
            labels[(starts + text_of + skipped)[found]] = classes[found]
            classes = labels
        return tokens, np.add.reduceat(sizes, firsts), classes


def _spaces(
    ids: TokenIds, starts: NDArray[np.int64], lengths: NDArray[np.int64], encoder: Encoder
) -> NDArray[np.int64]:
    """How many tokens of each piece are the space before its word and nothing of the word itself."""
    space, _ = encoder.encode([" "])
    candidates = lengths > len(space)
    for offset, number in enumerate(space):
        places = np.where(candidates, starts + offset, 0)
        candidates &= ids[places] == number
    return np.where(candidates, len(space), 0)


def in_batches(documents: Iterable[Document], size: int) -> Iterator[tuple[int, Batch]]:
    """Documents of the same part together, about `size` characters; parts come mixed, each in its documents' order."""
    waiting: dict[int, Batch] = {}
    for document in documents:
        batch = waiting.setdefault(document.part, Batch())
        batch.add(document)
        if batch.n_characters >= size:
            yield document.part, waiting.pop(document.part)
    yield from waiting.items()
