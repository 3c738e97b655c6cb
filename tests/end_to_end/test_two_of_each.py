"""Two dispatchers and two apis over one PostgreSQL and one Ray cluster, as plain processes on one shared folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy import Engine

from db import events, queue, searches
from db.engine import make_engine, reading
from db.lease import Runner
from tests import tiny
from tests.postgresql import Server
from workers.cluster import Cluster, python_path

pytestmark = pytest.mark.ray
PATIENCE_S = 200.0  # a busy machine is not a failure
CPUS = 2.0
ROOT = "/api/v1/searches"


@dataclass
class Deployment:
    """One database, one data folder, one cluster, and what was started over them."""

    folder: Path
    url: str
    ray: Cluster
    engine: Engine = field(init=False)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = make_engine(self.url)

    def start(self, *command: str) -> tuple[subprocess.Popen[bytes], Path]:
        """A process of `blockwright`, and the log it writes."""
        log = self.folder / f"{command[0]}-{len(self.started)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "api.cli", *command],
                env={
                    **{name: value for name, value in os.environ.items() if not name.startswith("BLOCKWRIGHT_")},
                    "BLOCKWRIGHT_DATA_DIR": str(self.folder),
                    "BLOCKWRIGHT_DATABASE_URL": self.url,
                    "BLOCKWRIGHT_RAY_ADDRESS": self.ray.address,
                    "BLOCKWRIGHT_RAY_TOKEN_FILE": self.ray.token_file,
                    "BLOCKWRIGHT_CPUS": str(CPUS),
                    "BLOCKWRIGHT_LEASE_S": "100",  # nothing here dies; a slow machine must not look like it
                    "PYTHONPATH": python_path(),
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return process, log

    def api(self) -> tuple[subprocess.Popen[bytes], str]:
        """A REST service, and its address."""
        process, log = self.start("api", "--port", "0")
        until(lambda: "answers at" in log.read_text() or process.poll() is not None, log.read_text)
        found = re.search(r"answers at (\S+)", log.read_text())
        assert found is not None, log.read_text()
        return process, found[1]

    def dispatcher(self) -> subprocess.Popen[bytes]:
        process, log = self.start("dispatch")
        until(lambda: "dispatching" in log.read_text() or process.poll() is not None, log.read_text)
        assert process.poll() is None, log.read_text()
        return process

    def search(self, search_id: str) -> searches.Search:
        with reading(self.engine) as connection:
            return searches.get(connection, search_id)

    def running(self) -> dict[str, queue.Running]:
        with reading(self.engine) as connection:
            return {each.lease.search_id: each for each in queue.running(connection)}

    def owner(self, search_id: str) -> int | None:
        """The pid of the dispatcher that has the search; None while it does not run."""
        found = self.running().get(search_id)
        return None if found is None else int(found.owner.split(":")[1])

    def runner(self, search_id: str) -> Runner | None:
        found = self.running().get(search_id)
        return None if found is None else found.runner

    def told(self, search_id: str) -> list[events.Event]:
        with reading(self.engine) as connection:
            return events.after(connection, search_id, limit=100_000)

    def wait(self, search_id: str, is_there: Callable[[], object]) -> None:
        log = self.folder / "searches" / search_id / "runner.log"

        def said() -> str:
            search = self.search(search_id)
            return f"{search.state} {search.stage} {search.reason}\n{log.read_text()[-2000:] if log.exists() else ''}"

        until(lambda: is_there() or self.search(search_id).state == "failed", said)
        assert self.search(search_id).state != "failed", said()

    def has_checkpoint(self, search_id: str) -> bool:
        return any(event.type == "checkpoint" for event in self.told(search_id))


def until(is_there: Callable[[], object], said: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < deadline, said()
        time.sleep(0.05)


@contextmanager
def deployed(folder: Path, url: str, ray: Cluster) -> Iterator[Deployment]:
    """A deployment whose processes end in good order with the context, apis first."""
    found = Deployment(folder, url, ray)
    try:
        yield found
    finally:
        for process in found.started:
            process.terminate()
        for process in found.started:
            process.wait(timeout=PATIENCE_S)
        found.engine.dispose()


class Following(threading.Thread):
    """Reads a search's events to the last one: from the first address that answers, and on from where it was."""

    def __init__(self, search_id: str, *addresses: str) -> None:
        super().__init__(daemon=True)
        self._search_id = search_id
        self._addresses = addresses
        self.numbers: list[int] = []
        self.ended = False

    def run(self) -> None:
        for address in self._addresses:
            last = str(self.numbers[-1]) if self.numbers else "0"
            try:
                with httpx.stream(
                    "GET",
                    f"{address}{ROOT}/{self._search_id}/events",
                    headers={"Last-Event-ID": last},
                    timeout=PATIENCE_S,
                    trust_env=False,
                ) as answer:
                    for line in answer.iter_lines():
                        if line.startswith("data:"):
                            event = json.loads(line.removeprefix("data:"))
                            self.numbers.append(event["number"])
                            if event["type"] in searches.TERMINAL:
                                self.ended = True
                                return
            except httpx.HTTPError:
                continue  # this api is gone


def post(address: str, path: str = ROOT, body: Any = None) -> str:
    answer = httpx.post(f"{address}{path}", json=body, timeout=PATIENCE_S, trust_env=False)
    assert answer.is_success, answer.text
    found: str = answer.json()["id"]
    return found


def request(**method: Any) -> dict[str, Any]:
    lively = {"n_steps": 60, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.2, "checkpoint_every": 20}
    return tiny.request(method={**lively, **method}).model_dump(mode="json")


def most_at_once(told: list[events.Event]) -> int:
    """The most searches that ran together, by the database's times; each trial takes one CPU here."""
    held = most = 0
    for event in sorted(told, key=lambda event: (event.created_at, event.type == "started")):
        if event.type == "started":
            held += 1
        elif event.type in ("requeued", *searches.TERMINAL):
            held -= 1
        most = max(most, held)
    assert held == 0
    return most


def left_over(folder: Path) -> list[str]:
    """Processes whose command or environment names the data folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in process.environ().get("BLOCKWRIGHT_DATA_DIR", ""):
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def test_two_dispatchers_and_two_apis_share_one_database(
    tmp_path: Path, postgresql: Server, ray_cluster: Cluster
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(postgresql.database())
        here = stack.enter_context(deployed(tmp_path, url, ray_cluster))
        first_api, first_address = here.api()
        second_api, second_address = here.api()

        # One search each: the first dispatcher is held while the second one takes its.
        first = here.dispatcher()
        endless = post(first_address, body=request(n_steps=1_000_000))
        here.wait(endless, lambda: here.has_checkpoint(endless))
        assert here.owner(endless) == first.pid
        second = here.dispatcher()
        first.send_signal(signal.SIGSTOP)
        short = post(second_address, body=request(n_steps=200))
        here.wait(short, lambda: here.owner(short) == second.pid)
        first.send_signal(signal.SIGCONT)
        waiting = post(first_address, body=request())  # both CPUs are taken
        through_both = Following(short, first_address, second_address)
        through_second = Following(short, second_address)
        for following in (through_both, through_second):
            following.start()

        until(lambda: len(through_both.numbers) > 5, lambda: f"{through_both.numbers}")
        first_api.kill()
        first_api.wait()
        assert here.search(waiting).state == "queued"

        # One dispatcher ends in good order: its search is requeued, the other's goes on as it was.
        before = here.runner(short)
        first.terminate()
        assert first.wait(timeout=PATIENCE_S) == 0
        assert [event.type for event in here.told(endless)].count("requeued") == 1
        if here.search(short).state == "running":
            assert here.runner(short) == before
            assert here.owner(short) == second.pid
        here.wait(endless, lambda: here.owner(endless) == second.pid)
        post(second_address, f"{ROOT}/{endless}/cancel")
        for search_id, state in ((endless, "cancelled"), (waiting, "succeeded"), (short, "succeeded")):
            here.wait(search_id, lambda search_id=search_id, state=state: here.search(search_id).state == state)

        attempts = {search_id: here.search(search_id).attempt for search_id in (endless, short, waiting)}
        assert attempts == {endless: 2, short: 1, waiting: 1}
        told = [event for search_id in attempts for event in here.told(search_id)]
        assert most_at_once(told) == CPUS
        for following in (through_both, through_second):
            following.join(timeout=PATIENCE_S)
            assert following.ended
            assert following.numbers == [*range(1, len(here.told(short)) + 1)]

        second.terminate()
        assert second.wait(timeout=PATIENCE_S) == 0
        second_api.terminate()
        second_api.wait(timeout=PATIENCE_S)
        until(lambda: not left_over(tmp_path), lambda: "\n".join(left_over(tmp_path)))
