"""`blockwright serve --open`: a browser of ours, which writes down what it was given."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from api.browser import can_open
from tests.api.test_serving import address, blockwright, wait_for


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"BROWSER": "firefox"}, "linux", True),
        ({}, "darwin", True),
        ({}, "win32", True),
        ({"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, "darwin", False),
    ],
    ids=str,
)
def test_a_browser_is_opened_where_a_window_can_appear(
    environment: dict[str, str], platform: str, expected: bool
) -> None:
    assert can_open(environment, platform) is expected


def test_serve_opens_the_page_and_gives_the_browser_no_token(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    browser = tmp_path / "browser"
    browser.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib, sys\n"
        f"part = pathlib.Path({str(seen)!r} + '.part')\n"
        "part.write_text(json.dumps([sys.argv[1:], dict(os.environ)]))\n"
        f"part.rename({str(seen)!r})\n"
    )
    browser.chmod(0o755)
    variables = {"BROWSER": f"{browser} %s", "BLOCKWRIGHT_TOKEN": "correct-horse-battery"}
    with blockwright("serve", "--open", "--port", "0", data_dir=tmp_path / "data", **variables):
        url = address(tmp_path / "data")
        wait_for(seen.exists, "the browser is opened")
    arguments, environment = json.loads(seen.read_text())
    assert arguments == [f"{url}/"]
    assert "BLOCKWRIGHT_TOKEN" not in environment


def test_without_a_display_serve_says_where_the_page_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    with blockwright("serve", "--open", "--port", "0", data_dir=tmp_path) as process:
        url = address(tmp_path)
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert f"no display here; open {url}/ in a browser" in out
    assert process.returncode == 0, err
