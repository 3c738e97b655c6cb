"""The standard corpora, from their published files, with their standard parts.

    enwik8, text8            one file of 100,000,000 bytes, cut at 90 and 95 million (Transformer-XL and others)
    wikitext-2, wikitext-103  a folder with three files: wiki.{train,valid,test}.tokens, or of similar names
    mrpc                     a folder with msr_paraphrase_{train,test}.txt, or GLUE's train.tsv and dev.tsv, or all
    sst-2                    a folder with GLUE's train.tsv and dev.tsv

GLUE's test.tsv has no labels and is not read.
"""

from __future__ import annotations

import filecmp
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from nas.ingest.errors import BadRow, WrongFormat, WrongOptions
from nas.ingest.options import CORPORA, HUNDRED_MILLION, STANDARD_BYTES, STANDARD_ENDS, Options
from nas.ingest.stream import BLOCK, lines, whole_characters

Stream = tuple[Iterator[bytes], Options]


def standard(name: str, path: Path) -> Stream:
    """A corpus as one stream, and the options to read it with.

    Args:
        name: one of CORPORA.
        path: of its file or folder.

    Raises:
        WrongOptions: unknown name, or no such files.
        WrongFormat, BadRow: files that are not the published ones, or two that are the same; BadRow while the stream is
            drawn.
    """
    if name not in CORPORA:
        raise WrongOptions(f"unknown corpus {name!r}; known: {', '.join(CORPORA)}")
    if name in HUNDRED_MILLION:
        return _hundred_million(name, path / name if path.is_dir() else path)
    if not path.is_dir():
        raise WrongOptions(f"{path} is no folder; give the folder with the files of {name}")
    return _wikitext(name, path) if name.startswith("wikitext") else _glue(name, path)


def _hundred_million(name: str, path: Path) -> Stream:
    if not path.is_file():
        raise WrongOptions(f"there is no file {path}; give the unpacked file {name}")
    size = path.stat().st_size
    if size != STANDARD_BYTES:
        raise WrongFormat(
            f"{path.name} has {size:,} bytes, {name} has {STANDARD_BYTES:,}; give the published file, unpacked"
        )
    return _blocks([path]), Options("text", "none", corpus=name, ends=STANDARD_ENDS)


def _wikitext(name: str, path: Path) -> Stream:
    """Words as published (.tokens, .txt) keep the corpus's name; raw text has other words, and loses it."""
    names: set[str] = set()
    patterns = ("wiki.{}.tokens", name + "-{}.txt", "wiki.{}.txt", "{}.txt", "wiki.{}.raw", name + "-raw-{}.txt")
    for pattern in patterns:
        files = [path / pattern.format(part) for part in ("train", "valid", "test")]
        names |= {file.name for file in files}
        if all(file.is_file() for file in files):
            _refuse_equal(files)
            sizes = [file.stat().st_size for file in files]
            corpus = None if "raw" in pattern else name
            ends = (sizes[0], sizes[0] + sizes[1])
            return _blocks(files), Options("text", "none", corpus=corpus, ends=ends)
    wanted = ", ".join(patterns[0].format(part) for part in ("train", "valid", "test"))
    there = sorted(file.name for file in path.iterdir() if file.name in names)
    raise WrongOptions(
        f"{path} has {' and '.join(there) or 'none'} of the three files of {name}: {wanted} "
        f"(or {patterns[1].format('train')} and so on); give a folder with all, or add a file you have as a plain text"
    )


def _refuse_equal(files: list[Path]) -> None:
    """A file that stands for two parts would have the test part trained on, and a score that means nothing."""
    for one, other in combinations(files, 2):
        if filecmp.cmp(one, other, shallow=False):
            raise WrongFormat(f"{one.name} and {other.name} hold the same text; give the published files")


def _blocks(files: list[Path]) -> Iterator[bytes]:
    for path in files:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                yield block


@dataclass(frozen=True)
class _Table:
    """One file of documents: the columns that are read, by canonical field, and the part of its rows."""

    file_name: str
    part: str
    columns: Mapping[str, str]


_PAIRS = {"text": "#1 String", "pair": "#2 String", "label": "Quality"}
_SENTENCES = {"text": "sentence", "label": "label"}
_GLUE: Mapping[str, tuple[tuple[_Table, ...], ...]] = {  # sets of files that do, the best first
    "mrpc": (
        (
            _Table("train.tsv", "train", _PAIRS),
            _Table("dev.tsv", "validation", _PAIRS),
            _Table("msr_paraphrase_test.txt", "test", _PAIRS),
        ),
        (_Table("train.tsv", "train", _PAIRS), _Table("dev.tsv", "validation", _PAIRS)),
        (_Table("msr_paraphrase_train.txt", "train", _PAIRS), _Table("msr_paraphrase_test.txt", "test", _PAIRS)),
    ),
    "sst-2": ((_Table("train.tsv", "train", _SENTENCES), _Table("dev.tsv", "validation", _SENTENCES)),),
}


def _glue(name: str, path: Path) -> Stream:
    for tables in _GLUE[name]:
        if all((path / table.file_name).is_file() for table in tables):
            options = Options("jsonl", "none", pair="pair" if name == "mrpc" else None, label="label", corpus=name)
            return _documents(path, tables), options
    known = " or ".join(" and ".join(table.file_name for table in tables) for tables in reversed(_GLUE[name]))
    raise WrongOptions(f"{path} has not the files of {name}: {known}")


def _documents(path: Path, tables: tuple[_Table, ...]) -> Iterator[bytes]:
    for table in tables:
        for row in _rows(path / table.file_name, table.columns):
            line = {name: row[column].strip() for name, column in table.columns.items()} | {"part": table.part}
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _rows(path: Path, columns: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Quotes in these files are part of the text, and often stand alone: a cell is what lies between two tabs."""
    header: list[str] | None = None
    for number, line in enumerate(lines(whole_characters(_blocks([path])))):
        cells = line.removesuffix("\r").split("\t")
        if header is None:
            header = cells
            if missing := [column for column in columns.values() if column not in header]:
                raise WrongFormat(f"{path.name} has no column {missing[0]!r}; give the published file")
        elif len(cells) != len(header):
            raise BadRow(
                f"row {number:,} of {path.name} has {len(cells)} cells, the header has {len(header)}; "
                "give the published file"
            )
        else:
            yield dict(zip(header, cells, strict=True))
