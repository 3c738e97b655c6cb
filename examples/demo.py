"""`make demo`: from nothing to a model that runs without Blockwright, through the service.

Starts the service on a free port of loopback with a data folder of its own, submits quickstart.json by REST, follows
it, downloads the export, and lets `python model.py` write 200 bytes in an interpreter that has only torch and
safetensors. Leaves build/demo/ with result.json and the unpacked export, and nothing running, also after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from rich.console import Console

from api.client import Client
from api.show import print_result
from api.watching import Display, Picture
from nas.export.check import unpacked

ROOT = Path(__file__).resolve().parent.parent
START_S = 60  # an idle machine takes two seconds; a busy one must not fail
STOP_S = 60


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """Run `blockwright serve` for the length of the block; yields its address.

    Its own process session, so that Ctrl-C in the terminal reaches this program alone, which then ends it in good
    order: searches stop at a checkpoint, Ray ends.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BLOCKWRIGHT_")}
    command = [sys.executable, "-m", "api.cli", "serve", "--port", "0", "--data-dir", str(folder)]
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield _address(process, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _address(process: subprocess.Popen[bytes], folder: Path) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        if (folder / "address").exists():
            return (folder / "address").read_text().strip()
        time.sleep(0.1)
    log = (folder / "service.log").read_text()
    raise SystemExit(f"the service did not start within {START_S} s; its last words:\n{log[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--request", type=Path, default=ROOT / "examples" / "quickstart.json", help="search to submit")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "demo", help="folder that is made anew")
    parser.add_argument("--prompt", default="The ", help="what the exported model continues")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    # SIGTERM ends the demo as Ctrl-C does, so that the service is always ended; and Ctrl-C does also where a shell
    # started the demo in the background, with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)

    out = arguments.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    (out / "data").mkdir(parents=True)
    request = json.loads(arguments.request.read_text())
    try:
        with service(out / "data") as address, Client(address) as client:
            console.print(f"service at {address}, data in {out / 'data'}")
            search = client.submit(request)
            console.print(f"submitted search {search['id']} ({search['name']})")
            console.print(f"watch it at {address}/searches/{search['id']}", soft_wrap=True)
            with Display(Picture(search["request"]), console) as display:
                for event in client.events(search["id"]):
                    display.tell(event["type"], event["data"], datetime.fromisoformat(event["at"]).timestamp())
            final = client.get(search["id"])
            if final["state"] != "succeeded":
                raise SystemExit(f"the search {final['state']}: {final['reason']}")
            result = client.result(search["id"])
            archive = client.download(search["id"], out)
    except KeyboardInterrupt:
        raise SystemExit("interrupted; the service has been stopped") from None

    export = out / "export"
    with zipfile.ZipFile(archive) as file:
        file.extractall(export)
    (out / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print_result(result, console)
    console.print("\n200 bytes by `python model.py`, in a folder and a Python of its own with torch and safetensors:\n")
    with unpacked(archive) as alone:
        console.print(alone.sample(arguments.prompt, 200), markup=False, highlight=False, soft_wrap=True)
    console.print(f"result: {out / 'result.json'}\nmodel:  {export}")


if __name__ == "__main__":
    main()
