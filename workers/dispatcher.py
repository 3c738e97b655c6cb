"""Takes queued searches and sees to their runners, one runner process per search.

It keeps nothing in memory that matters: what runs, where, and whether it is to stop is read from the database at each
look. So another dispatcher of this host adopts what a killed one left. Over a Ray cluster of an address any number of
dispatchers share one database: each sees to the runners it started or adopted, and together they take no more than
their `cpus` and `gpus`. A Ray of our own belongs to one dispatcher per data folder. It imports neither torch nor ray.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from db import queue, revision, searches
from db.engine import make_engine, reading, transaction
from db.errors import LeaseLost
from db.lease import Lease, Runner
from db.queue import Claim, Running
from workers import cluster, owner, processes
from workers.cluster import ClusterError
from workers.disk import explain
from workers.lock import Locked, lock
from workers.processes import ProcessId
from workers.settings import Settings
from workers.sweep import EVERY_S, sweep

LOCK_FILE = "dispatcher.lock"  # in the data folder
_TERMINATE_SHARE = 0.7  # of the patience: SIGUSR1 before, SIGTERM after, SIGKILL at its end
_logger = structlog.wrap_logger(structlog.PrintLogger(sys.stderr))


def _log(event: str, **values: object) -> None:
    with contextlib.suppress(OSError):  # whoever read it may be gone, and runners are still to be seen to
        _logger.info(event, **values)


def _boot_time() -> float:
    """Seconds that also count while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class DispatcherError(RuntimeError):
    """The dispatcher cannot start; one line that a person can act on."""


def run(settings: Settings, *, parent: int | None = None) -> None:
    """Dispatch until SIGTERM or SIGINT; then running searches stop at a checkpoint and go back to the queue.

    Args:
        settings: data folder, resources, times.
        parent: pid of the process that started this one, whose end ends it too, as a child of `serve` should. Told
            and not asked for here: it may be gone before this process looks.

    Raises:
        DispatcherError: another dispatcher has this folder, or the database is not migrated.
    """
    stop = threading.Event()
    with _only_one(settings):
        dispatcher = Dispatcher(settings, lambda: stop.is_set() or parent not in (None, os.getppid()))
        dispatcher.check_database()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        _log("dispatching", data_dir=str(settings.data_dir), cpus=settings.cpus, gpus=settings.gpus)
        while not dispatcher.is_ending():
            try:
                dispatcher.look()
                os.utime(settings.data_dir / LOCK_FILE)  # the time of the last look, for `blockwright health`
            except OperationalError as error:
                _log("the database is out of reach", reason=str(error.orig))
            except OSError as error:  # a full disk, mostly: what runs goes on, and the next look may do better
                _log("cannot go on for now", reason=str(error))
            stop.wait(settings.poll_s)
        dispatcher.end()


class Dispatcher:
    """One look at a time.

    Args:
        settings: data folder, resources, times.
        is_ending: whether it was asked to stop: then it starts nothing more, though a look may be under way.
    """

    def __init__(self, settings: Settings, is_ending: Callable[[], bool] = lambda: False) -> None:
        self._settings = settings
        self.is_ending = is_ending
        self._engine: Engine = make_engine(settings.database_url)
        self._host = socket.gethostname()
        self._owner = owner.this_process()
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._stopping_since: dict[Lease, float] = {}  # since the first request to stop
        self._swept = -math.inf  # time of the last sweep
        self._looked = math.inf  # when the last look ended
        self._patient_until = -math.inf

    def check_database(self) -> None:
        """Raises: DispatcherError: the database does not answer, or is at another revision than this code."""
        try:
            with reading(self._engine) as connection:
                found = revision.current(connection)
        except SQLAlchemyError as error:
            raise DispatcherError(f"cannot read the database: {str(error).splitlines()[0]}") from None
        if found != revision.HEAD:
            raise DispatcherError(f"the database is at revision {found}, not {revision.HEAD}; run: blockwright migrate")

    def look(self) -> None:
        """Reclaim what died, press what is to stop, start what fits."""
        try:
            self._look(self._is_patient())
        finally:  # a look that fails, each time on a full disk, is no standstill
            self._looked = _boot_time()

    def _look(self, is_patient: bool) -> None:
        self._reap()
        with reading(self._engine) as connection:
            running = queue.running(connection)
        held = {each.lease for each in running}
        self._stopping_since = {lease: since for lease, since in self._stopping_since.items() if lease in held}
        for each in running:
            if each.expires_in_s < 0 and not is_patient:
                # Whoever's it is, and before the statement that takes its search away: stopped in the middle of a
                # write it holds the database's lock, for which that statement would wait for ever.
                self._end_runner(each.runner)
        mine = self._mine(running)
        if self._settings.ray_address is None and mine and cluster.find(self._settings.data_dir) is None:
            for each in mine:  # Ray has died under them: a driver would take a minute to notice
                self._end_runner(each.runner)
        for each in mine:
            if self._is_dead(each.runner):
                self._reclaim(each)
            elif each.cancelling:
                self._press(each)
        if not is_patient:
            with transaction(self._engine) as connection:
                reclaimed = queue.reclaim_expired(connection)
            for lost in reclaimed:
                _log("lease expired", search=lost.search_id, state=lost.state, reason=lost.reason)
                self._end_runner(lost.runner)
        while self._start_next():
            pass
        if time.monotonic() - self._swept >= EVERY_S:
            self._swept = time.monotonic()
            swept = sweep(self._engine, self._settings.data_dir, {each.lease.search_id for each in running})
            if swept:
                _log("removed what a crash had left", searches=swept)

    def end(self) -> None:
        """Stop every runner of this dispatcher in good order, and Ray if it is ours."""
        self._stopping_since.clear()
        here = {processes.identify(pid) for pid in self._children}
        deadline = time.monotonic() + 2 * self._settings.stop_patience_s
        while time.monotonic() < deadline:
            self._reap()
            try:
                if not self._press_all(here):
                    break
            except OperationalError as error:  # then the next dispatcher takes their searches back
                _log("the database is out of reach", reason=str(error.orig))
            time.sleep(0.2)
        # All have written their end by now; some are still taking leave of Ray.
        deadline = time.monotonic() + self._settings.stop_patience_s
        while any(processes.alive(each) for each in here) and time.monotonic() < deadline:
            time.sleep(0.1)
        for each_process in here:
            processes.end_session(each_process, patience_s=0)
        for child in self._children.values():
            child.wait()
        if self._settings.ray_address is None:
            found = cluster.find(self._settings.data_dir)
            if found is not None:
                cluster.stop(found, self._settings.data_dir)
        _log("ended")

    def _press_all(self, here: set[ProcessId]) -> bool:
        """Ask every runner of this dispatcher to stop, and add it to `here`; whether there is one."""
        with reading(self._engine) as connection:
            running = queue.running(connection)
        mine = [each for each in self._mine(running) if self._is_here(each.runner)]
        for each in mine:
            assert each.runner is not None
            here.add(_process(each.runner))
            if self._is_dead(each.runner):
                self._reclaim(each)
            else:
                self._press(each)
        return bool(mine)

    def _mine(self, running: Sequence[Running]) -> list[Running]:
        """Those that this dispatcher has started or adopted; it adopts what a dead one of this host has left."""
        mine = []
        for each in running:
            if each.owner != self._owner and self._is_here(each.runner) and owner.is_gone(each.owner):
                with transaction(self._engine) as connection:
                    if queue.adopt(connection, each, self._owner):
                        each = replace(each, owner=self._owner)
            if each.owner == self._owner:
                mine.append(each)
        return mine

    def _is_patient(self) -> bool:
        """Whether this machine stood still just now, its runners too, which then get the time of two heartbeats.

        A machine that was suspended, or had no time for its processes, wakes with all leases expired.
        """
        now = _boot_time()
        if now - self._looked > self._settings.poll_s + self._settings.heartbeat_s:
            self._patient_until = now + 2 * self._settings.heartbeat_s
            _log(
                "this machine stood still; runners get time to say that they live", seconds=round(now - self._looked, 1)
            )
        return now < self._patient_until

    # -- runners that end ---------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        """Wait for children that ended, so that no zombie passes for a runner."""
        for pid, child in [*self._children.items()]:
            if child.poll() is not None:
                del self._children[pid]

    def _is_here(self, runner: Runner | None) -> bool:
        return runner is not None and runner.host == self._host

    def _is_dead(self, runner: Runner | None) -> bool:
        return runner is not None and self._is_here(runner) and not processes.alive(_process(runner))

    def _reclaim(self, running: Running) -> None:
        """Take a search from a runner that is gone, after ending what it may have left."""
        self._end_runner(running.runner)
        try:
            with transaction(self._engine) as connection:
                if running.lease in self._stopping_since:
                    # Asked to stop before it could listen, it has died of the signal: no failed attempt.
                    queue.requeue(connection, running.lease)
                    return
                reclaimed = queue.reclaim(connection, running.lease, "its runner ended unexpectedly; see runner.log")
        except LeaseLost:
            return  # it had written its own end before it went
        _log("runner died", search=reclaimed.search_id, state=reclaimed.state, reason=reclaimed.reason)

    def _press(self, running: Running) -> None:
        """Ask a runner to stop, each time with more force."""
        if running.runner is None or not self._is_here(running.runner):
            return  # it has not started yet
        process = _process(running.runner)
        since = self._stopping_since.setdefault(running.lease, time.monotonic())
        waited = time.monotonic() - since
        if waited < _TERMINATE_SHARE * self._settings.stop_patience_s:
            processes.send(process, signal.SIGUSR1)
        elif waited < self._settings.stop_patience_s:
            processes.send(process, signal.SIGTERM)
        else:
            processes.end_session(process, patience_s=0)

    def _end_runner(self, runner: Runner | None) -> None:
        if runner is not None and self._is_here(runner):
            processes.end_session(_process(runner), patience_s=0)

    # -- runners that start -------------------------------------------------------------------------------------------

    def _start_next(self) -> bool:
        """Start the oldest queued search that fits into what is free; whether one was started."""
        if self.is_ending():
            return False
        with reading(self._engine) as connection:
            is_full = sum(each.cpus for each in queue.running(connection)) >= self._settings.cpus
            is_queued = bool(searches.list(connection, state="queued", limit=1).items)
        if is_full or not is_queued:
            return False
        problem = None
        environment = {}
        try:
            environment = self._ray_environment()  # before claiming: a start of Ray takes longer than a lease
        except cluster.Unwanted:
            return False
        except ClusterError as error:
            problem = str(error)
        except OSError as error:
            problem = f"ray could not be started: {explain(error, self._settings.data_dir)}"
        if self.is_ending():  # Ray has taken its time
            return False
        with transaction(self._engine) as connection:
            claim = queue.claim_within(
                connection,
                self._owner,
                cpus=self._settings.cpus,
                gpus=self._settings.gpus,
                lease_s=self._settings.first_lease_s,
            )
        if claim is None:
            return False
        self._end_runner(claim.previous)
        if problem is None:
            try:
                self._start(claim, environment)
            except OSError as error:  # no room on the disk, no process to be had: this search fails, not the dispatcher
                problem = f"its runner could not be started: {explain(error, self._settings.data_dir)}"
        if problem is not None:
            with contextlib.suppress(LeaseLost), transaction(self._engine) as connection:
                searches.finish(connection, claim.lease, "failed", reason=problem)
        return True

    def _ray_environment(self) -> dict[str, str]:
        """Where the runner finds Ray, in the variables of `Settings`."""
        settings = self._settings
        if settings.ray_address is not None:
            token = {"BLOCKWRIGHT_RAY_TOKEN_FILE": str(settings.ray_token_file)} if settings.ray_token_file else {}
            return {"BLOCKWRIGHT_RAY_ADDRESS": settings.ray_address, **token}
        local = cluster.start(settings, self.is_ending)
        return {
            "BLOCKWRIGHT_RAY_ADDRESS": local.address,
            "BLOCKWRIGHT_RAY_TOKEN_FILE": local.token_file,
            "RAY_TMPDIR": local.temp_dir,
        }

    def _start(self, claim: Claim, environment: dict[str, str]) -> None:
        lease: Lease = claim.lease
        settings = self._settings
        folder = settings.data_dir / "searches" / lease.search_id
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "runner.log").open("ab") as log:
            child = subprocess.Popen(
                # -P: a folder `workers` or `db` where this was started must not be taken for ours.
                [sys.executable, "-P", "-m", "workers.process", "--search", lease.search_id, f"--token={lease.token}"],
                env={
                    **os.environ,
                    **environment,
                    "BLOCKWRIGHT_DATA_DIR": str(settings.data_dir),
                    "BLOCKWRIGHT_DATABASE_URL": settings.database_url,
                    "BLOCKWRIGHT_LEASE_S": str(settings.lease_s),
                    "BLOCKWRIGHT_START_LEASE_S": str(settings.start_lease_s),
                    "BLOCKWRIGHT_HEARTBEAT_S": str(settings.heartbeat_s),
                    "OMP_NUM_THREADS": "1",
                    "PYTHONPATH": cluster.python_path(),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children[child.pid] = child
        process = processes.identify(child.pid)
        try:
            with transaction(self._engine) as connection:
                queue.set_runner(connection, lease, Runner(self._host, process.pid, process.started))
        except LeaseLost:  # this process was held up for longer than a lease; the runner will notice too
            processes.end_session(process, patience_s=0)
            return
        _log("started", search=lease.search_id, attempt=claim.attempt, pid=child.pid)


def _process(runner: Runner) -> ProcessId:
    return ProcessId(runner.pid, runner.started_at)


@contextlib.contextmanager
def _only_one(settings: Settings) -> Iterator[None]:
    """Hold the folder's lock; dispatchers over a Ray cluster of an address share it."""
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with lock(settings.data_dir / LOCK_FILE, shared=settings.ray_address is not None):
            yield
    except Locked as error:
        raise DispatcherError(f"another dispatcher (pid {error.pid}) has the data folder {settings.data_dir}") from None


def main() -> None:
    """`python -m workers.dispatcher [--parent PID]`: `blockwright dispatch` without api and its settings."""
    parser = argparse.ArgumentParser(description="run queued searches")
    parser.add_argument("--parent", type=int, help="stop when the process that started this one, of this pid, is gone")
    arguments = parser.parse_args()
    try:
        run(Settings(), parent=arguments.parent)
    except DispatcherError as error:
        sys.exit(f"blockwright dispatch: {error}")


if __name__ == "__main__":
    main()
