"""Opens the page in the user's browser, where there is one to open it in."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping


def can_open(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether a window can appear in front of the user.

    Without a display Python would start a browser of the terminal, which takes the service's terminal over. BROWSER is
    the user's own choice, and how editors forward addresses from a remote machine.
    """
    if environment.get("BROWSER"):
        return True
    if platform in ("darwin", "win32"):
        return not environment.get("SSH_CONNECTION")
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def open_page(url: str, environment: Mapping[str, str]) -> None:
    """Ask the system to show the address; returns at once, and a browser that fails disturbs nobody.

    A process of its own in a session of its own: Ctrl-C that ends the service leaves the browser alone, and what the
    browser inherits is the environment given here.
    """
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "webbrowser", url],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    threading.Thread(target=child.wait, name="browser", daemon=True).start()
