"""What the dispatcher does without Ray: refuse to start twice, see dead runners, and say why a search failed."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from db import queue, searches
from db.engine import transaction
from db.lease import Runner
from tests import tiny
from tests.workers.service import Service, serving
from workers import cluster, dispatcher, processes
from workers.cluster import python_path
from workers.dispatcher import Dispatcher, DispatcherError
from workers.settings import Settings


@pytest.fixture
def unreachable() -> str:
    """An address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_a_second_dispatcher_of_a_folder_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path, None) as service:
        first = service.dispatch()
        log = tmp_path / "dispatcher.log"
        while "dispatching" not in log.read_text():
            assert first.poll() is None
        with pytest.raises(DispatcherError, match=rf"another dispatcher \(pid {first.pid}\) has the data folder"):
            dispatcher.run(Settings(data_dir=tmp_path))


def test_a_database_that_is_not_migrated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DispatcherError, match=r"the database is at revision None, not \d+; run: blockwright migrate"):
        dispatcher.run(Settings(data_dir=tmp_path / "data"))
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700  # others are not to read the texts


def test_a_dispatcher_ends_with_its_parent_if_told_so(tmp_path: Path) -> None:
    Service(tmp_path, None).engine.dispose()
    log = tmp_path / "log"
    code = """
import os, pathlib, subprocess, sys
log = pathlib.Path(sys.argv[1])
with log.open("w") as output:
    command = [sys.executable, "-m", "workers.dispatcher", "--parent", str(os.getpid())]
    child = subprocess.Popen(command, stderr=output)
while "dispatching" not in log.read_text():
    assert child.poll() is None
"""
    environment = {**os.environ, "BLOCKWRIGHT_DATA_DIR": str(tmp_path), "PYTHONPATH": python_path()}
    subprocess.run([sys.executable, "-c", code, str(log)], env=environment, check=True)
    deadline = time.monotonic() + 30
    while "ended" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_dispatcher_whose_parent_is_gone_before_it_looks_ends_at_once(tmp_path: Path) -> None:
    Service(tmp_path, None).engine.dispose()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    command = [sys.executable, "-m", "workers.dispatcher", "--parent", str(gone.pid)]
    environment = {**os.environ, "BLOCKWRIGHT_DATA_DIR": str(tmp_path), "PYTHONPATH": python_path()}
    subprocess.run(command, env=environment, check=True, timeout=60)


def test_a_search_that_finds_no_ray_fails_with_the_reason(tmp_path: Path, unreachable: str) -> None:
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    looking = Dispatcher(Settings(data_dir=tmp_path, ray_address=unreachable))
    looking.look()
    service_search = service.search(search_id)
    while service_search.state not in searches.TERMINAL:
        looking.look()
        service_search = service.search(search_id)
    assert service_search.state == "failed"
    assert f"no Ray cluster answers at '{unreachable}'" in str(service_search.reason)
    looking.end()
    service.engine.dispose()


def test_a_dispatcher_that_is_to_end_starts_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    is_ending = False
    starts = 0

    def start(settings: Settings, is_unwanted: Callable[[], bool]) -> cluster.Cluster:
        nonlocal is_ending, starts
        starts += 1
        is_ending = True  # Ray takes seconds to start, and this comes meanwhile
        if is_unwanted() and starts == 1:
            raise cluster.Unwanted("ray is no longer wanted")
        return cluster.Cluster("127.0.0.1:1", processes.identify(os.getpid()), str(tmp_path), str(tmp_path / "token"))

    monkeypatch.setattr(cluster, "start", start)
    looking = Dispatcher(Settings(data_dir=tmp_path), lambda: is_ending)
    for told in (False, False, True):  # in time, as it has come up, and before it is started
        is_ending = told
        looking.look()
        assert service.search(search_id).state == "queued"
    assert starts == 2
    service.engine.dispose()


def test_a_machine_that_stood_still_gives_its_runners_time_to_say_that_they_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    now = 1000.0
    monkeypatch.setattr("workers.dispatcher._boot_time", lambda: now)
    runner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    process = processes.identify(runner.pid)
    looking = Dispatcher(Settings(data_dir=tmp_path, ray_address="127.0.0.1:1", cpus=1))
    looking.look()
    with transaction(service.engine) as connection:
        (running,) = queue.running(connection)
        looking._end_runner(running.runner)
        queue.set_runner(connection, running.lease, Runner(socket.gethostname(), process.pid, process.started))
        queue.heartbeat(connection, running.lease, lease_s=-1)
    for seconds in (60, 2, 2):  # neither the dispatcher nor the runner had a turn, and then both have
        now += seconds
        looking.look()
        assert (service.search(search_id).state, runner.poll()) == ("running", None)
    now += 3
    looking.look()  # it had the time of two heartbeats, and more
    assert runner.wait(timeout=60) == -signal.SIGTERM
    assert runner.stdin is not None
    runner.stdin.close()
    assert service.running(search_id).attempt == 2
    looking.end()
    service.engine.dispose()


def test_a_search_whose_runner_cannot_be_started_fails_with_the_reason(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    (tmp_path / "searches").write_text("not a folder")
    looking = Dispatcher(Settings(data_dir=tmp_path, ray_address="127.0.0.1:1"))
    looking.look()
    search = service.search(search_id)
    assert search.state == "failed"
    assert str(search.reason).startswith(f"its runner could not be started: cannot use {tmp_path}/searches")
    service.engine.dispose()


def test_a_runner_that_died_gives_its_search_back_and_after_three_times_fails_it(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    for attempt in (1, 2, 3):
        with transaction(service.engine) as connection:
            claim = queue.claim_next(connection, "test", free_cpus=1, free_gpus=0)
            assert claim is not None
            assert claim.attempt == attempt
            gone = subprocess.Popen([sys.executable, "-c", ""])
            process = processes.identify(gone.pid)
            gone.wait()
            runner = Runner(socket.gethostname(), process.pid, process.started)
            queue.set_runner(connection, claim.lease, runner)
        looking = Dispatcher(Settings(data_dir=tmp_path, ray_address="127.0.0.1:1", cpus=1e-9))
        with transaction(service.engine) as connection:
            (running,) = queue.running(connection)
        assert looking._is_dead(running.runner)
        looking._reclaim(running)
    search = service.search(search_id)
    assert search.state == "failed"
    assert "3 attempts in a row ended without a new checkpoint" in str(search.reason)
    service.engine.dispose()


def test_a_runner_that_is_stopped_while_it_starts_has_not_failed(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    for _ in range(4):
        starting = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
        process = processes.identify(starting.pid)
        with transaction(service.engine) as connection:
            claim = queue.claim_next(connection, "test", free_cpus=1, free_gpus=0)
            assert claim is not None
            queue.set_runner(connection, claim.lease, Runner(socket.gethostname(), process.pid, process.started))
        Dispatcher(Settings(data_dir=tmp_path, ray_address="127.0.0.1:1")).end()
        assert starting.wait() == -signal.SIGUSR1
        assert starting.stdin is not None
        starting.stdin.close()
        assert service.search(search_id).state == "queued"
    service.engine.dispose()


def test_a_search_that_is_cancelled_again_has_the_whole_patience_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    looking = Dispatcher(Settings(data_dir=tmp_path, ray_address="127.0.0.1:1", stop_patience_s=1000))
    sent: list[signal.Signals] = []
    monkeypatch.setattr(processes, "send", lambda process, number: sent.append(number))
    for started in (0.0, 10_000.0):
        monkeypatch.setattr("workers.dispatcher.time.monotonic", lambda at=started: at)
        runner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        process = processes.identify(runner.pid)
        with transaction(service.engine) as connection:
            claim = queue.claim_next(connection, "test", free_cpus=1, free_gpus=0)
            assert claim is not None
            queue.set_runner(connection, claim.lease, Runner(socket.gethostname(), process.pid, process.started))
            searches.cancel(connection, search_id)
        looking.look()
        with transaction(service.engine) as connection:
            searches.finish(connection, claim.lease, "cancelled")
            searches.resume(connection, search_id)
        runner.communicate()
    assert sent == [signal.SIGUSR1, signal.SIGUSR1]
    service.engine.dispose()


def test_a_hung_runner_of_a_cancelled_search_is_ended_by_force(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    code = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (10, 15)]; print(flush=True); signal.pause()"
    hung = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE)
    assert hung.stdout is not None
    hung.stdout.readline()
    process = processes.identify(hung.pid)
    with transaction(service.engine) as connection:
        claim = queue.claim_next(connection, "test", free_cpus=1, free_gpus=0)
        assert claim is not None
        queue.set_runner(connection, claim.lease, Runner(socket.gethostname(), process.pid, process.started))
        searches.cancel(connection, search_id)
    looking = Dispatcher(Settings(data_dir=tmp_path, ray_address="127.0.0.1:1", stop_patience_s=0.5))
    while service.search(search_id).state != "cancelled":
        looking.look()
    assert hung.wait() == -signal.SIGKILL
    hung.stdout.close()
    service.engine.dispose()


STOPPED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import update
from db.engine import make_engine, transaction
from db.models import searches
from workers.settings import Settings
input()
with transaction(make_engine(Settings(data_dir=Path(sys.argv[1])).database_url)) as connection:
    connection.execute(update(searches).values(name="late"))
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_runner_stopped_in_the_middle_of_a_write_past_its_lease_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dispatcher, "_start_next", lambda dispatcher: False)
    service = Service(tmp_path, None)
    search_id = service.submit(tiny.request())
    with transaction(service.engine) as connection:
        claim = queue.claim_next(connection, "test", free_cpus=1, free_gpus=0, lease_s=-1)
        assert claim is not None
    command = [sys.executable, "-c", STOPPED_WHILE_WRITING, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": python_path()}
    stopped = subprocess.Popen(command, env=environment, start_new_session=True, stdin=subprocess.PIPE)
    process = processes.identify(stopped.pid)
    with transaction(service.engine) as connection:
        queue.set_runner(connection, claim.lease, Runner(socket.gethostname(), process.pid, process.started))
    assert stopped.stdin is not None
    stopped.stdin.write(b"\n")
    stopped.stdin.close()
    # Until it has stopped, holding the database's only write lock; a moment before, SIGTERM would still end it.
    os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
    Dispatcher(Settings(data_dir=tmp_path, ray_address="127.0.0.1:1")).look()
    assert stopped.wait() == -signal.SIGKILL
    search = service.search(search_id)
    assert (search.state, search.name) == ("queued", "tiny")
    service.engine.dispose()
