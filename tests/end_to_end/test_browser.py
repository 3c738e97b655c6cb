"""Which browser the tests of the page take, and what they say where there is none."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.end_to_end import browser


def playwright(own: Path) -> Any:
    return SimpleNamespace(chromium=SimpleNamespace(executable_path=str(own)))


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the PATH; nothing can be installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "_installations", lambda: [["false"]])
    return tmp_path


def test_the_systems_chromium_comes_first_and_a_stub_is_passed_over(folder: Path) -> None:
    own = program(folder / "own", "exit 0")
    stub = program(folder / "chromium", "exit 1")
    assert browser.find(playwright(own)) == own
    chrome = program(folder / "google-chrome", "exit 0")
    assert browser.find(playwright(own)) == chrome
    program(stub, "exit 0")
    assert browser.find(playwright(own)) == stub


def test_one_is_installed_where_there_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = folder / "chromium"
    recipe = program(folder / "install", f'printf "#!/bin/sh\\n" > {installed}; /bin/chmod 755 {installed}')
    monkeypatch.setattr(browser, "_installations", lambda: [["no-such-command"], [str(recipe)]])
    assert browser.find(playwright(folder / "own")) == installed


def test_without_any_the_message_says_what_to_do(folder: Path) -> None:
    with pytest.raises(
        browser.NoBrowser, match="no Chromium is here and none could be installed; run `apt-get install"
    ):
        browser.find(playwright(folder / "own"))


def test_apt_get_is_asked_only_as_root(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(folder))
    program(folder / "apt-get", "exit 0")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert browser._installations()[0][0] == "sh"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert [command[1:] for command in browser._installations()] == [["-m", "playwright", "install", "chromium"]]
