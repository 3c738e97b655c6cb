"""A folder of text files as one dataset: a file is a document."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from nas.errors import DataError
from nas.ingest.errors import TooLarge, WrongOptions
from nas.ingest.options import Options
from nas.ingest.stream import MAX_ROW, whole_characters
from nas.text import TooShort

SAVED = ("dataset_dict.json", "dataset_info.json")  # of the library datasets


def folder(path: Path) -> tuple[Iterator[bytes], Options]:
    """The files below a folder as JSON lines, in the order of their paths, and the options to read them with.

    Hidden files and folders, symbolic links and files of nothing but white space are passed over.

    Raises:
        WrongOptions: there is no such folder, or one of another kind.
        DataError: while the stream is drawn, with the file's name: it is not UTF-8, too large, or there is none.
    """
    if not path.is_dir():
        raise WrongOptions(f"{path} is no folder; give a folder of text files")
    if any((path / name).is_file() for name in SAVED):
        raise WrongOptions(f"{path} is what Dataset.save_to_disk wrote, not a folder of texts; give it to --from-disk")
    return _lines(path), Options("jsonl", "none")


def _lines(path: Path) -> Iterator[bytes]:
    n_files = 0
    for file in _files(path):
        text = _text(file, str(file.relative_to(path)))
        if text and not text.isspace():
            n_files += 1
            yield json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n"
    if not n_files:
        raise TooShort(f"{path} has no text files; give a folder with one file for each document")


def _files(path: Path) -> Iterator[Path]:
    """Sorted by name folder by folder, so that the order is the same everywhere."""
    with os.scandir(path) as found:
        entries = sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def _text(path: Path, name: str) -> str:
    if (size := path.stat().st_size) > MAX_ROW // 2:  # quoted as JSON it may be twice as long
        raise TooLarge(
            f"file {name!r} has {size:,} bytes, a document has at most {MAX_ROW // 2:,}; "
            "give it alone as a plain text, or cut it"
        )
    with path.open("rb") as file:
        try:
            return b"".join(whole_characters([file.read()])).decode().removeprefix("\ufeff")
        except DataError as error:
            raise type(error)(f"file {name!r}: {error}") from None
