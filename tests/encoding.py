"""Small datasets on disk, with their cards, and what encoded data say when they are read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as LibraryTokenizer

from nas.config.task import Tokenizer
from nas.data.encoded import TOKENIZER, Encoded
from nas.data.parts import Part, Tokens
from nas.ingest.card import Card, Dataset, Settings
from nas.ingest.options import Options
from nas.ingest.read import ingest


def raw(folder: Path, content: bytes, settings: Settings) -> Dataset:
    """Content as it is, however short."""
    digest = settings.digest()
    digest.update(content)
    card = Card(digest.hexdigest(), settings, len(content), n_rows=0)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / card.file_name
    if not path.exists():  # another process may be reading it
        path.write_bytes(content)
    return Dataset(path, card)


def text(folder: Path, content: str, ends: tuple[int, int] | None = None) -> Dataset:
    return raw(folder, content.encode(), Settings(ends=ends))


def documents(folder: Path, rows: Iterable[Mapping[str, Any]], **fields: str) -> Dataset:
    """Documents as ingestion deals them; `fields` are options."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    card = ingest(file, folder, Options(format="jsonl", **fields), max_bytes=1 << 20)
    return Dataset(folder / card.file_name, card)


def chosen(kind: str | Mapping[str, Any]) -> Tokenizer:
    return Tokenizer.model_validate(kind)


def decoded(encoded: Encoded, part: Part) -> str:
    """The text of a part of a stream, by what travels with the data."""
    assert isinstance(part, Tokens)
    if encoded.tokenizer["type"] == "bytes":
        return part.ids.tobytes().decode()
    library = LibraryTokenizer.from_file(str(encoded.folder / TOKENIZER))
    return library.decode(part.ids.tolist(), skip_special_tokens=False)
