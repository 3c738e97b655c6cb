"""From text to token ids, one batch of pieces at a time.

All vocabularies but bytes are kept as a tokenizer.json of the library `tokenizers`, which an export carries. Every one
has an id that ends a document: byte 0 of bytes, since texts hold none, `<eos>` or its like of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tokenizers
import tokenizers.models
from numpy.typing import NDArray

from nas.config.task import Tokenizer
from nas.data.parts import TokenIds
from nas.data.vocabulary import EOS, UNKNOWN, Training, codes, learn_characters, learn_pairs, learn_words
from nas.errors import DataError
from nas.ingest.card import Settings

DEFAULT_PAIRS = 8192
# How the tokenizers of the field call what ends a document, in the order in which they are looked for.
_ENDS = (EOS, "<|endoftext|>", "<|end_of_text|>", "</s>", "<|eot_id|>", "<|im_end|>", "[EOS]", "[SEP]")


class Encoder(Protocol):
    """A tokenizer at work.

    Args:
        vocab_size: token ids are below it.
        eos_id: what ends a document.
        dtype: of ids, the smallest that holds them.
    """

    vocab_size: int
    eos_id: int
    dtype: type[np.unsignedinteger[Any]]

    def encode(self, pieces: Sequence[str]) -> tuple[TokenIds, NDArray[np.int64]]:
        """Ids of all pieces, one after another, and how many each has."""

    def to_json(self) -> str | None:
        """The tokenizer.json; None of bytes."""


def smallest(vocab_size: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that holds ids below this."""
    return np.uint8 if vocab_size <= 2**8 else np.uint16 if vocab_size <= 2**16 else np.uint32


class Bytes:
    """UTF-8 as it is."""

    vocab_size, eos_id, dtype = 256, 0, np.uint8

    def encode(self, pieces: Sequence[str]) -> tuple[TokenIds, NDArray[np.int64]]:
        """As `Encoder.encode`."""
        encoded = [piece.encode() for piece in pieces]
        return np.frombuffer(b"".join(encoded), np.uint8), _lengths(encoded)

    def to_json(self) -> str | None:
        return None


class Library:
    """A tokenizer of the library.

    Args:
        found: it, without truncation, padding or tokens that it would add to each text.
        eos: what ends a document, an entry of its vocabulary.
    """

    def __init__(self, found: tokenizers.Tokenizer, eos: str = EOS) -> None:
        self.found = found
        self.eos_id: int = found.get_vocab()[eos]
        self.vocab_size = max(found.get_vocab().values()) + 1  # ids may have gaps
        self.dtype = smallest(self.vocab_size)

    def encode(self, pieces: Sequence[str]) -> tuple[TokenIds, NDArray[np.int64]]:
        """As `Encoder.encode`. Raises: DataError: the library cannot, as with a tokenizer.json that has no unknown."""
        try:
            ids = [each.ids for each in self.found.encode_batch_fast(list(pieces), add_special_tokens=False)]
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # the library's own
                raise
            reason = " ".join(str(error).split())
            raise DataError(f"the tokenizer cannot encode the dataset: {reason:.200}; use another tokenizer") from None
        lengths = _lengths(ids)
        return np.fromiter(chain.from_iterable(ids), self.dtype, count=int(lengths.sum())), lengths

    def to_json(self) -> str | None:
        return self.found.to_str()


class Characters(Library):
    """Characters, looked up in a table: what the library finds too, 40 times as fast."""

    def __init__(self, found: tokenizers.Tokenizer) -> None:
        super().__init__(found)
        vocabulary = found.get_vocab()
        self._table = np.full(0x110000, vocabulary[UNKNOWN], self.dtype)
        for entry, number in vocabulary.items():
            if len(entry) == 1:
                self._table[ord(entry)] = number

    def encode(self, pieces: Sequence[str]) -> tuple[TokenIds, NDArray[np.int64]]:
        """As `Encoder.encode`."""
        return self._table[codes(pieces)], _lengths(pieces)


class Words(Library):
    """Words, looked up in a dictionary: what the library finds too, 4 times as fast."""

    def __init__(self, found: tokenizers.Tokenizer) -> None:
        super().__init__(found)
        self._vocabulary = _Vocabulary(found.get_vocab())

    def encode(self, pieces: Sequence[str]) -> tuple[TokenIds, NDArray[np.int64]]:
        """As `Encoder.encode`."""
        words = [piece.replace("\n", f" {EOS} ").split() for piece in pieces]
        lengths = _lengths(words)
        ids = map(self._vocabulary.__getitem__, chain.from_iterable(words))
        return np.fromiter(ids, self.dtype, count=int(lengths.sum())), lengths


class _Vocabulary(dict[str, int]):
    """Ids by entry, and that of UNKNOWN for what has none."""

    def __missing__(self, word: str) -> int:
        return self[UNKNOWN]


def learn(chosen: Tokenizer, training: Training, *, n_bytes: int, scratch: Path | None = None) -> Encoder:
    """The tokenizer that a request names, with its vocabulary from the training parts.

    Args:
        chosen: of type characters, words or bpe.
        training: what is read.
        n_bytes: how long it is, roughly.
        scratch: folder for what memory does not hold; None: the system's, which may itself be memory.

    Raises:
        DataError: there are too many words.
    """
    if chosen.type == "characters":
        return Characters(learn_characters(training))
    if chosen.type == "words":
        return Words(learn_words(training, chosen.vocab_size, chosen.min_count, scratch))
    found = learn_pairs(training, n_bytes, chosen.vocab_size or DEFAULT_PAIRS)
    found.encode_special_tokens = True  # who writes "<eos>" in a text ends no document with it
    return Library(found)


def with_fingerprint(chosen: Tokenizer, path: Path) -> Tokenizer:
    """The tokenizer of a request with the fingerprint of its file, which is as on the file's card.

    Raises:
        DataError: the request names another.
    """
    digest = Settings(kind="tokenizer").digest()
    digest.update(path.read_bytes())
    found = digest.hexdigest()
    if chosen.fingerprint not in (None, found):
        raise DataError(
            f"the file of tokenizer {chosen.name!r} has fingerprint {found}, not {chosen.fingerprint} as when it was "
            "registered; register it again"
        )
    return chosen.model_copy(update={"fingerprint": found})


def from_file(path: Path) -> Encoder:
    """An uploaded tokenizer.json; where it names no end of a document, EOS is put behind its ids.

    Raises:
        DataError: its ids have gaps, in one of which EOS would be another entry.
    """
    found = tokenizers.Tokenizer.from_file(str(path))
    found.no_truncation()
    found.no_padding()
    if isinstance(found.model, tokenizers.models.BPE):
        found.model.dropout = None  # it would give the same text other ids each time
    special = [token.content for token in found.get_added_tokens_decoder().values() if token.special]
    eos = next((name for name in _ENDS if name in special), EOS)
    if found.token_to_id(eos) is None:
        found.add_special_tokens([eos])
        number = found.token_to_id(eos)
        if other := next((entry for entry, own in found.get_vocab().items() if own == number and entry != eos), None):
            raise DataError(
                f"the tokenizer has no end of a document ({EOS}), and its ids have gaps: {number:,}, the next one, "
                f"is {other!r:.40}; give it the entry {EOS}"
            )
    return Library(found, eos)


def _lengths(each: Sequence[Any]) -> NDArray[np.int64]:
    return np.fromiter(map(len, each), np.int64, count=len(each))
