"""Token ids that someone else has made: kept as they came, each checked to be below the size of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterable

from nas.ingest.card import Card
from nas.ingest.errors import BadRow, Damaged
from nas.ingest.sink import Sink
from nas.text import MIN_BYTES, TooShort


def read_tokens(blocks: Iterable[bytes], sink: Sink) -> Card:
    """Write ids to the sink; its settings tell their dtype and the size of the vocabulary.

    Raises:
        BadRow: an id that is not below vocab_size, with its position.
        Damaged: part of an id at the end.
        TooShort: so few that a part would be empty.
    """
    import numpy as np  # only for tokens

    dtype, vocab_size = sink.settings.dtype, sink.settings.vocab_size
    assert dtype is not None
    assert vocab_size is not None
    width = np.dtype(dtype).itemsize
    held = b""
    n_ids = 0
    for block in blocks:
        sink.write(block)
        held += block
        n_whole = len(held) // width
        ids = np.frombuffer(held, f"<u{width}", n_whole)
        if n_whole and ids.max() >= vocab_size:
            place = int(np.argmax(ids >= vocab_size))
            raise BadRow(
                f"token {n_ids + place:,} is {ids[place]:,}, not below vocab_size {vocab_size:,} "
                f"(byte {(n_ids + place) * width:,}); give the tokenizer's vocab_size and dtype, little-endian"
            )
        n_ids += n_whole
        held = held[n_whole * width :]
    if held:
        raise Damaged(
            f"the file has {sink.n_bytes:,} bytes, which is no multiple of {width}, the bytes of {dtype}; "
            "copy it again, or give the dtype it was written with"
        )
    if n_ids < MIN_BYTES:
        raise TooShort(f"the file has {n_ids:,} tokens, so that a part would be empty; give at least {MIN_BYTES}")
    return Card(sink.fingerprint(), sink.settings, sink.n_bytes, n_ids)
