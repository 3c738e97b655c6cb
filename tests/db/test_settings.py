from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

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


@pytest.mark.parametrize(
    ("url", "password", "filled_in"),
    [
        ("postgresql+psycopg://user@host/name", "secret", "postgresql+psycopg://user:secret@host/name"),
        ("postgresql://user@host:5433/name", " secret\n", "postgresql://user:secret@host:5433/name"),
        ("postgresql://user@/name?host=/run/pg", "secret", "postgresql://user:secret@/name?host=/run/pg"),
        ("postgresql://user@host/name", "a/b@c:d%", "postgresql://user:a%2Fb%40c%3Ad%25@host/name"),
        ("postgresql://user:a%40b@host/name", "a@b", "postgresql://user:a%40b@host/name"),
    ],
    ids=["plain", "line end", "socket", "signs", "the same twice"],
)
def test_the_password_may_come_from_a_file(tmp_path: Path, url: str, password: str, filled_in: str) -> None:
    file = tmp_path / "password"
    file.write_text(password)
    found = Settings(database_url=url, database_password_file=file).database_url
    assert found == filled_in
    engine = make_engine(found)
    assert engine.url.password == password.strip()
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "password", "message"),
    [
        ("postgresql://user@host/name", None, "cannot read the database password file .*: .*No such file"),
        ("postgresql://user@host/name", "\n", "the database password file .* is empty"),
        (
            "postgresql://host/name",
            "secret",
            "BLOCKWRIGHT_DATABASE_PASSWORD_FILE is set, but the database URL names no",
        ),
        ("", "secret", "BLOCKWRIGHT_DATABASE_PASSWORD_FILE is set, but the database URL names no user; it looks like"),
        ("postgresql://user:other@host/name", "secret", "the database URL carries another password than BLOCKWRIGHT_"),
    ],
    ids=["no file", "empty", "no user", "sqlite", "another"],
)
def test_a_password_file_that_cannot_be_meant_is_refused(
    tmp_path: Path, url: str, password: str | None, message: str
) -> None:
    file = tmp_path / "password"
    if password is not None:
        file.write_text(password)
    with pytest.raises(ValidationError, match=message) as error:
        Settings(database_url=url, database_password_file=file)
    assert "other" not in str(error.value.errors()[0]["msg"]).replace("another", "")
