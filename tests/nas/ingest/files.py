"""Small files in every format, and reading them: what the tests of ingestion share."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from nas.errors import DataError
from nas.ingest.card import Card
from nas.ingest.options import Options
from nas.ingest.read import ingest

MAX_BYTES = 1 << 30


def documents(n: int = 60, classes: int = 3) -> list[dict[str, Any]]:
    """Different documents with labels, of every class as many."""
    return [{"text": f"document {index} says é", "label": f"class {index % classes}"} for index in range(n)]


def jsonl(rows: Iterable[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def table(rows: Sequence[Mapping[str, Any]], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return parquet_of(pyarrow.Table.from_pylist([dict(row) for row in rows]))


def parquet_of(found: Any, **options: Any) -> bytes:
    out = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(found, out, **options)
    written: bytes = out.getvalue().to_pybytes()
    return written


def zstd(content: bytes) -> bytes:
    out = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(out, "zstd") as packed:
        packed.write(content)
    written: bytes = out.getvalue().to_pybytes()
    return written


def packed(content: bytes, compression: str) -> bytes:
    return {"none": bytes, "gzip": gzip.compress, "zstd": zstd}[compression](content)


def read(folder: Path, content: bytes, told: Options, max_bytes: int = MAX_BYTES) -> tuple[Card, bytes]:
    """A file's card and its canonical bytes; nothing else is in the folder."""
    raw = folder / "raw"
    raw.write_bytes(content)
    kept = folder / "kept"
    card = ingest(raw, kept, told, max_bytes=max_bytes)
    assert [path.name for path in kept.iterdir()] == [card.file_name]
    canonical = (kept / card.file_name).read_bytes()
    (kept / card.file_name).unlink()
    return card, canonical


def refusal(folder: Path, content: bytes, told: Options, max_bytes: int = MAX_BYTES) -> tuple[str, str]:
    """Code and message of what is wrong with a file; nothing is left of it."""
    raw = folder / "raw"
    raw.write_bytes(content)
    kept = folder / "kept"
    with pytest.raises(DataError) as caught:
        ingest(raw, kept, told, max_bytes=max_bytes)
    assert not kept.exists() or not any(kept.iterdir())
    assert raw.read_bytes() == content
    assert "\n" not in str(caught.value)
    return caught.value.code, str(caught.value)
