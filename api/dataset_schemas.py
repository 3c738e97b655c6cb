"""What the service answers about datasets and uploaded tokenizers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

DatasetKind = Literal["text", "documents", "tokens", "tokenizer", "synthetic"]


class CardSettings(BaseModel):
    """What the bytes of a dataset alone do not say; part of its fingerprint where it differs from the default."""

    kind: Literal["text", "documents", "tokens", "tokenizer"]
    ends: tuple[int, int] | None = Field(
        None, description="of a text: byte offsets at which a given training, and then a validation part end"
    )
    corpus: str | None = Field(None, description="standard corpus whose conventions hold, such as enwik8")
    dtype: str | None = Field(None, description="of tokens: uint16 or uint32")
    vocab_size: int | None = Field(None, description="of tokens: ids are below it")
    eos_id: int | None = Field(None, description="of tokens: the id that ends a document")


class Card(BaseModel):
    """What reading a dataset has told."""

    settings: CardSettings
    n_bytes: int = Field(description="of what is kept, in its one canonical form")
    n_rows: int = Field(description="lines of a text, documents, tokens, or entries of a tokenizer's vocabulary")
    n_characters: int | None = Field(description="distinct characters; null for tokens and tokenizers")
    lengths: list[tuple[int, int]] = Field(
        description="[largest bytes, number] of lines or documents, by powers of two, without empty bins at either end"
    )
    label_kind: Literal["sequence", "token"] | None = Field(
        description="null without labels; sequence: one for each document; token: one for each word"
    )
    labels: dict[str, int] | None = Field(description="label and how often it stands, sorted by label")
    given_parts: dict[str, int] | None = Field(
        description="rows of each part that the data name themselves (train, validation, test); null: we deal them"
    )
    part_rows: dict[str, int] | None = Field(
        description="documents of each part (weights, alpha, validation, test), duplicates included; null for others"
    )
    n_duplicates: int = Field(description="documents that stand exactly so before; equal ones always share a part")
    n_left_out: int = Field(
        description="documents that also stand in a later given part (train, validation, test): in no part"
    )
    samples: list[dict[str, Any]] = Field(
        description="the first rows, at most 3: text, pair, label, or words and labels, and part; long ones are cut"
    )
    majority: float | None = Field(description="share of the most frequent label: the score of looking at nothing")


class Dataset(BaseModel):
    """A dataset that requests may name, or a tokenizer (of kind `tokenizer`) that `task.tokenizer` may."""

    name: str
    description: str
    built_in: bool
    kind: DatasetKind = Field(
        description="text: one stream; documents: rows, with labels or without; tokens: token ids; tokenizer: an "
        "uploaded tokenizer.json; synthetic: drawn on the fly, see `tasks` of the catalogue"
    )
    fingerprint: str | None = Field(
        description="sha256 of the content; of a built-in one known after its first use; null of a synthetic task"
    )
    n_bytes: int | None
    created_at: str | None = Field(description="when it was uploaded; of a built-in one, first used")
    n_uses: int = Field(description="queued and running searches that name it; above 0 it cannot be removed")
    card: Card | None = Field(description="null where it was not read yet, was uploaded long ago, or is synthetic")


class Encoding(BaseModel):
    """The dataset as token ids, kept for the searches to come."""

    tokenizer: dict[str, Any] = Field(description="as `task.tokenizer` of a request")
    vocab_size: int
    n_tokens: dict[str, int] = Field(description="tokens of each part: weights, alpha, validation, test")


class DatasetDetail(Dataset):
    """A dataset, with its beginning, who needs it, and what it was encoded with."""

    excerpt: str | None = Field(
        description="first characters of a text, at most 1000; null for others, which `card.samples` shows, and for a "
        "built-in one"
    )
    encodings: list[Encoding] = Field(description="what has been encoded so far; empty before the first search")
    in_use_by: list[str] = Field(description="ids of the queued and running searches that name it, oldest first")
