"""Pictures of the page for README, from a real search: `make screenshots`.

Runs the quickstart (some minutes), a search on an uploaded text that is looked at while it runs, and one that fails.
With --data-dir the searches of that folder are shown, and only what it lacks is run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import nullcontext
from email import message_from_string
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, ViewportSize, expect

from api.examples import PRESETS
from tests.end_to_end.browser import DESKTOP, NoBrowser, chromium, watched
from tests.end_to_end.png import smaller
from tests.end_to_end.service import ROOT, serving

OUT = ROOT / "docs" / "images"
TEXT = "email-sources"
RUNNING_NAME = "the email package"
FAILED_NAME = "on eight accelerators"
SEEN_AT = 0.8  # share of the search's weight updates at which the running one is looked at
PATIENCE_S = 1800


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the pictures")
    parser.add_argument("--data-dir", type=Path, help="data folder to use and keep; left out: a fresh one")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    given = arguments.data_dir
    folder = nullcontext(str(given)) if given else tempfile.TemporaryDirectory(prefix="bw-shots-", dir="/tmp")
    with folder as data_dir:
        Path(data_dir).mkdir(parents=True, exist_ok=True)
        try:
            with chromium() as browser, serving(Path(data_dir).resolve()) as url, httpx.Client(base_url=url) as http:
                take(browser, http, arguments.out)
        except NoBrowser as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def take(browser: Browser, http: httpx.Client, out: Path) -> None:
    text = b"".join(
        path.read_bytes() for path in sorted(Path(message_from_string.__code__.co_filename).parent.glob("*.py"))
    )
    http.post("/api/v1/datasets", params={"name": TEXT}, content=text, headers={"Content-Type": "text/plain"})
    finished = newest(http, "succeeded") or wait(http, submit(http, PRESETS["quickstart"]))
    failed = newest(http, "failed") or wait(
        http, submit(http, {**PRESETS["quickstart"], "name": FAILED_NAME, "resources": {"cpus": 1, "gpus": 8}})
    )
    assert (finished["state"], failed["state"]) == ("succeeded", "failed"), (finished["reason"], failed["state"])
    request = {**PRESETS["quickstart"], "name": RUNNING_NAME}
    request |= {"space": {**request["space"], "n_slots": 8}, "task": {**request["task"], "dataset": TEXT}}
    left = newest(http, "running") or newest(http, "queued")  # of a run of this that was interrupted
    running = left["id"] if left else submit(http, request)
    n_steps = request["trials"]["n_seeds"] * request["method"]["n_steps"]
    wait(http, running, lambda search: search["progress"]["step"] >= SEEN_AT * n_steps)

    def shot(name: str, path: str, height: int = 860, scheme: str = "light", ready: str = "h1") -> None:
        size = ViewportSize(width=DESKTOP["width"], height=height)
        url = str(http.base_url).rstrip("/")
        with watched(browser, url, viewport=size, color_scheme=scheme, reduced_motion="reduce") as tab:
            page = tab.open(path)
            expect(page.locator(ready).first).to_be_visible()
            page.wait_for_timeout(1500)  # curves and the heat map draw themselves after their data
            file = out / f"{name}.png"
            file.write_bytes(smaller(page.screenshot()))
            print(f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}  {file.stat().st_size // 1000} kB")

    shot("running", f"/searches/{running}", 900, ready="canvas")
    shot("list", "/", 560, ready="table, [role=img]")
    http.post(f"/api/v1/searches/{running}/cancel")
    shot("finished", f"/searches/{finished['id']}", 1320, ready="#result")
    shot("finished-dark", f"/searches/{finished['id']}", 1320, scheme="dark", ready="#result")
    shot("failed", f"/searches/{failed['id']}", 560, ready="[role=alert]")
    shot("new", "/new", 1000, ready="textarea")
    shot("texts", f"/datasets?show={TEXT}", 760, ready="pre")
    wait(http, running)


def submit(http: httpx.Client, request: dict[str, Any]) -> str:
    answer = http.post("/api/v1/searches", json=request)
    answer.raise_for_status()
    search_id: str = answer.json()["id"]
    return search_id


def newest(http: httpx.Client, state: str) -> dict[str, Any] | None:
    """The newest search in this state, if there is one."""
    items: list[dict[str, Any]] = http.get("/api/v1/searches", params={"state": state, "limit": 1}).json()["items"]
    return items[0] if items else None


def wait(http: httpx.Client, search_id: str, until: Any = lambda search: False) -> dict[str, Any]:
    """The search once it is as wanted, or has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        search: dict[str, Any] = http.get(f"/api/v1/searches/{search_id}").json()
        if until(search) or search["state"] in ("succeeded", "failed", "cancelled"):
            return search
        assert time.monotonic() < deadline, f"{search['name']} is still {search['state']}, {search['stage']}"
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
