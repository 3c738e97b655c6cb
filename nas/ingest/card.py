"""What is known of a dataset once it has been read: its card. Standard library only: api, page and trials all read it.

A dataset is kept in one canonical file, whatever it came as, so that the same content has the same fingerprint:

    text       one stream of UTF-8, as it came                                 <fingerprint>.txt
    documents  one JSON object a line, {"text", "pair", "label", "part"}       <fingerprint>.jsonl
               or {"words", "labels", "part"} where each word has a label; absent members are left out
    tokens     token ids, little-endian uint16 or uint32, without header       <fingerprint>.bin
    tokenizer  a tokenizer.json of the library `tokenizers`, as it came        <fingerprint>.json
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

Kind = Literal["text", "documents", "tokens", "tokenizer"]
PARTS = ("weights", "alpha", "validation", "test")
GIVEN_PARTS = ("train", "validation", "test")  # what rows may name
SUFFIXES: Mapping[Kind, str] = {"text": ".txt", "documents": ".jsonl", "tokens": ".bin", "tokenizer": ".json"}
BINS = 65536  # of the digests of documents, by which they are dealt to the parts


@dataclass(frozen=True)
class Settings:
    """What the bytes alone do not say; whatever differs from the defaults is part of the fingerprint.

    Args:
        kind: of the canonical file.
        ends: of a text: byte offsets at which a training, and a validation part given with it, end.
        corpus: name of the standard corpus whose conventions hold (enwik8, text8, wikitext-2, ...), or None.
        dtype: of tokens: "uint16" or "uint32".
        vocab_size: of tokens: ids are below it.
        eos_id: of tokens: the id that ends a document, or None.
    """

    kind: Kind = "text"
    ends: tuple[int, int] | None = None
    corpus: str | None = None
    dtype: str | None = None
    vocab_size: int | None = None
    eos_id: int | None = None

    def digest(self) -> Any:
        """A sha256 to be fed the canonical bytes; of a plain text it is that of the text itself."""
        said = {name: value for name, value in asdict(self).items() if value not in (None, "text")}
        prefix = json.dumps(said, sort_keys=True).encode() + b"\n" if said else b""
        return hashlib.sha256(prefix)


@dataclass(frozen=True)
class Card:
    """A dataset, without its content.

    Args:
        fingerprint: `Settings.digest` over the canonical bytes, 64 hexadecimal digits.
        settings: what the bytes do not say.
        n_bytes: of the canonical file.
        n_rows: lines of a text, documents, tokens, or entries of a tokenizer's vocabulary.
        n_characters: distinct characters; None for tokens and tokenizers.
        lengths: (largest bytes, number) of lines or documents, by powers of two, without empty bins at either end.
        label_kind: None without labels; "sequence": one for each document; "token": one for each word.
        labels: label -> how often it stands; sorted by label.
        given_parts: rows of each part that the rows name ("train", "validation", "test"); None: we deal them.
        deal: for documents that name no part: the first bin (of BINS) that is no longer of weights, of alpha and of
            validation; for those that do: the first bin of train's that is alpha's, of validation's that is test's
            where no row names "test", and of train's that is validation's where no row names "validation" (BINS where
            a part has rows of its own). `part_of` reads it.
        part_rows: documents of each of PARTS after dealing, duplicates included, left out ones not; None for other
            kinds.
        n_duplicates: documents that stand exactly so before; equal ones always share a part.
        n_left_out: documents of a given part that also stand in a later one, training before validation before test:
            they are in no part, so that none is learnt from, or looked at in a search, and then scored.
        samples: the first rows, at most 3: {"text": ...} and what else the row has, each cut to 300 characters.
    """

    fingerprint: str
    settings: Settings
    n_bytes: int
    n_rows: int
    n_characters: int | None = None
    lengths: tuple[tuple[int, int], ...] = ()
    label_kind: Literal["sequence", "token"] | None = None
    labels: Mapping[str, int] | None = None
    given_parts: Mapping[str, int] | None = None
    deal: tuple[int, int, int] | None = None
    part_rows: Mapping[str, int] | None = None
    n_duplicates: int = 0
    n_left_out: int = 0
    samples: tuple[Mapping[str, Any], ...] = ()

    @property
    def kind(self) -> Kind:
        return self.settings.kind

    @property
    def file_name(self) -> str:
        return self.fingerprint + SUFFIXES[self.kind]

    @property
    def majority(self) -> float | None:
        """Share of the most frequent label: what a classifier scores that looks at nothing."""
        return max(self.labels.values()) / sum(self.labels.values()) if self.labels else None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Card:
        """Read what `to_json` gave; members that this version does not know are ignored."""
        known = {each.name for each in fields(cls)}
        values = {name: value for name, value in data.items() if name in known}
        settings = dict(data["settings"])
        settings["ends"] = tuple(settings["ends"]) if settings.get("ends") else None
        values["settings"] = Settings(**settings)
        values["lengths"] = tuple((int(most), int(number)) for most, number in data.get("lengths", ()))
        values["deal"] = tuple(data["deal"]) if data.get("deal") else None
        values["samples"] = tuple(data.get("samples", ()))
        return cls(**values)

    @classmethod
    def of_text(cls, fingerprint: str, n_bytes: int) -> Card:
        """The little that is known of a text that was registered without a card."""
        return cls(fingerprint, Settings(), n_bytes, n_rows=0)


@dataclass(frozen=True)
class Dataset:
    """A dataset on disk: its canonical file and its card."""

    path: Path
    card: Card


def content(row: Mapping[str, Any]) -> bytes:
    """What a document says, without its label and part: by it documents are equal, and dealt to parts.

    Args:
        row: a line of the canonical file, read as JSON.
    """
    said = {name: row[name] for name in ("text", "pair", "words") if name in row}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def document_digest(line: bytes) -> int:
    """64 bits that tell documents apart; their highest 16 are the document's bin.

    Args:
        line: as `content` gives it.
    """
    return int.from_bytes(hashlib.blake2b(line, digest_size=8).digest(), "big")


def document_bin(line: bytes) -> int:
    """Which of BINS a document falls into: by its content alone, so that equal documents share a part."""
    return document_digest(line) >> 48


def later_parts(given: str | None) -> tuple[str, ...]:
    """The given parts from which a document of this one is kept apart by leaving it out here: the last one counts."""
    return () if given is None else GIVEN_PARTS[GIVEN_PARTS.index(given) + 1 :]


def part_of(number: int, given: str | None, deal: tuple[int, int, int]) -> int:
    """The part that a document falls into, as its place in PARTS.

    Args:
        number: its bin.
        given: the part that its row names: "train", "validation", "test", or None. The caller leaves out what also
            stands in one of `later_parts`.
        deal: as `Card.deal`.
    """
    if given == "train":
        return 0 if number < deal[0] else 1 if number < deal[2] else 2
    if given == "validation":
        return 2 if number < deal[1] else 3
    if given == "test":
        return 3
    return sum(number >= end for end in deal)
