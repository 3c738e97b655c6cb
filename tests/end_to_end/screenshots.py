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
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, ViewportSize, expect

from nas.presets import PRESETS
from tests.end_to_end.browser import DESKTOP, NoBrowser, chromium, watched
from tests.end_to_end.png import smaller
from tests.end_to_end.service import ROOT, serving

OUT = ROOT / "docs" / "images"
QUICKSTART: dict[str, Any] = PRESETS["quickstart"]
TEXT = "blockwright-nas"
RUNNING_NAME = "our own sources"
FAILED_NAME = "on eight accelerators"
SEEN_AT_STEP = 1700  # of 2 x 1200: alpha has moved, and goes on moving
SETTLE_MS = 1500  # curves and heat map draw themselves after their data
MARGIN = 16  # pixels below the last thing shown
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
    text = b"".join(path.read_bytes() for path in sorted(ROOT.glob("nas/**/*.py")))
    http.post("/api/v1/datasets", params={"name": TEXT}, content=text, headers={"Content-Type": "text/plain"})
    finished = one(http, state="succeeded") or wait(http, submit(http, QUICKSTART))
    assert finished["state"] == "succeeded", finished["reason"]
    failing = {**QUICKSTART, "name": FAILED_NAME, "resources": {"cpus": 1, "gpus": 8}}
    failed = one(http, state="failed") or wait(http, submit(http, failing))
    assert failed["state"] == "failed", failed["state"]
    running = unfinished(http)
    wait(http, running, lambda search: search["stage"] == "searching" and search["progress"]["step"] >= SEEN_AT_STEP)

    def shot(name: str, path: str, ready: str, down_to: str, scheme: str = "light", height: int = 1500) -> None:
        """A picture of the page at `path` once `ready` is there, from its top to the end of `down_to`."""
        size = ViewportSize(width=DESKTOP["width"], height=height)
        url = str(http.base_url).rstrip("/")
        with watched(browser, url, viewport=size, color_scheme=scheme, reduced_motion="reduce") as tab:
            page = tab.open(path)
            expect(page.locator(ready).first).to_be_visible()
            page.wait_for_timeout(SETTLE_MS)
            box = page.locator(down_to).last.bounding_box()
            assert box is not None
            bottom = min(height, round(box["y"] + box["height"]) + MARGIN)
            image = page.screenshot(clip={"x": 0, "y": 0, "width": size["width"], "height": bottom})
            file = out / f"{name}.png"
            file.write_bytes(smaller(image))
            print(f"{file}  {file.stat().st_size // 1000} kB", flush=True)

    shot("running", f"/searches/{running}", "canvas", ".search-main")
    shot("list", "/", "[role=img]", "main > *")
    http.post(f"/api/v1/searches/{running}/cancel")
    shot("finished", f"/searches/{finished['id']}", "#result", "#result")
    shot("finished-dark", f"/searches/{finished['id']}", "#result", "#result", scheme="dark")
    shot("failed", f"/searches/{failed['id']}", "[role=alert]", ".search-head")
    shot("new", "/new", "textarea", ".writing", height=1000)
    shot("datasets", f"/datasets/{TEXT}", "h1", "main section")
    wait(http, running)


def unfinished(http: httpx.Client) -> str:
    """The search to be seen while it runs, taken up where an earlier run of this has left it."""
    left = one(http, name=RUNNING_NAME)
    if left is None or left["state"] in ("succeeded", "failed"):
        space, task = {**QUICKSTART["space"], "n_slots": 8}, {**QUICKSTART["task"], "dataset": TEXT}
        return submit(http, {**QUICKSTART, "name": RUNNING_NAME, "space": space, "task": task})
    if left["state"] == "cancelled":
        http.post(f"/api/v1/searches/{left['id']}/resume").raise_for_status()
    search_id: str = left["id"]
    return search_id


def submit(http: httpx.Client, request: dict[str, Any]) -> str:
    answer = http.post("/api/v1/searches", json=request)
    answer.raise_for_status()
    search_id: str = answer.json()["id"]
    return search_id


def one(http: httpx.Client, **wanted: str) -> dict[str, Any] | None:
    """The newest search that is as wanted, if there is one."""
    items: list[dict[str, Any]] = http.get("/api/v1/searches", params={"limit": 200}).json()["items"]
    return next((each for each in items if wanted.items() <= each.items()), None)


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
