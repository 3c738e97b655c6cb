from __future__ import annotations

import pytest

from db.files import relative


def test_path_is_stored_with_single_slashes() -> None:
    assert relative("searches//a/./export.zip") == "searches/a/export.zip"


@pytest.mark.parametrize("path", ["", ".", "/etc/passwd", "../x", "a/../../x", "a\\..\\x", "a\0b"])
def test_path_outside_the_folder_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="must be relative to the data folder and stay inside it"):
        relative(path)
