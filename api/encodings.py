"""What has been encoded so far, in the cache that all searches share: read and removed here, written by `nas.data`.

A folder `encoded/<key>/` of the data folder holds a `card.json` beside its arrays. What cannot be read is left out: it
may be half removed, or of another version.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from api import dataset_schemas, regular

FOLDER = "encoded"
_CARD = "card.json"
_MAX_CARD_BYTES = 2**24  # which a million characters of labels do not reach


def of_dataset(data_dir: Path, fingerprint: str) -> list[dataset_schemas.Encoding]:
    """Every encoding of the content with this fingerprint, the smallest vocabulary first."""
    found = []
    for _, card in _cards(data_dir, fingerprint):
        try:
            found.append(dataset_schemas.Encoding.model_validate(card))
        except ValidationError:
            continue
    return sorted(found, key=lambda each: (each.vocab_size, json.dumps(each.tokenizer, sort_keys=True)))


def remove(data_dir: Path, fingerprint: str) -> None:
    """Remove the encodings of a dataset that has gone; searches keep hard links of their own."""
    for folder, _ in _cards(data_dir, fingerprint):
        shutil.rmtree(folder, ignore_errors=True)


def _cards(data_dir: Path, fingerprint: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for folder in sorted((data_dir / FOLDER).glob("*")):
        if folder.is_symlink():
            continue
        text = regular.first_bytes(folder / _CARD, _MAX_CARD_BYTES)
        try:
            card = json.loads(text or b"")
        except ValueError:
            continue
        if isinstance(card, dict) and card.get("fingerprint") == fingerprint:
            yield folder, card
