"""The real service in tests: uvicorn in a thread on a free port, over a SQLite file that was really migrated.

Starlette's TestClient is not used: it warns of httpx, and warnings are errors here; and a stream needs a real socket.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from sqlalchemy import Engine

from api.app import Service, create_app
from api.protocol import Protocol
from api.settings import Settings
from db.lease import Lease
from nas.steps import StepRecord

TINY: dict[str, Any] = {
    "name": "tiny",
    "space": {"n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "candidates": ["attention", "ffn", "identity"]},
    "task": {"dataset": "python-docs", "train_length": 16, "serve": [{"batch": 1, "query_length": 16}]},
    "method": {"n_steps": 20},
    "retrain": {"n_steps": 10},
}


@dataclass(frozen=True)
class Running:
    """A service under test, and a plain HTTP client of it."""

    url: str
    app: Service
    http: httpx.Client

    @property
    def engine(self) -> Engine:
        engine: Engine = self.app.state.engine
        return engine

    @property
    def data_dir(self) -> Path:
        settings: Settings = self.app.state.settings
        return settings.data_dir


@contextmanager
def running(settings: Settings) -> Iterator[Running]:
    app = create_app(settings)
    config = uvicorn.Config(
        app, http=Protocol, host="127.0.0.1", port=0, log_level="critical", timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 120
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=url, trust_env=False, timeout=120) as http:
        yield Running(url, app, http)
    app.state.follower.close()
    server.should_exit = True
    thread.join(timeout=120)
    assert not thread.is_alive()


@dataclass(frozen=True)
class Claimed:
    """A search that a runner has: tests play the runner."""

    id: str
    lease: Lease
    trial: str
    report: Callable[[list[int]], None]


def record(step: int) -> StepRecord:
    """A step record of two slots and three candidates; the second slot is a tie."""
    return StepRecord(
        step=step,
        phase="search",
        train_loss=3.0 - step / 100,
        val_loss_soft=2.5,
        val_loss_argmax=2.25,
        tau=1.0,
        expected_ms=1.5,
        entropy=0.5,
        tokens_per_s=1000.0,
        probabilities=[[0.75, 0.125, 0.125], [0.25, 0.375, 0.375]],
        null_gaps=[0.5, 0.5],
        updates=[[1, 1, 1], [1, 1, 1]],
        z=[[-4.5, 0.5, 2.0], [0.0, 0.0, 0.0]],
    )
