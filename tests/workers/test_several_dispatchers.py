"""Dispatchers that share a database: each keeps to what is its own, and takes over what a dead one has left."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from db import queue
from db.engine import reading, transaction
from db.lease import Runner
from tests import tiny
from tests.workers.service import Service
from workers import processes
from workers.dispatcher import Dispatcher
from workers.settings import Settings


@contextmanager
def waiting_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a session of its own and does nothing, until the end of the context at the latest."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def name(process: subprocess.Popen[bytes]) -> str:
    return f"{socket.gethostname()}:{process.pid}:{processes.identify(process.pid).started:.2f}"


def claim(service: Service, owner: str, runner: subprocess.Popen[bytes]) -> None:
    """As a dispatcher of this name does."""
    process = processes.identify(runner.pid)
    with transaction(service.engine) as connection:
        found = queue.claim_within(connection, owner, cpus=2, gpus=0, lease_s=600)
        assert found is not None
        queue.set_runner(connection, found.lease, Runner(socket.gethostname(), process.pid, process.started))


def test_the_runner_of_another_dispatcher_is_left_alone_until_that_one_has_died(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    settings = Settings(data_dir=tmp_path, ray_address="127.0.0.1:1", cpus=1)
    with waiting_process() as other, waiting_process() as runner:
        others = name(other)
        claim(service, others, runner)
        looking = Dispatcher(settings)
        looking.look()
        looking.end()
        assert runner.poll() is None
        assert service.running(search_id).owner == others
        other.kill()
        other.wait()
        looking.look()
        assert runner.poll() is None
        assert service.running(search_id).owner != others
        Dispatcher(settings).look()  # of the same process, and so the same owner
        looking.end()
        assert runner.wait() == -signal.SIGUSR1
    assert service.search(search_id).state == "queued"
    service.engine.dispose()


def test_a_dispatcher_counts_what_others_run(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    service.submit(tiny.request())
    with waiting_process() as other, waiting_process() as runner:
        claim(service, name(other), runner)
        waiting = service.submit(tiny.request())
        Dispatcher(Settings(data_dir=tmp_path, ray_address="127.0.0.1:1", cpus=1)).look()
        assert service.search(waiting).state == "queued"
        with reading(service.engine) as connection:
            assert len(queue.running(connection)) == 1
    service.engine.dispose()
