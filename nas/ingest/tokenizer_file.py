"""A tokenizer.json of the library `tokenizers`, which alone decides whether it is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from nas.ingest.card import Card
from nas.ingest.errors import TooLarge, WrongFormat
from nas.ingest.sink import Sink

MAX_BYTES = 64 << 20  # the largest published ones have 35 MB
MAX_IDS = 1 << 21  # the largest published ones have a million; the library takes memory for all ids up to the largest
_TRIED = ("The quick brown fox,\n", " jumps over the lazy dog: 0123 é € 😀 日本")  # some panic only when they encode


def read_tokenizer(blocks: Iterable[bytes], sink: Sink) -> Card:
    """Write a tokenizer to the sink, as it came.

    Raises:
        WrongFormat: the library cannot read it, or panics when it encodes.
        TooLarge: more than MAX_BYTES.
    """
    from tokenizers import Tokenizer  # only for tokenizers

    read = bytearray()
    for block in blocks:
        sink.write(block)
        read += block
        if len(read) > MAX_BYTES:
            raise TooLarge(f"the tokenizer has more than {MAX_BYTES:,} bytes, the most allowed; give a smaller one")
    with _refusals():
        tokenizer = Tokenizer.from_str(read.decode())
    vocabulary = tokenizer.get_vocab()
    if not vocabulary:
        raise WrongFormat("the tokenizer's vocabulary is empty; give one that has been trained")
    if (largest := max(vocabulary.values())) >= MAX_IDS:
        raise WrongFormat(f"the tokenizer has id {largest:,}; ids must be below {MAX_IDS:,}: number them without gaps")
    with _refusals(), suppress(Exception):  # what it has no entry for may not stand in the data either
        tokenizer.encode_batch_fast(list(_TRIED), add_special_tokens=False)
    return Card(sink.fingerprint(), sink.settings, sink.n_bytes, len(vocabulary))


@contextmanager
def _refusals() -> Iterator[None]:
    """What the library says, in one line."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # its own, and no Exception
            raise
        reason = " ".join(str(error).split())
        raise WrongFormat(
            f"the file is no tokenizer: {reason:.200}; give the tokenizer.json that the library tokenizers saved"
        ) from None
