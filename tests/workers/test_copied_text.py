"""A search keeps the text that it has read: what becomes of the name afterwards changes nothing for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas.data.corpora import fingerprint
from nas.errors import DataError
from tests import tiny
from workers import stages
from workers.folder import FolderStore
from workers.inline import InlineTrials


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "letters.txt"
    path.write_bytes(tiny.text())
    return path


def measure(folder: Path, text: Path, wanted: str | None) -> stages.Inputs:
    request = tiny.request(task={"dataset": "letters", "dataset_fingerprint": wanted})
    table = tiny.table(request.space, request.task.serve[0])
    request = request.model_copy(update={"latency_table": table.id})
    store = FolderStore(folder, {"letters": text}, lambda kind, data: None, table)
    return stages.measure(request, store, InlineTrials())


def test_a_search_reads_its_copy_once_the_text_was_removed(tmp_path: Path, text: Path) -> None:
    folder = tmp_path / "search"
    pinned = measure(folder, text, None).request.task.dataset_fingerprint
    assert pinned == fingerprint(tiny.text())
    text.unlink()
    assert measure(folder, text, pinned).dataset.read_bytes() == tiny.text()


def test_a_search_that_is_pinned_takes_no_other_text(tmp_path: Path, text: Path) -> None:
    """Not that of the name, nor a copy that was damaged."""
    folder = tmp_path / "search"
    pinned = measure(folder, text, None).request.task.dataset_fingerprint
    text.write_bytes(tiny.text(seed=1))
    assert measure(folder, text, pinned).dataset.read_bytes() == tiny.text()
    (folder / "dataset.txt").write_bytes(b"damaged")
    with pytest.raises(
        DataError, match=r"dataset 'letters' has fingerprint [0-9a-f]{12}; the request names [0-9a-f]{12}"
    ):
        measure(folder, text, pinned)
    text.unlink()
    with pytest.raises(DataError, match="dataset 'letters' cannot be read: No such file or directory"):
        measure(folder, text, pinned)
