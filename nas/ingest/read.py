"""From a file in any format to a dataset: the canonical file and its card; or one line that says why not."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from nas.ingest.card import Card, Kind, Settings
from nas.ingest.documents import read_documents
from nas.ingest.errors import WrongFormat
from nas.ingest.options import HUNDRED_MILLION, STANDARD_ENDS, Compression, Options
from nas.ingest.parquet import parquet_rows
from nas.ingest.plain import read_text
from nas.ingest.rows import csv_rows, jsonl_rows
from nas.ingest.sink import Sink
from nas.ingest.stream import found_compression, head, lines, unpacked, whole_characters
from nas.ingest.tokenizer_file import read_tokenizer
from nas.ingest.tokens import read_tokens

Progress = Callable[[int], None]
SCRATCH = ".ingest-"  # beginning of the name of a folder that is there only while a file is read


def ingest(
    raw: Path,
    folder: Path,
    options: Options,
    *,
    max_bytes: int,
    keep_raw: bool = True,
    progress: Progress | None = None,
) -> Card:
    """Read, check and count a file, and write its canonical form as `folder / card.file_name`; all or nothing.

    Args:
        raw: the file as it came.
        folder: of the datasets; made if need be.
        max_bytes: that the content may have, unpacked, and the canonical file.
        keep_raw: False: where the raw file is canonical already it is moved into the folder, not copied.
        progress: told now and then how many bytes of the raw file have been read.

    Raises:
        DataError: options or a file that cannot be used; nothing is left in the folder.
        OSError: of the disk.
    """
    options.check()
    folder.mkdir(parents=True, exist_ok=True)
    options = _found_format(raw, options)
    compression: Compression = "none"
    if options.format != "parquet":
        told = "none" if options.format == "tokens" and options.compression == "auto" else options.compression
        compression = found_compression(raw, told)  # ids of tokens may look like a compressed file's first bytes
    settings = _settings(options)
    with _scratch(folder) as scratch:
        written = scratch / "canonical"
        moves = not keep_raw and settings.kind != "documents" and compression == "none" and _can_move(raw, folder)
        with Sink(None if moves else written, settings, max_bytes) as sink:
            card = _read(raw, options, compression, sink, scratch, max_bytes, progress)
        os.replace(raw if moves else written, folder / card.file_name)
        _sync(folder)
    return card


def _found_format(raw: Path, options: Options) -> Options:
    """Without "auto"."""
    is_parquet = head(raw).startswith(b"PAR1")
    if options.format == "auto":
        options = replace(options, format="parquet" if is_parquet else "text")
        options.check()
    if options.format == "parquet" and not is_parquet:
        raise WrongFormat("the file is not parquet: it does not begin with PAR1; give another format")
    return options


def _settings(options: Options) -> Settings:
    kinds: dict[str, Kind] = {"text": "text", "tokens": "tokens", "tokenizer": "tokenizer"}
    return Settings(
        kinds.get(options.format, "documents"),
        STANDARD_ENDS if options.corpus in HUNDRED_MILLION else options.ends,
        options.corpus,
        options.dtype,
        options.vocab_size,
        options.eos_id,
    )


def _read(
    raw: Path,
    options: Options,
    compression: Compression,
    sink: Sink,
    scratch: Path,
    max_bytes: int,
    progress: Progress | None,
) -> Card:
    if options.format == "parquet":
        return read_documents(*parquet_rows(raw, options, progress), sink, scratch)
    content = unpacked(raw, compression, max_bytes, progress)
    if options.format == "tokens":
        return read_tokens(content, sink)
    blocks = whole_characters(content)
    if options.format == "tokenizer":
        return read_tokenizer(blocks, sink)
    if options.format == "text":
        return read_text(blocks, sink)
    if options.format == "jsonl":
        return read_documents(*jsonl_rows(lines(blocks), options), sink, scratch)
    delimiter = "," if options.format == "csv" else "\t"
    return read_documents(*csv_rows(lines(blocks), delimiter, options), sink, scratch)


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A folder of our own. Not `tempfile`'s: ended right after it has made one, a process would leave that behind."""
    scratch = folder / f"{SCRATCH}{uuid.uuid4().hex}"
    try:
        scratch.mkdir(0o700)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _can_move(raw: Path, folder: Path) -> bool:
    return raw.is_file() and not raw.is_symlink() and raw.stat().st_dev == folder.stat().st_dev


def _sync(folder: Path) -> None:
    """Make a rename durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
