"""The service as plain processes under test: `blockwright api` and `blockwright dispatch` on one folder, or `serve`.

The test is the init system: it starts each process, kills it, and starts it again. Every process that descends from
them is known by a marker in its environment or by its process session, never by a name.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from sqlalchemy import Engine

from api.client import Client
from db import checkpoints, events, migrate, queue, searches, trials
from db.engine import make_engine, reading
from workers import cluster, processes
from workers.cluster import Cluster, python_path
from workers.settings import Settings

MARK = "BLOCKWRIGHT_TEST_MARK"
PATIENCE_S = 600  # nothing here is timed: a machine that does much beside is no failure


@dataclass
class UnderTest:
    """A data folder and the processes started for it.

    Args:
        folder: data folder; may lie on a small disk.
        extra: more variables for every process.
    """

    folder: Path
    extra: Mapping[str, str] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    port: int = field(default_factory=lambda: free_port())
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    sessions: set[int] = field(default_factory=set)  # of every runner and Ray head that was seen

    def __post_init__(self) -> None:
        # Short, since socket paths are limited to 107 bytes, and of its own, so that left-overs can be told.
        self.ray_temp = Path(tempfile.mkdtemp(prefix="bwt-"))
        self.logs = Path(tempfile.mkdtemp(prefix="bwt-logs-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.client = Client(self.address, patience_s=PATIENCE_S)

        self.url = self.extra.get("BLOCKWRIGHT_DATABASE_URL", Settings(data_dir=self.folder).database_url)
        self.engine: Engine = make_engine(self.url)

    def migrate(self) -> None:
        """What `serve` does by itself."""
        migrate.upgrade(self.url)

    # -- the init system ----------------------------------------------------------------------------------------------

    def start(self, *commands: str) -> None:
        """Start `api`, `dispatch` or `serve`, and wait until the REST service answers if it is among them."""
        for command in commands:
            arguments = ["--port", str(self.port)] if command in ("api", "serve") else []
            with (self.logs / f"{command}.log").open("ab") as log:
                self.children[command] = subprocess.Popen(
                    [sys.executable, "-P", "-m", "api.cli", command, *arguments],
                    env=self.environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        if "api" in commands or "serve" in commands:
            self.wait_until(self.answers, "the REST service answers")

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BLOCKWRIGHT_")}
        return {
            **kept,
            "BLOCKWRIGHT_DATA_DIR": str(self.folder),
            "BLOCKWRIGHT_RAY_TEMP_DIR": str(self.ray_temp),
            "BLOCKWRIGHT_CPUS": "2",
            "PYTHONPATH": python_path(),
            MARK: self.mark,
            **self.extra,
        }

    def kill(self, command: str) -> None:
        """kill -9 the process itself, and wait for it."""
        self.children[command].kill()
        self.children[command].wait()

    @staticmethod
    def kill_pid(pid: int) -> None:
        """kill -9 a process that may just have gone by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/healthz", trust_env=False, timeout=5).is_success
        except httpx.TransportError:
            return False

    def wait_until(self, holds: Callable[[], object], what: str) -> None:
        """Wait; when it takes too long, or a process under test has ended by itself, fail with what was logged."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            ended = [name for name, child in self.children.items() if child.poll() is not None]
            assert not ended, f"{ended} ended while waiting until {what}\n{self.said()}"
            assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}\n{self.said()}"
            time.sleep(0.05)

    def said(self) -> str:
        """The ends of all logs."""
        found = [*self.logs.glob("*.log"), self.folder / "ray.log", *self.folder.glob("searches/*/runner.log")]
        return "\n".join(f"--- {path}\n{path.read_text(errors='replace')[-3000:]}" for path in found if path.is_file())

    def end_in_good_order(self) -> None:
        """SIGTERM to what was started, which then leaves nothing."""
        self.client.close()
        for child in self.children.values():
            child.terminate()
        assert [child.wait(timeout=PATIENCE_S) for child in self.children.values()] == [0] * len(self.children)
        self.assert_nothing_runs()

    def stop(self) -> None:
        """End everything in good order, and by force what does not end."""
        self.client.close()
        self.engine.dispose()
        for child in self.children.values():
            if child.poll() is None:
                child.terminate()
        try:
            for child in self.children.values():
                child.wait(timeout=PATIENCE_S)
        finally:
            for pid in self.left_over():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for child in self.children.values():
                child.wait()
            shutil.rmtree(self.ray_temp, ignore_errors=True)
            shutil.rmtree(self.logs, ignore_errors=True)

    # -- what it runs -------------------------------------------------------------------------------------------------

    def search(self, search_id: str) -> searches.Search:
        with reading(self.engine) as connection:
            return searches.get(connection, search_id)

    def trials(self, search_id: str) -> list[trials.Trial]:
        with reading(self.engine) as connection:
            return trials.of_search(connection, search_id)

    def events(self, search_id: str) -> list[events.Event]:
        with reading(self.engine) as connection:
            return events.after(connection, search_id, limit=100_000)

    def has_ended(self, search_id: str) -> bool:
        return self.search(search_id).state in searches.TERMINAL

    def wait_for_end(self, search_id: str) -> None:
        self.wait_until(lambda: self.has_ended(search_id), f"search {search_id} has ended")

    def wait_for_news(self, search_id: str, kind: str) -> None:
        """Until there is a new event of this type; a search that has ended has no news."""
        last = self.search(search_id).last_event

        def is_there() -> bool:
            assert not self.has_ended(search_id), f"{self.search(search_id).reason}\n{self.said()}"
            with reading(self.engine) as connection:
                return any(each.type == kind for each in events.after(connection, search_id, last, limit=1000))

        self.wait_until(is_there, f"search {search_id} has another event {kind}")

    def head(self) -> Cluster | None:
        """The live Ray head, read without touching anything."""
        path = self.folder / "ray.json"
        try:
            data = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        found = Cluster(**{**data, "process": processes.ProcessId(**data["process"])})
        self.sessions.add(found.process.pid)
        return found if found.alive else None

    def runner_pid(self, search_id: str) -> int | None:
        """The live runner of a search."""
        with reading(self.engine) as connection:
            found = [each.runner for each in queue.running(connection) if each.lease.search_id == search_id]
        if not found or found[0] is None:
            return None
        self.sessions.add(found[0].pid)
        return found[0].pid if processes.alive(processes.ProcessId(found[0].pid, found[0].started_at)) else None

    def trial_pids(self) -> list[int]:
        """Processes of Ray that hold a trial at this moment."""
        head = self.head()
        found = []
        for pid in processes.members(head.process.pid) if head else []:
            with contextlib.suppress(psutil.NoSuchProcess):
                if "ray::ImplicitFunc" in " ".join(psutil.Process(pid).cmdline()):
                    found.append(pid)
        return found

    def dispatcher_of_serve(self) -> list[int]:
        """The dispatcher that `serve` has started."""
        serve = psutil.Process(self.children["serve"].pid)
        return [child.pid for child in serve.children() if child.status() != psutil.STATUS_ZOMBIE]

    # -- what is left -------------------------------------------------------------------------------------------------

    def left_over(self) -> list[int]:
        """Live processes with the marker, or of a session seen, apart from those the test has started itself."""
        own = {child.pid for child in self.children.values() if child.poll() is None}
        found = set()
        for session in self.sessions:
            found.update(processes.members(session))
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                marked = self.mark.encode() in Path(f"/proc/{process.pid}/environ").read_bytes()
                if marked and process.status() != psutil.STATUS_ZOMBIE:
                    found.add(process.pid)
        return sorted(found - own)

    def assert_nothing_runs(self) -> None:
        """After the end: no process, no lock that is held, no session folder of Ray."""
        deadline = time.monotonic() + 60
        while left := self.left_over():
            assert time.monotonic() < deadline, [(pid, psutil.Process(pid).cmdline()) for pid in left]
            time.sleep(0.1)
        for path in self.folder.glob("*.lock"):
            with path.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert [path.name for path in self.ray_temp.iterdir()] == []
        assert not (self.folder / "ray.json").exists()

    def assert_only_checkpoints_that_count(self, search_id: str) -> None:
        """Of a search that has ended: each file in its trials' folders is one that a row names, and there are two."""
        with reading(self.engine) as connection:
            rows = {
                trial.id: [row.path for row in checkpoints.of_trial(connection, trial.id)]
                for trial in trials.of_search(connection, search_id)
            }
        kept = {str(self.folder / path) for paths in rows.values() for path in paths[:2]}
        folder = self.folder / "searches" / search_id
        found = {str(path) for path in (folder / "trials").rglob("*") if path.is_file()}
        assert found == kept
        assert not (self.folder / "tune" / search_id).exists()


@contextmanager
def under_test(folder: Path, **options: Any) -> Iterator[UnderTest]:
    """A service whose processes end with the context."""
    found = UnderTest(folder, **options)
    try:
        yield found
    finally:
        found.stop()


class Following(threading.Thread):
    """A client that follows a search from its beginning, over whatever happens to the api."""

    def __init__(self, service: UnderTest, search_id: str) -> None:
        super().__init__(name="client", daemon=True)
        self._client = Client(service.address, patience_s=PATIENCE_S)
        self._search_id = search_id
        self.seen: list[dict[str, Any]] = []
        self.problem: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            with self._client:
                for event in self._client.events(self._search_id):
                    self.seen.append(event)
        except Exception as error:  # noqa: BLE001 - told in the main thread
            self.problem = error


def free_port() -> int:
    """Below those that the system gives to connections: it is bound again after each kill."""
    while True:
        port = secrets.choice(range(20_000, 32_000))
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def free_cpus(head: Cluster) -> float:
    """What Ray has to give at this moment, asked by a driver in a process of its own."""
    code = (
        "import os, sys; from workers.tuning import connect; connect(sys.argv[1]);"
        "import ray; print('free', ray.available_resources().get('CPU', 0))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, head.address],
        env={**cluster.environment(os.environ, head.token_file, head.temp_dir)},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    ).stdout
    return float(said.rsplit("free", 1)[1])
