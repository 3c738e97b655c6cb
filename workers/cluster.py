"""The local Ray: started once per data folder, adopted by whoever comes next, ended by pid.

`ray start --head --block` runs in a process session of its own (`workers.head`), so it outlives a killed dispatcher;
its address, pid and start time lie in `ray.json` in the data folder. Everything listens on loopback and asks for a
token. This file imports no ray: it only runs its command line.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from workers import processes
from workers.settings import Settings

START_TIMEOUT_S = 180  # 4 s on an idle machine, over a minute on one with ten times too much to do
LOG = "ray.log"
_STARTED = "Ray runtime started."
# The trials inherit the raylet's environment, so it starts from an allow-list: no database address, no secrets.
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV")


_children: dict[int, subprocess.Popen[bytes]] = {}  # heads started by this process, which has to wait for them


class ClusterError(RuntimeError):
    """Ray could not be started or reached; one line that a person can act on."""


class Unwanted(ClusterError):
    """Whoever wanted Ray was asked to stop while it started."""


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


def start(settings: Settings, is_unwanted: Callable[[], bool] = lambda: False) -> Cluster:
    """Adopt the folder's live head, or start one.

    Args:
        settings: data folder, resources.
        is_unwanted: asked while it starts, which takes seconds to minutes; a head that is unwanted by then is ended.

    Raises:
        ClusterError: Ray did not come up, with the last line it wrote.
        Unwanted: it was told to be.
        OSError: the data folder cannot be written.
    """
    found = find(settings.data_dir)
    if found is not None:
        return found
    folder = settings.data_dir
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    token_file = _token_file(folder)
    command = [
        *(sys.executable, "-P", "-m", "workers.head", f"--folder={folder}", f"--temp-parent={settings.ray_temp_dir}"),
        *("--head", "--block", "--node-ip-address=127.0.0.1", "--include-dashboard=false"),
        *("--dashboard-agent-listen-port=0", "--min-worker-port=0", "--max-worker-port=0"),
        *(f"--num-cpus={settings.whole_cpus}", f"--num-gpus={settings.gpus}"),
        f"--object-store-memory={settings.object_store_mb * 2**20}",
        *("--disable-usage-stats", "--log-style=record", "--log-color=false"),
    ]
    head = subprocess.Popen(
        command,
        env=environment(os.environ, token_file, None),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,  # until it has opened its log
        start_new_session=True,
        cwd=folder,
    )
    assert head.stderr is not None
    _children[head.pid] = head
    with head.stderr:
        try:
            found = _wait(folder, head, is_unwanted)
        except ClusterError:
            noted = _noted(folder)
            if noted is not None and noted.process.pid == head.pid:
                stop(noted, folder)
            _forget(head)
            raise
    if found.process.pid != head.pid:
        _forget(head)
    return found


def _forget(head: subprocess.Popen[bytes]) -> None:
    """Of a process that did not become the head."""
    head.kill()
    head.wait()
    _children.pop(head.pid, None)


def _wait(folder: Path, head: subprocess.Popen[bytes], is_unwanted: Callable[[], bool]) -> Cluster:
    """The head once it is up: this one, or one that a dispatcher started just before it was killed."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        ended = head.poll() is not None
        noted = _noted(folder)
        if noted is not None and noted.alive and _is_up(folder):
            return noted
        if is_unwanted():
            raise Unwanted("ray is no longer wanted")
        other = noted is not None and noted.alive and noted.process.pid != head.pid
        if (ended and not other) or time.monotonic() > deadline:
            lines = [line for line in _log_of(folder).splitlines() if line.strip()] if noted is not None else []
            if ended and noted is None and head.stderr is not None:
                lines = head.stderr.read().decode(errors="replace").splitlines()
            raise ClusterError(f"ray did not start: {lines[-1] if lines else 'it wrote nothing'} (see {folder / LOG})")
        time.sleep(0.1)


def find(data_dir: Path) -> Cluster | None:
    """The folder's live head; the leavings of a dead one are removed."""
    noted = _noted(data_dir)
    if noted is None:
        return None
    if noted.alive and _is_up(data_dir):
        return noted
    stop(noted, data_dir)
    return None


def _noted(data_dir: Path) -> Cluster | None:
    try:
        data = json.loads((data_dir / "ray.json").read_text())
    except FileNotFoundError:
        return None
    return Cluster(**{**data, "process": processes.ProcessId(**data["process"])})


def _is_up(data_dir: Path) -> bool:
    return _STARTED in _log_of(data_dir)


def _log_of(data_dir: Path) -> str:
    try:
        return (data_dir / LOG).read_text(errors="replace")
    except FileNotFoundError:
        return ""


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


def free_port() -> int:
    """A free loopback port outside 10002-19999, where Ray refuses one that workers may want."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if not 10002 <= port <= 19999:
            return port
