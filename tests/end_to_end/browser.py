"""A Chromium for tests and screenshots, and everything that a page complains of while it is driven."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    Response,
    ViewportSize,
    expect,
    sync_playwright,
)

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",  # containers give it no user namespaces; it loads our own pages only
    "--disable-gpu",
    "--disable-dev-shm-usage",  # /dev/shm is 64 MB in many containers
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
INSTALL_S = 300
PATIENCE_MS = 20_000  # of each expectation; a busy machine is slow, not wrong
DESKTOP = ViewportSize(width=1280, height=860)


class NoBrowser(Exception):
    """There is no Chromium, and none could be installed: one line that says what to do."""


def find(playwright: Playwright) -> Path:
    """The system's Chromium, else Playwright's, else one that is installed now.

    Raises:
        NoBrowser: nothing of that worked.
    """
    own = Path(playwright.chromium.executable_path)
    for command in (None, *_installations()):
        if command is not None and not _succeeds(*command):
            continue
        system = [path for name in NAMES if (path := shutil.which(name))]
        for path in [*system, *([str(own)] if own.exists() else [])]:
            if _succeeds(path, "--version"):  # a distribution's stub only tells how to install one
                return Path(path)
    raise NoBrowser(
        "no Chromium is here and none could be installed; run `apt-get install chromium` as root, or "
        "`python -m playwright install --with-deps chromium`"
    )


def _installations() -> list[list[str]]:
    """Commands that may bring a Chromium, to be tried in this order."""
    found = []
    if os.geteuid() == 0 and shutil.which("apt-get"):
        install = "apt-get install --yes --no-install-recommends chromium"
        found.append(["sh", "-c", f"{install} || (apt-get update && {install})"])
    return [*found, [sys.executable, "-m", "playwright", "install", "chromium"]]


def _succeeds(*command: str) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=INSTALL_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running Chromium with a fresh profile.

    Raises:
        NoBrowser: none was found.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(playwright), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page, and what went wrong on it: console errors, failed or refused requests, breaches of the content policy."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def allow(self, *parts: str) -> None:
        """Of the complaints so far, drop those that hold all parts: what a test has provoked.

        Raises:
            AssertionError: there is none.
        """
        kept = [each for each in self.complaints if not all(part in each for part in parts)]
        assert len(kept) < len(self.complaints), f"nothing was said of {' '.join(parts)}: {self.complaints}"
        self.complaints[:] = kept

    def on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"console {message.type}: {message.text} {message.location.get('url', '')}")

    def on_page_error(self, error: Any) -> None:
        self.complaints.append(f"uncaught: {error}")

    def on_failed(self, request: Request) -> None:
        # What the page itself gave up, such as the stream of a search that is no longer looked at, has not failed.
        if "ERR_ABORTED" not in (request.failure or ""):
            self.complaints.append(f"failed: {request.method} {request.url}: {request.failure}")

    def on_response(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"refused: {response.request.method} {response.url}: {response.status}")


# A breach is an event on the document; the console shows it too, but not for every kind.
_POLICY = "document.addEventListener('securitypolicyviolation', e => console.error('content policy: ' + e.blockedURI))"


@contextmanager
def watched(browser: Browser, url: str, **options: Any) -> Iterator[Watched]:
    """A page in a context of its own.

    Raises:
        AssertionError: at the end, if anything was complained of that was not allowed.
    """
    options.setdefault("viewport", DESKTOP)
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    context.add_init_script(_POLICY)
    try:
        page = context.new_page()
        found = Watched(page, url)
        page.on("console", found.on_console)
        page.on("pageerror", found.on_page_error)
        page.on("requestfailed", found.on_failed)
        page.on("response", found.on_response)
        yield found
        assert found.complaints == []
    finally:
        context.close()
