from __future__ import annotations

from pathlib import Path

import pytest

from db.engine import make_engine, reading
from db.settings import Settings


def test_environment_names_folder_and_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BLOCKWRIGHT_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("BLOCKWRIGHT_DATABASE_URL", raising=False)
    assert Settings().data_dir == tmp_path
    assert Settings().database_url == f"sqlite:///{tmp_path}/blockwright.db"
    monkeypatch.setenv("BLOCKWRIGHT_DATABASE_URL", "postgresql+psycopg://user:secret@host/name")
    assert Settings().database_url == "postgresql+psycopg://user:secret@host/name"


def test_folder_is_absolute_and_home_is_expanded() -> None:
    assert Settings(data_dir=Path("here")).data_dir == Path.cwd() / "here"
    assert Settings(data_dir=Path("~/there")).data_dir == Path.home() / "there"


def test_the_file_lies_in_the_folder_whatever_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "a?b#c%41 ü"
    folder.mkdir()
    engine = make_engine(Settings(data_dir=folder, database_url="").database_url)
    with reading(engine):
        assert (folder / "blockwright.db").exists()
    engine.dispose()


def test_printed_settings_hide_the_password() -> None:
    assert "secret" not in repr(Settings(database_url="postgresql+psycopg://user:secret@host/name"))
