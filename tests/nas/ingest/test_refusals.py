"""Files that cannot become a dataset: the one line that says why, and nothing left behind."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from nas.ingest import dealing, digests, fields, rows, stream
from nas.ingest.options import Options
from tests.nas.ingest.files import documents as some
from tests.nas.ingest.files import jsonl, parquet, refusal, table, zstd

AUTO = Options()
TEXT = Options("text")
JSONL = Options("jsonl")
CSV = Options("csv")
TOKENS = Options("tokens", dtype="uint16", vocab_size=1000)
PROSE = b"to be or not to be\n" * 200
ROWS = jsonl(some())


def with_row(number: int, line: bytes, n: int = 12_400) -> bytes:
    """JSON lines of which one, from 1, is another."""
    found = jsonl(some(n)).splitlines(keepends=True)
    found[number - 1] = line + b"\n"
    return b"".join(found)


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", PROSE)
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo("a.txt")
        entry.size = len(PROSE)
        archive.addfile(entry, io.BytesIO(PROSE))
    return out.getvalue()


def word_level(vocabulary: dict[str, int], **others: Any) -> bytes:
    """A tokenizer.json."""
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "a"}
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model, **others}).encode()


UNPACK = "unpack it and give a file of it"
WHOLE = "copy or compress it again"
PACKED = gzip.compress(random.Random(0).randbytes(1_500_000).hex().encode(), mtime=0)
CASES: dict[str, tuple[bytes, Options, str, str]] = {
    "empty": (b"", AUTO, "too-short", "the file is empty; give at least a few thousand bytes"),
    "empty gzip": (gzip.compress(b""), AUTO, "too-short", "the file is empty; give at least a few thousand bytes"),
    "blank": (b" \n" * 500, AUTO, "too-short",
        "the text is nothing but white space; give at least a few thousand bytes of UTF-8 text"),
    "short": (b"abc", AUTO, "too-short", "the text has 3 bytes, so that a part would be empty; give at least 100"),
    "ends": (PROSE, Options("text", ends=(10, 3800)), "wrong-options",
        "ends are 10 and 3,800, the text has 3,800 bytes; the test part begins at the second end: "
        "give ends within the text"),
    "latin-1": (PROSE + b"caf\xe9 au lait", AUTO, "not-utf8",
        "the file is not UTF-8: byte 0xe9 at offset 3,803, in line 201; save it as UTF-8"),
    "latin-1 rows": (jsonl(some(9)) + b'{"text": "caf\xe9"}\n', JSONL, "not-utf8",
        "the file is not UTF-8: byte 0xe9 at offset 508, in line 10; save it as UTF-8"),
    "ends in a character": (PROSE + "é".encode()[:1], TEXT, "not-utf8",
        "the file is not UTF-8: byte 0xc3 at offset 3,800, in line 201; save it as UTF-8"),
    "nul": (PROSE + b"a\0b", AUTO, "binary",
        "the file is binary: NUL byte at offset 3,801, in line 201; give UTF-8 text"),
    "utf-16": (PROSE.decode().encode("utf-16"), AUTO, "wrong-format", "the file is UTF-16; save it as UTF-8"),
    "zip": (zipped(), AUTO, "wrong-format", f"the file is a zip archive; {UNPACK}"),
    "zip as csv": (zipped(), CSV, "wrong-format", f"the file is a zip archive; {UNPACK}"),
    "zip in gzip": (gzip.compress(zipped()), AUTO, "wrong-format", f"the file is a zip archive; {UNPACK}"),
    "tar": (tarred(), AUTO, "wrong-format", f"the file is a tar archive; {UNPACK}"),
    "tar in gzip": (gzip.compress(tarred()), AUTO, "wrong-format", f"the file is a tar archive; {UNPACK}"),
    "xz": (b"\xfd7zXZ\0" + PROSE, AUTO, "wrong-format",
        "the file is compressed with xz; unpack it, or compress it with gzip or zstd"),
    "gzip twice": (gzip.compress(gzip.compress(PROSE)), AUTO, "wrong-format",
        "the file is compressed with gzip; give compression gzip, and compress only once"),
    "gzip that is none": (PROSE, Options("text", "gzip"), "wrong-format",
        "the file is not compressed with gzip: it begins with 74 6f 20 62; give compression none"),
    "parquet in gzip": (gzip.compress(parquet(some())), AUTO, "wrong-format",
        "the file is parquet; give format parquet, not compressed once more"),
    "gzip cut": (PACKED[:-9], AUTO, "damaged",
        f"the gzip stream is truncated: it ends early, somewhere after 2,097,152 unpacked bytes; {WHOLE}"),
    "gzip changed": (PACKED[:-8] + b"\0" * 8, AUTO, "damaged",
        f"the gzip stream is corrupt, somewhere after 2,097,152 unpacked bytes; {WHOLE}"),
    "gzip with more": (gzip.compress(PROSE) + b"garbage", AUTO, "damaged",
        f"the gzip stream is corrupt, somewhere after 0 unpacked bytes; {WHOLE}"),
    "zstd cut": (zstd(PROSE)[:-3], AUTO, "damaged",
        f"the zstd stream is truncated: it ends early, somewhere after 0 unpacked bytes; {WHOLE}"),
    "zstd changed": (zstd(PROSE)[:5] + b"\xff" * 20, AUTO, "damaged",
        f"the zstd stream is corrupt, somewhere after 0 unpacked bytes; {WHOLE}"),
    "bomb": (gzip.compress(b"a" * (80 << 20)), AUTO, "too-large",
        "81,558 bytes of gzip unpack to more than 100 times as many; give the file uncompressed if it really is so "
        "regular"),
    "no rows": (b"\n\n", JSONL, "too-short", "the file has no rows; give one JSON object a line"),
    "json": (with_row(12_345, b'{"text": "a" "b"}'), JSONL, "bad-row",
        "row 12,345 is not JSON: expecting ',' delimiter at character 14; write one JSON object a line"),
    "list": (with_row(12_345, b'["a"]'), JSONL, "bad-row",
        "row 12,345 is a list, not an object; write one JSON object a line"),
    "deep": (with_row(3, b'{"text": ' + b"[" * 100_000, 5), JSONL, "bad-row",
        "row 3 is nested too deeply; write one flat JSON object a line"),
    "digits": (with_row(3, b'{"text": ' + b"1" * 5000 + b"}", 5), JSONL, "bad-row",
        "row 3 holds an integer with too many digits; write it as a string"),
    "no text at all": (jsonl([{"body": "a", "stars": 3}]), JSONL, "bad-row",
        "row 1 has no field 'text', it has: 'body', 'stars'; name the field with option text"),
    "no fields": (b"{}\n", JSONL, "bad-row",
        "row 1 has no field 'text', it has: none; name the field with option text"),
    "many fields": (jsonl([{f"f{index}": 1 for index in range(12)}]), JSONL, "bad-row",
        "row 1 has no field 'text', it has: 'f0', 'f1', 'f2', 'f3', 'f4', 'f5', 'f6', 'f7', 'f8', 'f9' and 2 more; "
        "name the field with option text"),
    "no text": (with_row(12_345, b'{"body": "a", "label": "b"}'), JSONL, "bad-row",
        "row 12,345 has no field 'text', it has: 'body', 'label'; give every row one"),
    "null": (with_row(12_345, b'{"text": null}'), JSONL, "bad-row",
        "field 'text' of row 12,345 is null; give every row a text, or leave this one out"),
    "number": (with_row(12_345, b'{"text": 1.5}'), JSONL, "bad-row",
        "field 'text' of row 12,345 is a fraction; give every row a text, or leave this one out"),
    "empty text": (with_row(12_345, b'{"text": " "}'), JSONL, "bad-row",
        "field 'text' of row 12,345 is empty; give every row a text, or leave this one out"),
    "nul in a text": (with_row(12_345, rb'{"text": "a\u0000"}'), JSONL, "bad-row",
        "field 'text' of row 12,345 holds a NUL character; remove it"),
    "surrogate": (with_row(12_345, rb'{"text": "\ud800", "label": "class 0"}'), JSONL, "bad-row",
        r"row 12,345 holds half of a surrogate pair (\ud800 to \udfff alone); write the whole character"),
    "pair": (jsonl([{"text": "a", "second": "b"}, {"text": "a", "second": ""}]), Options("jsonl", pair="second"),
        "bad-row", "field 'second' of row 2 is empty; give every row a text, or leave this one out"),
    "no label": (with_row(12_345, b'{"text": "a"}'), JSONL, "bad-row",
        "label missing in row 12,345: no field 'label', it has: 'text'; give every row one"),
    "null label": (with_row(12_345, b'{"text": "a", "label": null}'), JSONL, "bad-row",
        "label missing in row 12,345: field 'label' is null; give every row one, or leave this one out"),
    "empty label": (table([*some(), {"text": "a", "label": ""}]), CSV, "bad-row",
        "label missing in row 61: field 'label' is empty; give every row one, or leave this one out"),
    "fraction": (with_row(2, b'{"text": "a", "label": 1.0}', 5), JSONL, "bad-labels",
        "field 'label' in row 2 is a fraction; a label is a string, an integer or a boolean"),
    "object": (with_row(2, b'{"text": "a", "label": {}}', 5), JSONL, "bad-labels",
        "field 'label' in row 2 is an object; a label is a string, an integer or a boolean"),
    "long label": (with_row(2, b'{"text": "a", "label": "' + b"x" * 300 + b'"}', 5), JSONL, "bad-labels",
        "field 'label' in row 2 has 300 characters; a label has at most 256"),
    "long number": (with_row(2, b'{"text": "a", "label": ' + b"1" * 300 + b"}", 5), JSONL, "bad-labels",
        "field 'label' in row 2 has 300 characters; a label has at most 256"),
    "nul label": (with_row(2, rb'{"text": "a", "label": "\u0000"}', 5), JSONL, "bad-labels",
        "field 'label' in row 2 holds a NUL character; remove it"),
    "label that comes late": (jsonl([{"text": "a"}, {"text": "b", "label": 1}]), JSONL, "bad-row",
        "row 2 has a field 'label', earlier rows have none; give every row one, or none"),
    "part that comes late": (jsonl([{"text": "a"}, {"text": "b", "part": "test"}]), JSONL, "bad-row",
        "row 2 has a field 'part', earlier rows have none; give every row one, or none"),
    "one class": (jsonl(some(40, 1)), JSONL, "bad-labels",
        "all 40 documents have one label, 'class 0'; give at least two classes"),
    "never in training": (
        jsonl([*({**row, "part": "train"} for row in some(40)),
               *({"text": f"v{i}", "label": "new" if i > 8 else "class 0", "part": "validation"} for i in range(20))]),
        JSONL, "bad-labels",
        "label 'new' stands in no training document, so it can never be predicted; it stands 11 times: "
        "give more documents of it, or leave it out"),
    "few": (jsonl(some(3)), JSONL, "too-short",
        "the alpha part would be empty: there are 3 documents, 0 of them duplicates; "
        "give at least 20 different ones"),
    "few that differ": (jsonl(some(2) * 500), JSONL, "too-short",
        "the alpha part would be empty: there are 1,000 documents, 998 of them duplicates; "
        "give at least 20 different ones"),
    "part": (jsonl([{"text": "a", "part": "noun"}]), JSONL, "bad-row",
        "row 1 names part 'noun'; known: train, validation, test; call the field otherwise if it means something else"),
    "no part": (jsonl([{"text": "a", "part": "train"}, {"text": "a"}]), JSONL, "bad-row",
        "row 2 names no part; known: train, validation, test; call the field otherwise if it means something else"),
    "one part": (ROWS, Options("jsonl", part="train"), "too-short",
        "all 60 rows name the part 'train'; name 'train' and one of 'validation' and 'test', or no part at all"),
    "no training": (
        jsonl([{"text": str(i), "part": "test" if i % 2 else "validation"} for i in range(60)]), JSONL, "too-short",
        "all 60 rows name the part 'validation' and 'test'; "
        "name 'train' and one of 'validation' and 'test', or no part at all"),
    "all held out": (
        jsonl([{"text": str(i % 20), "part": "test" if i < 20 else "train"} for i in range(40)]), JSONL, "too-short",
        "the weights part would be empty: there are 40 documents, 20 of them duplicates and 20 left out, "
        "since they also stand in a later part; give at least 20 different ones of each part"),
    "words": (jsonl([{"w": ["a", "b"], "l": ["X"]}]), Options("jsonl", words="w", labels="l"), "bad-row",
        "row 1 has 2 words and 1 labels; give each word one label"),
    "words missing": (jsonl([{"w": ["a"], "l": ["X"]}, {"w": ["a"]}]), Options("jsonl", words="w", labels="l"),
        "bad-row", "row 2 has no field 'l', it has: 'w'; give every row one"),
    "words that are none": (jsonl([{"w": "a", "l": ["X"]}]), Options("jsonl", words="w", labels="l"), "bad-row",
        "field 'w' of row 1 is a string; give a list"),
    "no words": (jsonl([{"w": [], "l": []}]), Options("jsonl", words="w", labels="l"), "bad-row",
        "field 'w' of row 1 is empty; give every row words, or leave this one out"),
    "word": (jsonl([{"w": ["a", 3], "l": ["X", "Y"]}]), Options("jsonl", words="w", labels="l"), "bad-row",
        "word 2 of row 1 is an integer; give strings with a visible character"),
    "blank word": (jsonl([{"w": ["a", " "], "l": ["X", "Y"]}]), Options("jsonl", words="w", labels="l"), "bad-row",
        "word 2 of row 1 is blank or holds a NUL character; give strings with a visible character"),
    "word's label": (jsonl([{"w": ["a", "b"], "l": ["X", None]}]), Options("jsonl", words="w", labels="l"), "bad-row",
        "label missing in row 1: label of word 2 is null; give every row one, or leave this one out"),
    "no header": (b"\xef\xbb\xbf", CSV, "too-short",
        "the file has no header row; give the names of the columns in the first row"),
    "header alone": (b"text,label\n", CSV, "too-short", "the file has a header but no rows; give one document a row"),
    "header": (b"body,label\na,b\n", CSV, "bad-row",
        "the header has no field 'text', it has: 'body', 'label'; name the field with option text"),
    "doubled": (b"text,text\na,b\n", CSV, "bad-row",
        "the header names column 'text' twice; give each column a name of its own"),
    "ragged": (table(some(12_344)) + b"a,b,c\n", CSV, "bad-row",
        "row 12,345 (line 12,346) has 3 cells, the header has 2 ('text', 'label'); "
        "put cells that hold a delimiter, a quote or a line break in double quotes"),
    "ragged below line breaks": (b'text,label\n"a\nb\nc",1\n\nd\n', CSV, "bad-row",
        "row 2 (line 6) has 1 cells, the header has 2 ('text', 'label'); "
        "put cells that hold a delimiter, a quote or a line break in double quotes"),
    "quote": (b'text,label\n"a" b,1\n', CSV, "bad-row",
        "row 1 (line 2) cannot be read: ',' expected after '\"'; double the quotes within cells in quotes"),
    "quote in the header": (b'"text" b,label\n', CSV, "bad-row",
        "the header cannot be read: ',' expected after '\"'; double the quotes within cells in quotes"),
    "old line ends": (b"text,label\ra,1\rb,2\r", CSV, "bad-row",
        "the header cannot be read: a carriage return (CR) stands outside quotes; end lines with LF or CRLF"),
    "open quote": (b'text,label\na,1\n"b,2\nc,3\n', CSV, "bad-row",
        "row 2 (line 4) cannot be read: unexpected end of data; double the quotes within cells in quotes"),
    "half a token": (bytes(2001), TOKENS, "damaged",
        "the file has 2,001 bytes, which is no multiple of 2, the bytes of uint16; "
        "copy it again, or give the dtype it was written with"),
    "large token": (bytes(3_000_000) + struct.pack("<2H", 999, 1000), TOKENS, "bad-row",
        "token 1,500,001 is 1,000, not below vocab_size 1,000 (byte 3,000,002); "
        "give the tokenizer's vocab_size and dtype, little-endian"),
    "few tokens": (bytes(20), TOKENS, "too-short",
        "the file has 10 tokens, so that a part would be empty; give at least 100"),
    "no tokenizer": (b'{"model": 3}', Options("tokenizer"), "wrong-format",
        "the file is no tokenizer: data did not match any variant of untagged enum ModelUntagged at line 1 column 12; "
        "give the tokenizer.json that the library tokenizers saved"),
    "no json": (PROSE, Options("tokenizer"), "wrong-format",
        "the file is no tokenizer: expected ident at line 1 column 2; "
        "give the tokenizer.json that the library tokenizers saved"),
    "empty tokenizer": (
        json.dumps({"version": "1.0", "model": {"type": "WordLevel", "vocab": {}, "unk_token": "x"}}).encode(),
        Options("tokenizer"), "wrong-format", "the tokenizer's vocabulary is empty; give one that has been trained"),
    "ids beyond all": (word_level({"a": 0, "b": 1 << 21}), Options("tokenizer"), "wrong-format",
        "the tokenizer has id 2,097,152; ids must be below 2,097,152: number them without gaps"),
    "panic when read": (word_level({"a": 0}, normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        Options("tokenizer"), "wrong-format",
        'the file is no tokenizer: Precompiled: Error("Cannot parse precompiled_charsmap", line: 0, column: 0); '
        "give the tokenizer.json that the library tokenizers saved"),
    "panic when used": (word_level({"a": 0}, pre_tokenizer={"type": "FixedLength", "length": 0}),
        Options("tokenizer"), "wrong-format",
        "the file is no tokenizer: chunk size must be non-zero; "
        "give the tokenizer.json that the library tokenizers saved"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_refused_with_place_and_remedy(case: str, tmp_path: Path) -> None:
    content, options, code, message = CASES[case]
    assert refusal(tmp_path, content, options) == (code, message)


@pytest.mark.parametrize("what", ["text", "gzip", "canonical"])
def test_more_than_is_allowed_is_refused(what: str, tmp_path: Path) -> None:
    content = {"text": PROSE, "gzip": gzip.compress(PROSE), "canonical": table([{"text": "x"}] * 300)}[what]
    options = CSV if what == "canonical" else TEXT
    message = "the content is more than 1,000 bytes, the most allowed; give a part of it"
    assert refusal(tmp_path, content, options, max_bytes=1000) == ("too-large", message)


REMEDY = "write one document a row, or give a long text as plain text (format text)"


@pytest.mark.parametrize("format_", ["jsonl", "csv", "tsv"])
def test_a_line_beyond_the_limit_is_refused_without_being_read_whole(
    format_: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw"
    with raw.open("wb") as file:
        file.write(b'{"text": "' if format_ == "jsonl" else b"text\n")
        file.truncate(1 << 31)  # two gigabytes of nothing, which take no room
    read_bytes = 0

    def spaces(*arguments: Any) -> Any:  # NUL bytes would be refused at once
        nonlocal read_bytes
        for block in unpacked(*arguments):
            read_bytes += len(block)
            yield block.replace(b"\0", b"x")

    unpacked = stream.unpacked
    monkeypatch.setattr("nas.ingest.read.unpacked", spaces)
    from nas.ingest.errors import TooLarge
    from nas.ingest.read import ingest

    what = "line 1" if format_ == "jsonl" else "line 2"
    with pytest.raises(TooLarge) as caught:
        ingest(raw, tmp_path / "kept", Options(format_), max_bytes=1 << 40)
    assert str(caught.value) == f"{what} has more than 16,777,216 bytes, the most of a row; {REMEDY}"
    assert read_bytes < stream.MAX_ROW + 3 * stream.BLOCK
    assert not any((tmp_path / "kept").iterdir())


def test_a_row_of_many_lines_is_bounded_too(tmp_path: Path) -> None:
    content = b'text\n"' + b"a line that nobody closes\n" * 700_000
    assert refusal(tmp_path, content, CSV) == (
        "too-large",
        f"row 1 has more than 16,777,216 bytes, the most of a row; {REMEDY}",
    )


def test_a_text_that_is_long_once_written_is_refused(tmp_path: Path) -> None:
    rows_ = [*some(), {"text": "\x01" * 3_000_000, "label": "class 0"}]  # six characters each in JSON
    assert refusal(tmp_path, table(rows_), CSV) == (
        "too-large",
        f"row 61 has more than 16,777,216 bytes, the most of a row; {REMEDY}",
    )


def test_a_row_of_very_many_values_is_refused(tmp_path: Path) -> None:
    values = b'{"text": [' + b"[]," * 4_000_001 + b"[]]}\n"
    message = "row 1 has more than 4,000,000 values; write one document a row"
    assert refusal(tmp_path, values, JSONL) == ("too-large", message)
    assert refusal(tmp_path, b"text\n" + b"," * 4_000_001, CSV) == ("too-large", message)
    assert rows.MAX_VALUES == 4_000_000


def test_a_header_of_a_million_columns_takes_no_hours(tmp_path: Path) -> None:
    header = ",".join(map(str, range(1_000_000)))
    code, message = refusal(tmp_path, f"{header}\n1\n".encode(), CSV)
    assert (code, message[:50]) == ("bad-row", "the header has no field 'text', it has: '0', '1', ")


def test_more_labels_than_are_kept_are_refused(tmp_path: Path) -> None:
    assert fields.MAX_LABELS == 65536
    found = [{"text": f"t{index}", "label": index} for index in range(65537)]
    message = "row 65,537 brings one label more than 65,536, '65536'; name a field of classes, or leave the labels out"
    assert refusal(tmp_path, jsonl(found), JSONL) == ("bad-labels", message)


def test_labels_that_are_long_together_are_refused(tmp_path: Path) -> None:
    found = [{"text": f"t{index}", "label": f"{index:0256}"} for index in range(4097)]
    assert fields.MAX_LABEL_CHARACTERS == 4096 * 256
    message = "row 4,097 brings the labels to more than 1,048,576 characters together; give shorter names, or leave "
    assert refusal(tmp_path, jsonl(found), JSONL) == ("bad-labels", message + "the labels out")


def test_a_rare_label_that_is_dealt_away_from_training_is_named(tmp_path: Path) -> None:
    found = some(400)
    found += [
        {"text": f"rare {index}", "label": f"rare {index}"} for index in range(40)
    ]  # a tenth of which is held out
    code, message = refusal(tmp_path, jsonl(found), JSONL)
    assert code == "bad-labels"
    assert message.startswith("label 'rare ")
    assert "stands in no training document (nor do " in message
    assert dealing.NEEDED == 20
    assert digests.RUN == 1 << 20


def test_a_tokenizer_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    message = "the tokenizer has more than 67,108,864 bytes, the most allowed; give a smaller one"
    found = refusal(tmp_path, b'{"version": "1.0"' + b" " * (1 << 26), Options("tokenizer"))
    assert found == ("too-large", message)
