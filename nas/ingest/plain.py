"""A plain text: it stays as it came, and is looked at on the way."""

from __future__ import annotations

from collections.abc import Iterable

from nas.ingest.card import Card
from nas.ingest.errors import WrongFormat, WrongOptions
from nas.ingest.facts import Characters, Lengths
from nas.ingest.options import HUNDRED_MILLION, STANDARD_BYTES
from nas.ingest.sink import Sink
from nas.text import MIN_BYTES, TooShort

_SAMPLES = 3  # lines that the card shows


def read_text(blocks: Iterable[bytes], sink: Sink) -> Card:
    """Write a text to the sink, block by block; it may be one line.

    Args:
        blocks: of whole characters.

    Raises:
        TooShort: white space only, or so little that a part would be empty.
        WrongFormat: it is called a standard corpus and has not its size.
        WrongOptions: its ends lie beyond its end.
    """
    characters, lengths = Characters(), Lengths()
    n_lines = held = 0  # held: bytes of the line that the blocks so far end with
    blank = True
    samples: list[str] = []
    for block in blocks:
        if len(samples) < _SAMPLES:
            samples += [line[:300] for line in block.decode().split("\n") if line and not line.isspace()]
        sink.write(block)
        characters.feed(block)
        blank = blank and block.isspace()
        pieces = block.split(b"\n")
        n_lines += len(pieces) - 1
        if len(pieces) == 1:
            held += len(block)
        else:
            lengths.feed([held + len(pieces[0])])
            lengths.feed(map(len, pieces[1:-1]))
            held = len(pieces[-1])
    if held:  # the last line has no break
        n_lines += 1
        lengths.feed([held])
    if blank:
        raise TooShort("the text is nothing but white space; give at least a few thousand bytes of UTF-8 text")
    if sink.n_bytes < MIN_BYTES:
        raise TooShort(f"the text has {sink.n_bytes:,} bytes, so that a part would be empty; give at least {MIN_BYTES}")
    corpus, ends = sink.settings.corpus, sink.settings.ends
    if corpus in HUNDRED_MILLION and sink.n_bytes != STANDARD_BYTES:
        raise WrongFormat(
            f"the text has {sink.n_bytes:,} bytes, {corpus} has {STANDARD_BYTES:,}; give the published file"
        )
    if ends is not None and ends[1] >= sink.n_bytes:
        raise WrongOptions(
            f"ends are {ends[0]:,} and {ends[1]:,}, the text has {sink.n_bytes:,} bytes; "
            "the test part begins at the second end: give ends within the text"
        )
    return Card(
        sink.fingerprint(),
        sink.settings,
        sink.n_bytes,
        n_lines,
        n_characters=len(characters),
        lengths=lengths.histogram(),
        samples=tuple({"text": line} for line in samples[:_SAMPLES]),
    )
