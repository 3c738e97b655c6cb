"""`python -m workers.head`: notes itself in the data folder, then is the head of a local Ray until it ends.

The dispatcher that starts it may be killed at any moment. So the note is written by this process, before anything
else, under a lock that it holds for its life: there is never a head that no note names, and never a second one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from workers import cluster, processes
from workers.lock import Locked, lock

LOCKED_STATUS = 75  # EX_TEMPFAIL: another head has the folder
_PATIENCE_S = 5  # with a head that was ended just now, and is not gone yet


def main() -> None:
    """Command line of the head; what it does not know goes to `ray start`."""
    parser = argparse.ArgumentParser(description="be the head of a local Ray", allow_abbrev=False)
    parser.add_argument("--folder", type=Path, required=True, help="data folder")
    parser.add_argument("--temp-parent", type=Path, required=True, help="where Ray's session folder goes")
    arguments, ray_arguments = parser.parse_known_args()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with lock(arguments.folder / "ray.lock"):
                _start(arguments.folder, arguments.temp_parent, ray_arguments)
        except Locked:
            if time.monotonic() > deadline:
                sys.exit(LOCKED_STATUS)
            time.sleep(0.05)


def _start(folder: Path, temp_parent: Path, ray_arguments: list[str]) -> None:
    temp_dir = tempfile.mkdtemp(prefix="bw-", dir=temp_parent)  # 0700 and of a name nobody can guess
    port = cluster.free_port()
    here = processes.identify(os.getpid())
    try:
        log = os.open(folder / cluster.LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        cluster.write(folder, cluster.Cluster(f"127.0.0.1:{port}", here, temp_dir, os.environ["RAY_AUTH_TOKEN_PATH"]))
    except OSError as error:
        shutil.rmtree(temp_dir, ignore_errors=True)
        sys.exit(f"{error.strerror}: {error.filename}")
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environ["RAY_TMPDIR"] = temp_dir  # before ray is imported; its workers, and so the trials, inherit it
    sys.argv = ["ray", "start", f"--port={port}", f"--temp-dir={temp_dir}", *ray_arguments]
    from ray.scripts.scripts import main as ray

    ray()


if __name__ == "__main__":
    main()
