from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from api.settings import Access, Settings, is_loopback

TOKEN = "correct-horse-battery-staple"


def test_loopback_needs_no_token(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    assert (settings.host, settings.port, settings.token) == ("127.0.0.1", 8400, None)
    for host in ("localhost", "127.0.0.2", "::1"):
        assert Settings(data_dir=tmp_path, host=host).token is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "lab.example", "", "localhost.example"])
def test_any_other_address_refuses_to_start_without_a_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(ValidationError, match="without a token; set BLOCKWRIGHT_TOKEN or BLOCKWRIGHT_TOKEN_FILE"):
        Settings(data_dir=tmp_path, host=host)
    assert not is_loopback(host)


def test_what_does_not_listen_needs_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children of `serve` have its environment without the token."""
    monkeypatch.setenv("BLOCKWRIGHT_HOST", "0.0.0.0")
    assert Access().token is None


def test_the_token_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKWRIGHT_TOKEN", TOKEN)
    settings = Settings(data_dir=tmp_path, host="0.0.0.0")
    assert settings.token is not None
    assert settings.token.get_secret_value() == TOKEN
    assert TOKEN not in repr(settings)


def test_the_token_comes_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    monkeypatch.setenv("BLOCKWRIGHT_TOKEN_FILE", str(tmp_path / "token"))
    settings = Settings(data_dir=tmp_path, host="0.0.0.0")
    assert settings.token is not None
    assert settings.token.get_secret_value() == TOKEN


def test_further_names_are_separated_by_commas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKWRIGHT_ALLOWED_HOSTS", "search.lab, other.lab")
    assert Settings(data_dir=tmp_path).allowed_hosts == ("search.lab", "other.lab")


@pytest.mark.parametrize(
    ("token", "file", "message"),
    [
        ("short", None, "the token is too short; at least 16 characters"),
        ("", None, "the token is too short; at least 16 characters"),
        ("é" * 20, None, "the token holds a space, a line end or a character beyond ASCII"),
        (f"{TOKEN} ", None, "the token holds a space"),
        (f"{TOKEN}\n{TOKEN}", None, "the token holds a space, a line end"),
        (None, "missing", "cannot read the token file"),
        (TOKEN, "missing", "both BLOCKWRIGHT_TOKEN and BLOCKWRIGHT_TOKEN_FILE are set; one is right"),
    ],
)
def test_a_token_that_guards_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str | None, file: str | None, message: str
) -> None:
    if token is not None:
        monkeypatch.setenv("BLOCKWRIGHT_TOKEN", token)
    if file is not None:
        monkeypatch.setenv("BLOCKWRIGHT_TOKEN_FILE", str(tmp_path / file))
    with pytest.raises(ValidationError, match=message):
        Settings(data_dir=tmp_path)
