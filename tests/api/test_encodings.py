"""The encodings of a dataset: told from the cards in the cache, and removed with the dataset; damage is passed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nas.config.task import Tokenizer
from nas.data.encode import encode
from nas.ingest.card import Card
from tests.api.running import Running
from tests.api.test_datasets import ROOT
from tests.api.test_uploads import JSONL, post


def encoded(service: Running, added: dict[str, Any], *tokenizers: str) -> Path:
    """What a search would have left in the cache."""
    cache = service.data_dir / "encoded"
    given = {name: value for name, value in added["card"].items() if name != "majority"}
    deal = None if added["kind"] == "text" else _deal(service, added["name"])
    card = Card.from_json({**given, "fingerprint": added["fingerprint"], "deal": deal})
    for tokenizer in tokenizers:
        encode(service.data_dir / "datasets" / card.file_name, card, Tokenizer(type=tokenizer), cache)  # type: ignore[arg-type]
    return cache


def _deal(service: Running, name: str) -> list[int]:
    from db import datasets
    from db.engine import reading

    with reading(service.engine) as connection:
        card = datasets.get(connection, name).card
    assert card is not None
    found: list[int] = card["deal"]
    return found


def test_encodings_are_shown_and_go_with_the_dataset(service: Running) -> None:
    rows = post(service, JSONL, "rows", format="jsonl").json()
    text = post(service, b"a line of text\n" * 1000, "text").json()
    cache = encoded(service, rows, "bytes", "words")
    encoded(service, text, "bytes")
    shown = service.http.get(f"{ROOT}/rows").json()["encodings"]
    assert [each["tokenizer"]["type"] for each in shown] == ["words", "bytes"]
    assert shown[0]["vocab_size"] < shown[1]["vocab_size"] == 256
    assert list(shown[1]["n_tokens"]) == ["weights", "alpha", "validation", "test"]
    assert sum(shown[1]["n_tokens"].values()) > sum(shown[0]["n_tokens"].values()) > 2000
    assert service.http.delete(f"{ROOT}/rows").status_code == 204
    (left,) = [path for path in cache.iterdir() if not path.name.startswith(".")]
    assert json.loads((left / "card.json").read_text())["fingerprint"] == text["fingerprint"]


def test_what_cannot_be_read_in_the_cache_is_passed_over(service: Running, tmp_path: Path) -> None:
    rows = post(service, JSONL, "rows", format="jsonl").json()
    cache = encoded(service, rows, "bytes")
    for name, content in (
        ("damaged", "{"), ("list", "[]"), ("other", '{"fingerprint": "x"}'),
        ("older", json.dumps({"fingerprint": rows["fingerprint"]})),
    ):  # fmt: skip
        (cache / name).mkdir()
        (cache / name / "card.json").write_text(content)
    (cache / "empty").mkdir()
    (cache / "linked").symlink_to(tmp_path)
    (cache / "file").touch()
    assert len(service.http.get(f"{ROOT}/rows").json()["encodings"]) == 1
    assert service.http.delete(f"{ROOT}/rows").status_code == 204
    assert sorted(path.name for path in cache.iterdir() if not path.name.startswith(".")) == [
        "damaged", "empty", "file", "linked", "list", "other",
    ]  # fmt: skip
