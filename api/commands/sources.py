"""What `datasets add` sends: a file as it is, or a folder, a standard corpus or a Hugging Face dataset as a stream."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.client import BLOCK
from api.commands.files import read_json
from api.commands.refuse import Refused
from nas.ingest.options import Options

_TOKENS = ("dtype", "vocab_size", "eos_id")


@dataclass(frozen=True)
class Source:
    """What is sent, and how the service is told to read it."""

    content: Path | Iterable[bytes]
    options: dict[str, Any]


def chosen(
    path: Path | None,
    options: dict[str, Any],
    *,
    corpus: str | None,
    hub: str | None,
    from_disk: Path | None,
    split: str | None,
) -> Source:
    """The one source that the arguments name.

    Raises:
        Refused: none or several, no such file, or an option that says nothing of it.
        InvalidInput: a corpus, folder or dataset that is not there or is not what it should be.
    """
    named = [what for what, value in (("PATH", path), ("--hub", hub), ("--from-disk", from_disk)) if value is not None]
    if len(named) != 1:
        raise Refused(f"{' and '.join(named) or 'nothing'} to add; give one of PATH, --hub and --from-disk")
    if corpus is not None and path is None:
        raise Refused(f"--as {corpus} is for a PATH with the published files; leave it out")
    if split is not None and path is not None:
        raise Refused(f"--split {split} is for --hub and --from-disk; give --part for the part of a file's rows")
    if path is None:
        return _hub(hub, from_disk, split, options)
    if corpus is not None:
        _refuse_options(options, f"the standard corpus {corpus}")
        from nas.ingest.standard import standard

        return _stream(standard(corpus, path), path.name)
    if path.is_dir():
        _refuse_options(options, "a folder, each of whose text files is a document")
        from nas.ingest.folder import folder

        return _stream(folder(path), path.name)
    return plain_file(path, options)


def _refuse_options(options: dict[str, Any], what: str) -> None:
    for name, value in options.items():
        if value not in (None, "auto"):
            raise Refused(f"--{name.replace('_', '-')} {value} says nothing of {what}; leave it out")


def _hub(hub: str | None, from_disk: Path | None, split: str | None, options: dict[str, Any]) -> Source:
    from nas.ingest.hub import hub as of_hub

    read = Options(**{name: options[name] for name in ("text", "pair", "label", "words", "labels", "part")})
    if hub is None:
        assert from_disk is not None
        if not from_disk.is_dir():
            raise Refused(f"no folder {str(from_disk)!r}; give one that Dataset.save_to_disk has written")
        return _stream(of_hub(str(from_disk), read, split=split), from_disk.name)
    name, _, config = hub.partition(":")
    return _stream(of_hub(name, read, config=config or None, split=split), name)


def _stream(found: tuple[Iterator[bytes], Options], name: str) -> Source:
    content, read = found
    options = read.to_json()
    if read.ends is not None:
        options["ends"] = f"{read.ends[0]},{read.ends[1]}"
    return Source(blocks(content), {**options, "file": name})


def blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in larger pieces: rows alone would each be a chunk of the upload."""
    block = bytearray()
    for piece in pieces:
        block += piece
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


def plain_file(file: Path, options: dict[str, Any]) -> Source:
    """A file, or standard input for `-`; token ids with what their FILE.json says, where the options do not.

    Raises:
        Refused: there is no such file.
    """
    if str(file) == "-":
        return Source(iter(lambda: sys.stdin.buffer.read(BLOCK), b""), options)
    if not file.is_file():
        raise Refused(f"no file {str(file)!r}; give a file, a folder of text files, --hub or --from-disk")
    if file.suffix == ".bin" or options.get("format") == "tokens":
        return Source(file, {**options, **_beside(file, options)})
    return Source(file, options)


def _beside(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    """dtype, vocab_size and eos_id of token ids."""
    given = {name: options[name] for name in _TOKENS if options.get(name) is not None}
    if {"dtype", "vocab_size"} <= given.keys():
        return given
    beside = file.with_suffix(".json")
    if not beside.is_file():
        raise Refused(
            f"{file.name}: token ids need {beside.name} beside them, such as "
            '{"dtype": "uint16", "vocab_size": 50257, "eos_id": 50256}; or give --dtype and --vocab-size'
        )
    told = read_json(beside)
    if unknown := sorted(set(told) - set(_TOKENS)):
        raise Refused(f"{beside.name}: unknown member {unknown[0]!r}; known: {', '.join(_TOKENS)}")
    return {**told, **given}
