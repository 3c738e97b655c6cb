"""Options: what a file's name tells, and which do not go together."""

from __future__ import annotations

from typing import Any

import pytest

from nas.ingest.errors import WrongOptions
from nas.ingest.options import Options


@pytest.mark.parametrize(
    ("name", "format_", "compression"),
    [
        ("reviews.jsonl.gz", "jsonl", "gzip"),
        ("a.b/Reviews.CSV", "csv", "auto"),
        ("table.tsv.zst", "tsv", "zstd"),
        ("table.pq", "parquet", "auto"),
        ("ids.bin", "tokens", "auto"),
        ("tokenizer.json", "tokenizer", "auto"),
        ("lines.json", "jsonl", "auto"),
        ("book.txt.gz", "text", "gzip"),
        ("text8", "auto", "auto"),
        ("..gz", "auto", "gzip"),
        (".gz", "auto", "auto"),
        ("", "auto", "auto"),
    ],
)
def test_a_name_tells_the_format(name: str, format_: str, compression: str) -> None:
    guessed = Options.guess(name)
    assert (guessed.format, guessed.compression) == (format_, compression)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"format": "jsonl", "pair": "second", "label": "score", "part": "train"},
        {"format": "parquet", "words": "tokens", "labels": "tags"},
        {"format": "text", "corpus": "enwik8", "ends": [90_000_000, 95_000_000]},
        {"format": "tokens", "dtype": "uint16", "vocab_size": 65536, "eos_id": 0},
    ],
    ids=["default", "pair", "words", "ends", "tokens"],
)
def test_options_survive_json(told: dict[str, Any]) -> None:
    options = Options.from_json(told)
    assert Options.from_json(options.to_json()) == options
    assert set(options.to_json()) == set(told)


TOKENS = {"format": "tokens", "dtype": "uint16", "vocab_size": 100}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"form": "text"}, "unknown option 'form'; known: compression, corpus, dtype, ends, eos_id, format, label, "
         "labels, pair, part, text, vocab_size, words"),
        ({"format": "xml"}, "unknown format 'xml'; known: auto, text, jsonl, csv, tsv, parquet, tokens, tokenizer"),
        ({"format": ["csv"]}, "unknown format ['csv']; known: auto, text, jsonl, csv, tsv, parquet, tokens, tokenizer"),
        ({"compression": "xz"}, "unknown compression 'xz'; known: auto, none, gzip, zstd"),
        ({"corpus": "ptb"}, "unknown corpus 'ptb'; known: enwik8, text8, wikitext-2, wikitext-103, mrpc, sst-2"),
        ({"corpus": "enwik8", "ends": [90, 95]},
         "ends are 90 and 95, those of enwik8 are 90,000,000 and 95,000,000; leave them out, or leave out the corpus"),
        ({"corpus": "wikitext-2"},
         "corpus is wikitext-2, which has parts of its own; give the ends of the first two"),
        ({"format": "csv", "corpus": "wikitext-2", "ends": [1, 2]},
         "corpus is wikitext-2, the format is csv; give text, or no corpus"),
        ({"format": "text", "corpus": "sst-2"},
         "corpus is sst-2, the format is text; give jsonl, csv, tsv, parquet, or no corpus"),
        ({"part": "dev"}, "unknown part 'dev'; known: train, validation, test"),
        ({"format": "csv", "text": ""}, "text is ''; give the name of a field, of 1 to 200 characters"),
        ({"format": "csv", "label": 3}, "label is 3; give the name of a field, of 1 to 200 characters"),
        ({"format": "text", "label": "x"},
         "label is for rows, the format is text; give one of jsonl, csv, tsv, parquet"),
        ({"format": "jsonl", "words": "w"}, "words and labels go together; name the fields of both, or of neither"),
        ({"format": "jsonl", "words": "w", "labels": "l", "pair": "p"},
         "words and labels stand instead of text, pair and label; give the ones or the others"),
        ({"format": "csv", "words": "w", "labels": "l"},
         "words and labels are lists, which csv has not; give jsonl or parquet"),
        ({"format": "csv", "pair": "text"}, "one field is named for two things: text, text; name different fields"),
        ({"format": "text", "eos_id": 1}, "eos_id is for tokens, the format is text; give format tokens"),
        ({"format": "tokens", "dtype": "uint16"},
         "tokens need a dtype (uint16 or uint32) and a vocab_size; give both"),
        ({**TOKENS, "dtype": "int8"}, "unknown dtype 'int8'; known: uint16, uint32"),
        ({**TOKENS, "vocab_size": 65537}, "vocab_size is 65537; uint16 allows 2 to 65,536"),
        ({**TOKENS, "dtype": "uint32", "vocab_size": 2**31 + 1},
         "vocab_size is 2147483649; uint32 allows 2 to 2,147,483,648"),
        ({**TOKENS, "vocab_size": True}, "vocab_size is True; uint16 allows 2 to 65,536"),
        ({**TOKENS, "eos_id": 100}, "eos_id is 100; give an id below vocab_size, 100"),
        ({"format": "csv", "ends": [1, 2]}, "ends are for a text, the format is csv; give format text"),
        ({"format": "text", "ends": [2, 2]}, "ends are (2, 2); give two growing byte offsets"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)  # fmt: skip
def test_what_does_not_go_together_is_refused(told: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongOptions) as caught:
        Options.from_json(told)
    assert str(caught.value) == message
