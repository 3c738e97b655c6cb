"""The local Ray: started once per data folder, adopted by whoever comes next, ended by pid.

`ray start --head --block` runs in a process session of its own, so it outlives a killed dispatcher; its address, pid
and start time lie in `ray.json` in the data folder. Everything listens on loopback and asks for a token. This file
imports no ray: it only runs its command line.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from workers import processes
from workers.settings import Settings

START_TIMEOUT_S = 60
_STARTED = "Ray runtime started."
# The trials inherit the raylet's environment, so it starts from an allow-list: no database address, no secrets.
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV")


_children: dict[int, subprocess.Popen[bytes]] = {}  # heads started by this process, which has to wait for them


class ClusterError(RuntimeError):
    """Ray could not be started or reached; one line that a person can act on."""


@dataclass(frozen=True)
class Cluster:
    """A Ray head of ours.

    Args:
        address: host:port of its control service, always loopback.
        process: pid and start time of `ray start --block`, leader of its session.
        temp_dir: Ray's session files; short, since socket paths are limited to 107 bytes.
        token_file: what every client must present, 0600.
    """

    address: str
    process: processes.ProcessId
    temp_dir: str
    token_file: str

    @property
    def alive(self) -> bool:
        return processes.alive(self.process)


def start(settings: Settings) -> Cluster:
    """Adopt the folder's live head, or start one.

    Raises:
        ClusterError: Ray did not come up, with the last line it wrote.
    """
    found = find(settings.data_dir)
    if found is not None:
        return found
    folder = settings.data_dir
    folder.mkdir(parents=True, exist_ok=True)
    token_file = _token_file(folder)
    temp_dir = tempfile.mkdtemp(prefix="bw-", dir=settings.ray_temp_dir)  # 0700 and of a name nobody can guess
    port = _free_port()
    command = [
        *(sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", "--head", "--block"),
        *("--node-ip-address=127.0.0.1", f"--port={port}", "--include-dashboard=false"),
        *("--dashboard-agent-listen-port=0", "--min-worker-port=0", "--max-worker-port=0"),
        *(f"--temp-dir={temp_dir}", f"--num-cpus={settings.whole_cpus}", f"--num-gpus={settings.gpus}"),
        f"--object-store-memory={settings.object_store_mb * 2**20}",
        *("--disable-usage-stats", "--log-style=record", "--log-color=false"),
    ]
    log = folder / "ray.log"
    with log.open("wb") as output:
        head = subprocess.Popen(
            command,
            env=environment(os.environ, token_file, temp_dir),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
        )
    _children[head.pid] = head
    cluster = Cluster(f"127.0.0.1:{port}", processes.identify(head.pid), temp_dir, str(token_file))
    write(folder, cluster)  # before it is ready: if we die now, the next one finds and ends it
    deadline = time.monotonic() + START_TIMEOUT_S
    while _STARTED not in log.read_text(errors="replace"):
        if head.poll() is not None or time.monotonic() > deadline:
            lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            stop(cluster, folder)
            raise ClusterError(f"ray did not start: {lines[-1] if lines else 'it wrote nothing'} (see {log})")
        time.sleep(0.1)
    return cluster


def find(data_dir: Path) -> Cluster | None:
    """The folder's live head; the leavings of a dead one are removed."""
    path = data_dir / "ray.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text())
    cluster = Cluster(**{**data, "process": processes.ProcessId(**data["process"])})
    if cluster.alive and _STARTED in (data_dir / "ray.log").read_text(errors="replace"):
        return cluster
    stop(cluster, data_dir)
    return None


def write(data_dir: Path, cluster: Cluster) -> None:
    """Note the head in the data folder, atomically."""
    part = data_dir / f".ray.json.{os.getpid()}"
    part.write_text(json.dumps(asdict(cluster)))
    part.replace(data_dir / "ray.json")


def stop(cluster: Cluster, data_dir: Path) -> None:
    """End the head by pid and remove its session files. Never `ray stop`: that ends other people's Ray too."""
    # On SIGTERM the raylet drains for up to 30 s; whatever ran has been stopped, so nobody waits for that here.
    processes.end_session(cluster.process, patience_s=2)
    child = _children.pop(cluster.process.pid, None)
    if child is not None:
        child.wait()
    shutil.rmtree(cluster.temp_dir, ignore_errors=True)
    (data_dir / "ray.json").unlink(missing_ok=True)


def environment(base: Mapping[str, str], token_file: Path | str, temp_dir: str | None) -> dict[str, str]:
    """What Ray's processes, and so the trials, see of the environment.

    Args:
        base: where the allow-listed variables are taken from.
        token_file: of the cluster.
        temp_dir: of the cluster; None for one that is not ours.
    """
    passed_on = {name: base[name] for name in _PASSED_ON if name in base}
    return {
        **passed_on,
        **client_environment(token_file),
        **({"RAY_TMPDIR": temp_dir} if temp_dir else {}),
        # Without this Ray binds its control service and raylet to every interface, whatever the node's address.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",  # a trial sets its own number of threads; two spinning pools are 10x slower than one
        "PYTHONPATH": python_path(),
    }


def python_path() -> str:
    """This process's own import path, so that a child imports the same code wherever it starts."""
    return os.pathsep.join(path for path in sys.path if path)


def client_environment(token_file: Path | str | None) -> dict[str, str]:
    """What a driver needs to be let in."""
    shared = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    if token_file is None:
        return shared
    return {**shared, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token_file)}


def _token_file(folder: Path) -> Path:
    path = folder / "ray.token"
    if not path.exists():
        part = folder / f".ray.token.{os.getpid()}"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        part.replace(path)
    return path.resolve()


def _free_port() -> int:
    """A free loopback port outside 10002-19999, where Ray refuses one that workers may want."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if not 10002 <= port <= 19999:
            return port
