"""Texts to train on: the two that every Python carries, and files registered by name. No torch here.

The built-in corpora are read from the running Python, so they need no download and are the same bytes on every
read of one installation; another Python version has another fingerprint.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from nas.catalog import DATASETS
from nas.errors import DataError, InvalidInput
from nas.text import check_text

STDLIB_LIMIT_BYTES = 16_000_000

# Tests, installed packages and caches. What the build of this very machine left is skipped as well, below: config-*
# and _sysconfigdata_* hold its paths.
_SKIPPED_FOLDERS = frozenset(
    {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "lib-dynload"}
)


def read_corpus(name: str, files: Mapping[str, Path] | None = None) -> bytes:
    """The whole text of a dataset, as UTF-8 bytes.

    Args:
        name: a built-in corpus, or a key of `files`.
        files: registered text files by name.

    Raises:
        InvalidInput: no such dataset, or a registered name that is built in.
        DataError: the file cannot be read, or it is empty or not text.
    """
    files = files or {}
    for taken in files:
        if taken in DATASETS:
            raise InvalidInput(f"dataset {taken!r} is built in; register the file under another name")
    if name in files:
        try:
            corpus = files[name].read_bytes()
        except OSError as error:
            raise DataError(f"dataset {name!r} cannot be read: {error.strerror}: {files[name]}") from None
    elif name == "python-docs":
        corpus = _python_docs()
    elif name == "python-stdlib":
        corpus = _python_stdlib(Path(sysconfig.get_path("stdlib")))
    else:
        raise InvalidInput(f"unknown dataset {name!r}; known: {', '.join(sorted([*DATASETS, *files]))}")
    check_text(corpus)
    return corpus


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
