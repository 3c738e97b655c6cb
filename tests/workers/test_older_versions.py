"""Searches that an older version left half done: refused in words, and never by a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from safetensors.torch import save_file

from nas.errors import SearchFailed
from nas.ingest.card import Card, Dataset
from tests import tiny
from workers.inline import run_local
from workers.trainable import file_sha256


def downgraded(path: Path) -> None:
    """Make a checkpoint one of the format before."""
    with safe_open(path, framework="pt") as file:
        state = json.loads(file.metadata()["state"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (safe_open is no dict)
    save_file(tensors, path, {"state": json.dumps({**state, "format_version": 3})})


def test_a_checkpoint_of_the_format_before_is_refused_in_words(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(tiny.text())
    files = {"mine": Dataset(text, Card.of_text(file_sha256(text), text.stat().st_size))}
    request = tiny.request(task={"dataset": "mine"})
    table, folder = tiny.table(request.space), tmp_path / "search"

    def stop(kind: str, data: dict[str, Any]) -> None:
        if kind == "checkpoint":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_local(request, folder, files, stop, table)
    kept = folder / "trials" / "search-0-0" / "checkpoints.json"
    (saved,) = json.loads(kept.read_text())
    downgraded(kept.parent / saved["path"])
    kept.write_text(json.dumps([{**saved, "sha256": file_sha256(kept.parent / saved["path"])}]))
    with pytest.raises(SearchFailed) as failed:
        run_local(request, folder, files, lambda kind, data: None, table)
    assert str(failed.value) == (
        "trial search-0-0 failed: checkpoint has format_version 3; this code reads 4: go on with the version of "
        "Blockwright that saved it, or submit the search again"
    )
