"""A search's folder goes with its row, and a crash in between leaves neither one for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from db import folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = folders.of_search(tmp_path, "a")
    found.mkdir(parents=True)
    (found / "export.zip").write_text("bytes")
    return found


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "searches").iterdir())


def test_a_folder_goes_with_its_row(tmp_path: Path, folder: Path) -> None:
    with folders.removal(tmp_path, "a") as set_aside:
        set_aside()
        assert not folder.exists()
    assert left(tmp_path) == []


def test_a_search_that_never_started_has_no_folder_to_remove(tmp_path: Path) -> None:
    with folders.removal(tmp_path, "a") as set_aside:
        set_aside()


@pytest.mark.parametrize("far", [False, True], ids=["before the row went", "before the commit"])
def test_a_row_that_stays_keeps_its_folder(tmp_path: Path, folder: Path, far: bool) -> None:
    with pytest.raises(RuntimeError, match="no commit"), folders.removal(tmp_path, "a") as set_aside:  # noqa: PT012
        if far:
            set_aside()
        raise RuntimeError("no commit")
    assert (folder / "export.zip").read_text() == "bytes"


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_removal_cut_off_by_a_crash_is_finished_by_what_the_row_says(
    tmp_path: Path, folder: Path, is_committed: bool
) -> None:
    removal = folders.removal(tmp_path, "a")
    removal.__enter__()()  # and never left, as by kill -9
    assert folders.finish(tmp_path, lambda search_id: not is_committed) == []  # somebody may be about it
    assert folders.finish(tmp_path, lambda search_id: not is_committed, older_than_s=0) == ["a"]
    assert left(tmp_path) == ([] if is_committed else ["a"])


def test_a_folder_that_was_not_set_aside_is_never_swept(tmp_path: Path, folder: Path) -> None:
    assert folders.finish(tmp_path, lambda search_id: False, older_than_s=0) == []
    assert folder.exists()
