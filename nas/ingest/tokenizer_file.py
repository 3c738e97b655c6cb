"""A tokenizer.json of the library `tokenizers`, which alone decides whether it is one."""

from __future__ import annotations

from collections.abc import Iterable

from nas.ingest.card import Card
from nas.ingest.errors import TooLarge, WrongFormat
from nas.ingest.sink import Sink

MAX_BYTES = 64 << 20  # the largest published ones have 35 MB


def read_tokenizer(blocks: Iterable[bytes], sink: Sink) -> Card:
    """Write a tokenizer to the sink, as it came.

    Raises:
        WrongFormat: the library cannot read it.
        TooLarge: more than MAX_BYTES.
    """
    from tokenizers import Tokenizer  # only for tokenizers

    read = bytearray()
    for block in blocks:
        sink.write(block)
        read += block
        if len(read) > MAX_BYTES:
            raise TooLarge(f"the tokenizer has more than {MAX_BYTES:,} bytes, the most allowed; give a smaller one")
    try:
        tokenizer = Tokenizer.from_str(read.decode())
    except Exception as error:  # noqa: BLE001 - the library raises nothing narrower
        reason = " ".join(str(error).split())
        raise WrongFormat(
            f"the file is no tokenizer: {reason:.200}; give the tokenizer.json that the library tokenizers saved"
        ) from None
    if not (n_entries := tokenizer.get_vocab_size()):
        raise WrongFormat("the tokenizer's vocabulary is empty; give one that has been trained")
    return Card(sink.fingerprint(), sink.settings, sink.n_bytes, n_entries)
