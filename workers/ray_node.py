"""This machine or container as a node of a Ray cluster of several: started, watched, and ended with its parent.

The local Ray of one machine is `workers.cluster`'s. Here every node names the head's address and presents one token. A
driver needs a node on its own machine, so the dispatcher joins with a node of no CPUs. Such nodes listen on every
interface of the machine, as Ray does; the token and the network around them guard the ports. This file imports no ray.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workers import cluster, processes
from workers.cluster import ClusterError
from workers.settings import Settings

MIN_TOKEN_LENGTH = 16
START_TIMEOUT_S = 180  # as a head's, which may still be starting
STOP_PATIENCE_S = 20  # it takes two to four seconds
_STARTED = "Ray runtime started."
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def command(settings: Settings, *, head: bool, cpus: int, temp_dir: str) -> list[str]:
    """The command line of `ray start`, for this machine.

    Raises:
        ClusterError: no address of the head, or one that cannot be read or resolved.
    """
    host, port = head_address(settings)
    address = settings.ray_node_host or (host if head else _route_to(host, port))
    start = ["--head", f"--port={port}", "--include-dashboard=false"] if head else [f"--address={host}:{port}"]
    return [
        *(sys.executable, "-P", "-m", "workers.ray_node", str(os.getpid()), "start", "--block", *start),
        f"--node-ip-address={_resolved(address)}",
        *("--dashboard-agent-listen-port=0", "--min-worker-port=0", "--max-worker-port=0"),
        *(f"--temp-dir={temp_dir}", f"--num-cpus={cpus}", f"--num-gpus={settings.gpus if cpus else 0}"),
        f"--object-store-memory={settings.object_store_mb * 2**20}",
        *("--disable-usage-stats", "--log-style=record", "--log-color=false"),
    ]


def environment(settings: Settings, temp_dir: str) -> dict[str, str]:
    """What the node and its trials see: an allow-list, and the token's file.

    Raises:
        ClusterError: no token file, one that cannot be read, or a token too short.
    """
    passed_on = cluster.environment(os.environ, token_file(settings), temp_dir)
    return {**passed_on, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}  # 0 keeps to loopback, and lets no node join


def token_file(settings: Settings) -> Path:
    """Raises: ClusterError: as `environment`."""
    path = settings.ray_token_file
    if path is None:
        raise ClusterError("a Ray node needs a token; set BLOCKWRIGHT_RAY_TOKEN_FILE to a file that all nodes have")
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(f"cannot read the Ray token file {path}: {error}") from None
    if len(token) < MIN_TOKEN_LENGTH:
        raise ClusterError(f"the Ray token in {path} is too short; at least {MIN_TOKEN_LENGTH} characters")
    return path.absolute()


def head_address(settings: Settings) -> tuple[str, int]:
    """Host and port of the head. Raises: ClusterError: none is given, or it is none."""
    if settings.ray_address is None:
        raise ClusterError("where is the head? set BLOCKWRIGHT_RAY_ADDRESS, such as ray-head:6379")
    host, _, port = settings.ray_address.rpartition(":")
    if not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise ClusterError(f"{settings.ray_address!r} is no address of a Ray head; it looks like ray-head:6379")
    return host, int(port)


@contextmanager
def running(
    settings: Settings, *, head: bool = False, cpus: int | None = None, on_end: Callable[[], None] = lambda: None
) -> Iterator[subprocess.Popen[bytes]]:
    """A node while the context lasts; it has joined when the context begins.

    Args:
        settings: address of the head, token, resources, temporary folder.
        head: start the cluster instead of joining it.
        cpus: that trials may take here; None: those of the settings.
        on_end: called from a thread when the node ends by itself.

    Raises:
        ClusterError: it did not come up, with the last line it wrote.
    """
    cpus = settings.whole_cpus if cpus is None else cpus
    token_file(settings)  # before a folder is made for it
    temp_dir = tempfile.mkdtemp(prefix="bw-", dir=settings.ray_temp_dir)
    try:
        node = subprocess.Popen(
            command(settings, head=head, cpus=cpus, temp_dir=temp_dir),
            env=environment(settings, temp_dir),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=temp_dir,
        )
        process = processes.identify(node.pid)
        started, stopping, lines = threading.Event(), threading.Event(), []

        def read() -> None:
            assert node.stdout is not None
            with node.stdout as output:
                for line in output:
                    text = line.decode(errors="replace").rstrip()
                    lines.append(text)
                    del lines[:-20]
                    with suppress(OSError):  # whoever read it may be gone
                        print(text, file=sys.stderr, flush=True)
                    if _STARTED in text:
                        started.set()
            node.wait()
            if started.is_set() and not stopping.is_set():
                on_end()
            started.set()

        reader = threading.Thread(target=read, name="ray node", daemon=True)
        reader.start()
        try:
            if not started.wait(START_TIMEOUT_S) or node.poll() is not None:
                raise ClusterError(f"the Ray node did not start: {_reason(lines)}")
            yield node
        finally:
            stopping.set()
            node.terminate()  # this one alone, which ends the others in order: a raylet asked by itself drains for 30 s
            with suppress(subprocess.TimeoutExpired):
                node.wait(STOP_PATIENCE_S)
            processes.end_session(process, patience_s=0)
            node.wait()
            reader.join()
    finally:
        shutil.rmtree(temp_dir, ignore_errors=True)


def run(settings: Settings, *, head: bool) -> int:
    """A node until SIGTERM or SIGINT; returns the exit status: 1 when it ended by itself.

    Raises:
        ClusterError: it did not come up.
    """
    asked, ended = threading.Event(), threading.Event()

    def ask(*_: object) -> None:
        asked.set()
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask)
    with running(settings, head=head, on_end=ended.set):
        ended.wait()
    return 0 if asked.is_set() else 1


def _reason(lines: list[str]) -> str:
    """The line that says what went wrong: the last one of an exception, else the last one."""
    said = [line for line in lines if line.strip()]
    errors = [line for line in said if "Error: " in line]
    return (errors or said or ["it wrote nothing"])[-1][:300]


def _resolved(host: str) -> str:
    try:
        return socket.gethostbyname(host)
    except OSError as error:
        raise ClusterError(f"cannot resolve {host!r}: {(error.strerror or str(error)).lower()}") from None


def _route_to(host: str, port: int) -> str:
    """This machine's own address on the way to the head; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_resolved(host), port))
        except OSError as error:
            raise ClusterError(f"no way to the Ray head at {host}: {(error.strerror or str(error)).lower()}") from None
        address: str = probe.getsockname()[0]
        return address


def main() -> None:
    """`python -m workers.ray_node PARENT start ...`: Ray's command line; ends in order with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(sys.argv.pop(1)):
        sys.exit("its parent has ended")
    from ray.scripts.scripts import main as ray

    ray()


if __name__ == "__main__":
    main()
