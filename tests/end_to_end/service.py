"""The whole service as `blockwright serve` starts it, in a data folder of its own, on a Ray that is there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.cluster import Cluster, python_path

PATIENCE_S = 60
ROOT = Path(__file__).parents[2]


@contextmanager
def serving(data_dir: Path, ray: Cluster | None = None, **variables: str) -> Iterator[str]:
    """The address of a service that ends in good order with the context.

    Args:
        data_dir: its data folder.
        ray: the cluster to join; None: the service starts one of its own.
        variables: further settings, such as BLOCKWRIGHT_TOKEN.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BLOCKWRIGHT_")}
    environment |= {"PYTHONPATH": python_path(), **variables}
    if ray is not None:
        environment |= {"BLOCKWRIGHT_RAY_ADDRESS": ray.address, "BLOCKWRIGHT_RAY_TOKEN_FILE": str(ray.token_file)}
    address = data_dir / "address"
    address.unlink(missing_ok=True)  # of one that was killed
    command = [sys.executable, "-m", "api.cli", "serve", "--port", "0", "--data-dir", str(data_dir)]
    with (data_dir / "service.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not address.exists():
            said = (data_dir / "service.log").read_text()
            assert process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)
        yield address.read_text().strip()
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
