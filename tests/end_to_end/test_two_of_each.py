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
from sqlalchemy import Engine, func, select

from db import events, models, queue, searches
from db.engine import make_engine, reading
from db.lease import Runner
from tests import tiny
from tests.postgresql import Server
from workers.cluster import Cluster, python_path

pytestmark = pytest.mark.ray
PATIENCE_S = 200.0  # a busy machine is not a failure
CPUS = 2.0
ROOT = "/api/v1/searches"
ENDLESS = tiny.request(method={"n_steps": 1_000_000, "report_every": 20, "checkpoint_every": 40}).model_dump(
    mode="json"
)


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

    def n_told(self, search_id: str, kind: str) -> int:
        """How many events of this type there are."""
        wanted = (models.events.c.search_id == search_id, models.events.c.type == kind)
        with reading(self.engine) as connection:
            return connection.scalar(select(func.count()).select_from(models.events).where(*wanted)) or 0


def until(is_there: Callable[[], object], said: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < deadline, said()
        time.sleep(0.2)


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
    """Reads a search's events until it stops: from the first address, and on from there at the next if that is gone."""

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
                            if event["type"] in ("requeued", *searches.TERMINAL):
                                self.ended = True
                                return
            except httpx.HTTPError:
                continue  # this api is gone


def post(address: str, path: str = ROOT, body: Any = None) -> str:
    answer = httpx.post(f"{address}{path}", json=body, timeout=PATIENCE_S, trust_env=False)
    assert answer.is_success, answer.text
    found: str = answer.json()["id"]
    return found


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


@pytest.mark.timeout(600)
def test_two_dispatchers_and_two_apis_share_one_database(
    tmp_path: Path, postgresql: Server, ray_cluster: Cluster
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(postgresql.database())
        here = stack.enter_context(deployed(tmp_path, url, ray_cluster))
        first_api, first_address = here.api()
        second_api, second_address = here.api()

        # The server of the database is restarted under a running search, which does not notice.
        first = here.dispatcher()
        one = post(first_address, body=ENDLESS)
        here.wait(one, lambda: here.n_told(one, "checkpoint"))
        postgresql.stop()
        postgresql.start()
        n_before = here.n_told(one, "checkpoint")
        here.wait(one, lambda: here.n_told(one, "checkpoint") > n_before)
        assert here.search(one).attempt == 1

        # A search for each dispatcher: the first is held while the second takes its. No CPU is left for a third.
        second = here.dispatcher()
        first.send_signal(signal.SIGSTOP)
        other = post(second_address, body=ENDLESS)
        here.wait(other, lambda: here.owner(other) == second.pid)
        first.send_signal(signal.SIGCONT)
        third = post(first_address, body=ENDLESS)
        assert here.owner(one) == first.pid

        # An api is killed under two who follow: one goes on at the other api, one was there all the time.
        through_both = Following(other, first_address, second_address)
        through_second = Following(other, second_address)
        for following in (through_both, through_second):
            following.start()
        here.wait(other, lambda: here.n_told(other, "checkpoint") and through_both.numbers)
        first_api.kill()
        first_api.wait()

        # One dispatcher ends in good order: its search is requeued and taken by the other, whose own goes on.
        runner = here.runner(other)
        assert here.search(third).state == "queued"
        first.terminate()
        assert first.wait(timeout=PATIENCE_S) == 0
        assert here.n_told(one, "requeued") == 1
        assert here.runner(other) == runner
        here.wait(one, lambda: here.owner(one) == second.pid)
        post(second_address, f"{ROOT}/{one}/cancel")
        here.wait(third, lambda: here.n_told(third, "reports"))
        assert here.search(one).state == "cancelled"
        assert here.runner(other) == runner

        second.terminate()
        assert second.wait(timeout=PATIENCE_S) == 0
        for following in (through_both, through_second):
            following.join(timeout=PATIENCE_S)
            assert following.ended
            assert following.numbers == [*range(1, len(here.told(other)) + 1)]
        second_api.terminate()
        assert second_api.wait(timeout=PATIENCE_S) == 0

        found = {search_id: here.search(search_id) for search_id in (one, other, third)}
        assert {search_id: (each.state, each.attempt) for search_id, each in found.items()} == {
            one: ("cancelled", 2),
            other: ("queued", 1),
            third: ("queued", 1),
        }
        assert most_at_once([event for search_id in found for event in here.told(search_id)]) == CPUS
        until(lambda: not left_over(tmp_path), lambda: "\n".join(left_over(tmp_path)))
