"""Texts to train on that every Python carries. No torch here.

The built-in corpora are read from the running Python, so they need no download and are the same bytes on every
read of one installation; another Python version has another fingerprint.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Collection
from pathlib import Path

from nas.catalog import DATASETS, TASKS
from nas.errors import DataError, InvalidInput
from nas.ingest.card import Card, Dataset
from nas.ingest.options import Options
from nas.ingest.read import ingest
from nas.text import check_text

STDLIB_LIMIT_BYTES = 16_000_000

# Tests, installed packages and caches. What the build of this very machine left is skipped as well, below: config-*
# and _sysconfigdata_* hold its paths.
_SKIPPED_FOLDERS = frozenset(
    {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "lib-dynload"}
)


def read_corpus(name: str) -> bytes:
    """The whole text of a built-in corpus, as UTF-8 bytes."""
    assert name in DATASETS
    corpus = _python_docs() if name == "python-docs" else _python_stdlib(Path(sysconfig.get_path("stdlib")))
    check_text(corpus)
    return corpus


def built_in(name: str, folder: Path, known: Collection[str] = ()) -> Dataset:
    """A built-in corpus as a file in `folder`, with a card as an upload has.

    Raises:
        InvalidInput: no such corpus; the line tells the built-in ones and `known`.
    """
    if name not in DATASETS:
        raise InvalidInput(f"unknown dataset {name!r}; known: {', '.join(sorted([*DATASETS, *TASKS, *known]))}")
    folder.mkdir(parents=True, exist_ok=True)
    raw = folder / f".{name}.{os.getpid()}"
    try:
        raw.write_bytes(read_corpus(name))
        card = ingest(raw, folder, Options(format="text", compression="none"), max_bytes=2**40, keep_raw=False)
    finally:
        raw.unlink(missing_ok=True)
    return Dataset(folder / card.file_name, card)


def text_file(text: bytes, folder: Path) -> Dataset:
    """A text that is at hand as a dataset, in a file of `folder`."""
    card = Card.of_text(fingerprint(text), len(text))
    path = folder / card.file_name
    if not path.exists() or path.stat().st_size != len(text):
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_bytes(text)
        part.replace(path)
    return Dataset(path, card)


def fingerprint(corpus: bytes) -> str:
    """sha256 of the text, 64 hexadecimal digits."""
    return hashlib.sha256(corpus).hexdigest()


def _python_docs() -> bytes:
    from pydoc_data.topics import topics  # 0.5 MB of literals: only for who asks

    return "\n\n".join(topics[topic].strip() for topic in sorted(topics)).encode() + b"\n"


def _python_stdlib(folder: Path) -> bytes:
    """Sources below `folder` in the order of their relative paths, whole files only, up to the limit.

    A file that is not UTF-8 text is left out: replaced bytes would be text that nobody wrote.
    """
    texts: list[bytes] = []
    size = 0
    for path in _sources(folder):
        text = path.read_bytes()
        try:
            check_text(text)
        except DataError:
            continue
        if size + len(text) > STDLIB_LIMIT_BYTES:
            break
        texts.append(text)
        size += len(text)
    return b"".join(texts)


def _sources(folder: Path) -> list[Path]:
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith("config-")]
        found += [
            Path(parent, name) for name in files if name.endswith(".py") and not name.startswith("_sysconfigdata_")
        ]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())
