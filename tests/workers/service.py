"""A dispatcher under test with its database: what `serve` would have, without the web."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine

from db import events, migrate, queue, searches
from db.engine import make_engine, reading, transaction
from nas.config.request import SearchRequest
from workers.cluster import Cluster, python_path
from workers.settings import Settings


@dataclass
class Service:
    """A data folder with a migrated database, and the dispatchers started for it."""

    data_dir: Path
    ray: Cluster | None  # None: the dispatcher starts one of its own
    url: str = ""  # of a migrated database; none: SQLite in the data folder
    engine: Engine = field(init=False)
    dispatchers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.url = Settings(data_dir=self.data_dir, database_url=self.url).database_url
        migrate.upgrade(self.url)
        self.engine = make_engine(self.url)

    def dispatch(self) -> subprocess.Popen[bytes]:
        """Start a dispatcher."""
        joined = {}
        if self.ray is not None:
            joined = {"BLOCKWRIGHT_RAY_ADDRESS": self.ray.address, "BLOCKWRIGHT_RAY_TOKEN_FILE": self.ray.token_file}
        with (self.data_dir / "dispatcher.log").open("ab") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "workers.dispatcher"],
                env={
                    **os.environ,
                    **joined,
                    "BLOCKWRIGHT_DATA_DIR": str(self.data_dir),
                    "BLOCKWRIGHT_DATABASE_URL": self.url,
                    "BLOCKWRIGHT_CPUS": "2",
                    "BLOCKWRIGHT_GPUS": "2",
                    "PYTHONPATH": python_path(),
                },
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.dispatchers.append(started)
        return started

    def submit(self, request: SearchRequest) -> str:
        with transaction(self.engine) as connection:
            created = searches.create(
                connection,
                request=request.model_dump(mode="json"),
                name=request.name,
                labels=request.space.labels,
                dataset=request.task.dataset,
                cpus=request.resources.cpus,
                gpus=request.resources.gpus,
                n_steps=request.method.n_steps,
            )
        return created.search.id

    def search(self, search_id: str) -> searches.Search:
        with reading(self.engine) as connection:
            return searches.get(connection, search_id)

    def running(self, search_id: str) -> queue.Running:
        with reading(self.engine) as connection:
            (found,) = [each for each in queue.running(connection) if each.lease.search_id == search_id]
        return found

    def events(self, search_id: str) -> list[events.Event]:
        with reading(self.engine) as connection:
            return events.after(connection, search_id, limit=100_000)

    def wait_for(self, search_id: str, is_there: Callable[[], object], timeout_s: float = 600) -> None:
        """Wait until something is there; a search that failed ends the wait with its reason."""
        deadline = time.monotonic() + timeout_s
        while not is_there():
            search = self.search(search_id)
            log = self.data_dir / "searches" / search_id / "runner.log"
            said = log.read_text()[-2000:] if log.exists() else "the runner wrote nothing"
            assert search.state != "failed", f"{search.reason}\n{said}"
            assert time.monotonic() < deadline, f"still {search.state}, {search.stage}\n{said}"
            time.sleep(0.1)

    def has_event(self, search_id: str, kind: str) -> bool:
        return any(event.type == kind for event in self.events(search_id))


@contextmanager
def serving(data_dir: Path, ray: Cluster | None) -> Iterator[Service]:
    """A service whose dispatchers end in good order with the context."""
    service = Service(data_dir, ray)
    try:
        yield service
    finally:
        for dispatcher in service.dispatchers:
            dispatcher.terminate()
        for dispatcher in service.dispatchers:
            dispatcher.wait(timeout=200)
        service.engine.dispose()
