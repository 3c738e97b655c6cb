"""A search keeps the data that it has read: what becomes of the name and the cache afterwards changes nothing."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from nas.config.task import Tokenizer
from nas.data.corpora import fingerprint, text_file
from nas.errors import DataError
from nas.ingest.card import Dataset
from tests import tiny
from workers.data import open_parts, prepare
from workers.folder import FolderStore
from workers.inline import InlineTrials
from workers.stages.measure import measure as measuring
from workers.stages.passed_on import Inputs


def measure(folder: Path, files: dict[str, Dataset], wanted: str | None) -> Inputs:
    request = tiny.request(task={"dataset": "letters", "dataset_fingerprint": wanted})
    table = tiny.table(request.space, request.task.serve[0])
    request = request.model_copy(update={"latency_table": table.id})
    store = FolderStore(folder, files, lambda kind, data: None, table)
    return measuring(request, store, InlineTrials())


def read(inputs: Inputs) -> bytes:
    assert inputs.data.folder is not None
    return (inputs.data.folder / "tokens.bin").read_bytes()


def test_a_search_reads_its_copy_once_the_text_was_removed(tmp_path: Path) -> None:
    folder, letters = tmp_path / "search", text_file(tiny.text(), tmp_path)
    pinned = measure(folder, {"letters": letters}, None).request.task.dataset_fingerprint
    assert pinned == fingerprint(tiny.text())
    letters.path.unlink()
    shutil.rmtree(folder / "encoded")
    assert read(measure(folder, {}, pinned)) == tiny.text()


def test_a_search_that_is_pinned_takes_no_other_text(tmp_path: Path) -> None:
    """Not that of the name, nor a copy that was damaged."""
    folder, letters = tmp_path / "search", text_file(tiny.text(), tmp_path)
    pinned = measure(folder, {"letters": letters}, None).request.task.dataset_fingerprint
    other = {"letters": text_file(tiny.text(seed=1), tmp_path)}
    assert read(measure(folder, other, pinned)) == tiny.text()
    (folder / "data" / "tokens.bin").chmod(0o600)
    (folder / "data" / "tokens.bin").unlink()
    (folder / "data" / "tokens.bin").write_bytes(b"damaged")
    with pytest.raises(
        DataError, match=r"dataset 'letters' has fingerprint [0-9a-f]{12}; the request names [0-9a-f]{12}"
    ):
        measure(folder, other, pinned)


def test_another_tokenizer_is_no_copy_of_the_same_data(tmp_path: Path) -> None:
    folder, letters = tmp_path / "search", text_file(tiny.text(), tmp_path)
    first = measure(folder, {"letters": letters}, None).request
    table = tiny.table(first.space, first.task.serve[0])
    store = FolderStore(folder, {"letters": letters}, lambda kind, data: None, table)
    task = first.task.model_copy(update={"tokenizer": Tokenizer(type="characters"), "sizes": None})
    found = prepare(first.model_copy(update={"task": task}), store)
    assert found.request.task.vocab_size < 30  # the letters, and what is not one of them


def test_a_trial_takes_no_other_data_than_its_search(tmp_path: Path) -> None:
    request = measure(tmp_path / "search", {"letters": text_file(tiny.text(), tmp_path)}, None).request
    other = measure(tmp_path / "other", {"letters": text_file(tiny.text(seed=1), tmp_path)}, None)
    with pytest.raises(DataError, match=r"^the data of dataset 'letters' have changed since the search began$"):
        open_parts(request, str(other.data.folder))


def test_a_trial_whose_batch_a_sample_has_raised_beyond_the_data_is_refused(tmp_path: Path) -> None:
    found = measure(tmp_path / "search", {"letters": text_file(tiny.text(), tmp_path)}, None)
    method = found.request.method.model_copy(update={"batch_size": 500})
    with pytest.raises(DataError, match=r"^the alpha part has 3,600 tokens; 500 windows of 16 tokens need at least 8,"):
        open_parts(found.request.model_copy(update={"method": method}), str(found.data.folder))


def test_copies_take_no_space_where_links_are_and_do_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = text_file(tiny.text(), tmp_path)
    measure(tmp_path / "search", {"letters": letters}, None)
    assert (tmp_path / "search" / "data" / "tokens.bin").samefile(letters.path)

    def refused(source: object, target: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr("os.link", refused)
    found = measure(tmp_path / "elsewhere", {"letters": letters}, None)
    assert read(found) == tiny.text()
    assert not (tmp_path / "elsewhere" / "data" / "tokens.bin").samefile(letters.path)
