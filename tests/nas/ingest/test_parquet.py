"""Parquet: columns of every type that does, and what is said of those that do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from nas.ingest.options import Options
from tests.nas.ingest.files import documents, jsonl, parquet, parquet_of, read, refusal

PARQUET = Options("parquet")
WORDS = Options("parquet", words="w", labels="l")
TEXTS = [f"document {index}" for index in range(60)]


def columns(**found: Any) -> bytes:
    return parquet_of(pyarrow.table(found))


@pytest.mark.parametrize("type_", ["string", "large_string", "string_view"])
def test_strings_of_any_width_are_texts(type_: str, tmp_path: Path) -> None:
    texts = pyarrow.array(TEXTS, getattr(pyarrow, type_)())
    assert read(tmp_path, columns(text=texts), PARQUET) == read(
        tmp_path, jsonl({"text": text} for text in TEXTS), Options("jsonl")
    )


def test_parquet_is_found_by_its_first_bytes(tmp_path: Path) -> None:
    assert read(tmp_path, parquet(documents()), Options()) == read(tmp_path, jsonl(documents()), Options("jsonl"))


def test_dictionaries_integers_and_booleans_are_labels(tmp_path: Path) -> None:
    plain = [f"{index % 2}" for index in range(60)]
    for labels in (pyarrow.array(plain).dictionary_encode(), pyarrow.array([index % 2 for index in range(60)])):
        card, _ = read(tmp_path, columns(text=TEXTS, label=labels), PARQUET)
        assert card.labels == {"0": 30, "1": 30}
    card, _ = read(tmp_path, columns(text=TEXTS, label=[index % 2 == 0 for index in range(60)]), PARQUET)
    assert card.labels == {"false": 30, "true": 30}


def test_lists_are_words_and_their_labels(tmp_path: Path) -> None:
    words = [[text, "ends"] for text in TEXTS]
    card, canonical = read(tmp_path, columns(w=words, l=[[index % 3, 0] for index in range(60)]), WORDS)
    assert card.labels == {"0": 80, "1": 20, "2": 20}
    assert json.loads(canonical.splitlines()[1]) == {"words": ["document 1", "ends"], "labels": ["1", "0"]}


def test_rows_are_numbered_across_groups_and_batches(tmp_path: Path) -> None:
    texts: list[str | None] = [f"t{index}" for index in range(13_000)]
    texts[12_344] = None
    message = "field 'text' of row 12,345 is null; give every row a text, or leave this one out"
    content = parquet_of(pyarrow.table({"text": texts}), row_group_size=5000)
    assert refusal(tmp_path, content, PARQUET) == ("bad-row", message)


def with_bad_string() -> bytes:
    bad = pyarrow.StringArray.from_buffers(
        3, pyarrow.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 1, 2, 3))), pyarrow.py_buffer(b"a\xffb")
    )
    return columns(text=bad)


def doubled() -> bytes:
    return parquet_of(pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 2, names=["text", "text"]))


WRITE_AGAIN = "copy or write it again"
CASES: dict[str, tuple[Callable[[], bytes], Options, str, str]] = {
    "not parquet": (lambda: b"text\n" * 50, PARQUET, "wrong-format",
        "the file is not parquet: it does not begin with PAR1; give another format"),
    "no column": (lambda: columns(body=TEXTS), PARQUET, "bad-row",
        "the schema has no field 'text', it has: 'body'; name the field with option text"),
    "two columns": (doubled, PARQUET, "bad-row", "the file has two columns 'text'; give each column a name of its own"),
    "no rows": (lambda: columns(text=pyarrow.array([], pyarrow.string())), PARQUET, "too-short",
        "the file has columns but no rows; give one document a row"),
    "numbers": (lambda: columns(text=[1, 2]), PARQUET, "bad-row",
        "column 'text' holds int64; text wants strings: convert the column"),
    "bytes": (lambda: columns(text=[b"a"]), PARQUET, "bad-row",
        "column 'text' holds binary; text wants strings: convert the column"),
    "fractions": (lambda: columns(text=["a"], label=[1.0]), PARQUET, "bad-row",
        "column 'label' holds double; label wants strings, integers or booleans: convert the column"),
    "words": (lambda: columns(w=["a"], l=[["b"]]), WORDS, "bad-row",
        "column 'w' holds string; words wants lists of strings: convert the column"),
    "labels": (lambda: columns(w=[["a"]], l=[[0.5]]), WORDS, "bad-row",
        "column 'l' holds list<element: double>; labels wants lists of strings, integers or booleans: "
        "convert the column"),
    "no label": (lambda: columns(text=["a", "b"], label=[1, None]), PARQUET, "bad-row",
        "label missing in row 2: field 'label' is null; give every row one, or leave this one out"),
    "not utf-8": (with_bad_string, PARQUET, "not-utf8", "column 'text' of row 2 is not UTF-8; save it as UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_asked_for_is_refused(case: str, tmp_path: Path) -> None:
    make, options, code, message = CASES[case]
    assert refusal(tmp_path, make(), options) == (code, message)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    whole = parquet([{"text": f"a somewhat longer text {index * 7919}"} for index in range(5000)])
    for content in (whole[:-100], whole[:2000] + bytes(2000) + whole[4000:], b"PAR1" + bytes(100)):
        code, message = refusal(tmp_path, content, PARQUET)
        assert code == "damaged"
        assert message.startswith("the parquet file is damaged: ")
        assert message.endswith(f"; {WRITE_AGAIN}")


def test_one_group_of_many_rows_is_read_in_bounded_memory(tmp_path: Path) -> None:
    before = pyarrow.total_allocated_bytes()
    content = parquet_of(
        pyarrow.table({"text": [f"{index} " * 200 for index in range(40_000)]}), row_group_size=40_000,
        compression="zstd", use_dictionary=False,
    )  # fmt: skip
    most = 0

    def look(_: int) -> None:
        nonlocal most
        most = max(most, pyarrow.total_allocated_bytes() - before)

    from nas.ingest.read import ingest

    raw = tmp_path / "raw"
    raw.write_bytes(content)
    card = ingest(raw, tmp_path / "kept", PARQUET, max_bytes=1 << 30, progress=look)
    assert card.n_bytes > 40_000_000
    assert most < 12 << 20
