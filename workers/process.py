"""The runner process: one search, one driver of Ray, one lease. Started by the dispatcher, in a session of its own.

It stops by itself when the lease is lost, or when the database stays out of reach until the lease is over by the
monotonic clock: somebody else may then run the search.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Literal

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from db import queue, searches
from db.engine import make_engine, reading, transaction
from db.errors import LeaseLost
from db.lease import Lease, Runner
from nas.errors import BlockwrightError
from workers import cluster, processes
from workers.cluster import ClusterError
from workers.disk import explain
from workers.settings import HEARTBEAT_TIMEOUT_S, Settings

_RETRY_S = 0.5

End = Literal["succeeded", "failed", "stopped"]


class Heartbeat:
    """Renews the lease from a thread with a connection of its own.

    Args:
        settings: database, lease and heartbeat times.
        lease: of the search.
        on_cancel: called at each beat once the search is to be cancelled.
        lease_s: how long a beat holds; `hold_for` changes it.
    """

    def __init__(self, settings: Settings, lease: Lease, on_cancel: Callable[[], None], lease_s: float) -> None:
        self._on_cancel = on_cancel
        self._settings = settings
        self._lease = lease
        self._lease_s = lease_s
        self._engine = make_engine(settings.database_url, busy_timeout_s=HEARTBEAT_TIMEOUT_S)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def hold_for(self, lease_s: float) -> None:
        """From the next beat on."""
        self._lease_s = lease_s

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        deadline = time.monotonic() + self._lease_s - HEARTBEAT_TIMEOUT_S
        while True:
            sent, lease_s = time.monotonic(), self._lease_s
            try:
                with transaction(self._engine) as connection:
                    cancelling = queue.heartbeat(connection, self._lease, lease_s=lease_s)
                # The lease counts from before the database's answer; a last try may take the timeout.
                deadline = sent + lease_s - HEARTBEAT_TIMEOUT_S
                if cancelling:
                    self._on_cancel()
            except LeaseLost:
                end_self("the search belongs to another runner now")
            except SQLAlchemyError as error:
                _say(f"heartbeat: {error}")
                # Only where it does not answer: a beat that comes late, on a machine with too much to do, is refused
                # by the token if somebody else has the search by now, and is welcome if nobody has.
                if time.monotonic() >= deadline:
                    end_self("the database was out of reach until the end of the lease")
            if self._ended.wait(max(0.0, min(self._settings.heartbeat_s, deadline - time.monotonic()))):
                return


def _say(line: str) -> None:
    """Into runner.log, where there is room for it: a full disk must not end what could go on."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def end_self(reason: str) -> None:
    """End this process and its children at once; Ray frees what its trials hold when its driver is gone."""
    _say(f"stopping: {reason}")
    if os.getsid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """Command line of the runner process."""
    parser = argparse.ArgumentParser(description="run one search that the dispatcher claimed")
    parser.add_argument("--search", required=True)
    parser.add_argument("--token", required=True, type=int)
    arguments = parser.parse_args()
    sys.exit(run(Settings(), Lease(arguments.search, arguments.token)))


def run(settings: Settings, lease: Lease) -> int:
    """Run the search and write how it ended; the exit status is 0 where that was written.

    Raises:
        LeaseLost: the search is somebody else's.
    """
    stop = threading.Event()

    def listen() -> None:
        signal.signal(signal.SIGUSR1, lambda number, frame: stop.set())

    listen()
    # A signal and not the flag alone, because Tune listens to nothing else; from here where no dispatcher is near.
    heartbeat = Heartbeat(settings, lease, lambda: os.kill(os.getpid(), signal.SIGUSR1), settings.first_lease_s)
    # Only now what takes seconds to import, torch and ray: the lease must not run out meanwhile. Loading libraries
    # keeps other threads from running, for longer than a lease where the machine has ten times too much to do.
    os.environ.update(cluster.client_environment(settings.ray_token_file))  # ray reads it when it is imported
    from ray.exceptions import RayError

    from nas.config.request import read_request
    from workers import memory
    from workers.recorder import Recorder
    from workers.runner import run_search
    from workers.store import StopRequested
    from workers.tuning import RayTrials, connect

    engine = make_engine(settings.database_url)
    here = processes.identify(os.getpid())
    with transaction(engine) as connection:  # again, lest the dispatcher died before it could
        queue.set_runner(connection, lease, Runner(socket.gethostname(), here.pid, here.started))
    with reading(engine) as connection:
        search = searches.get(connection, lease.search_id)
    recorder = Recorder(
        engine, lease, settings.data_dir, search.attempt, stop, lambda: end_self("the search belongs to another runner")
    )
    state: End = "succeeded"
    reason = None
    try:
        assert settings.ray_address is not None
        connect(settings.ray_address)
        heartbeat.hold_for(settings.lease_s)
        trials = RayTrials(settings.data_dir / "tune" / lease.search_id, stop, listen)
        with memory.explained():
            run_search(read_request(search.request), recorder, trials)
        recorder.flush()
    except StopRequested:
        state = "stopped"
    except (BlockwrightError, ClusterError) as error:
        state, reason = "failed", str(error)
    except LeaseLost:
        end_self("the search belongs to another runner now")
    except (SQLAlchemyError, RayError):
        raise  # no fault of the search: the dispatcher starts it again, three times at most
    except OSError as error:
        state, reason = "failed", explain(error, recorder.folder)
    except Exception as error:  # noqa: BLE001 - the one place that marks a search as failed
        _say(traceback.format_exc())
        state, reason = "failed", f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]
    recorder.close()
    while not _written(engine, lease, state, reason):
        time.sleep(_RETRY_S)  # until the lease is over, when the heartbeat ends this process
    heartbeat.close()
    return 0


def _written(engine: Engine, lease: Lease, state: End, reason: str | None) -> bool:
    """Write how the search ended; False while the database cannot be written, as on a full disk.

    Raises:
        LeaseLost: the search is somebody else's.
    """
    try:
        with transaction(engine) as connection:
            if state == "stopped":
                queue.requeue(connection, lease)  # or cancelled, where that was asked for
            else:
                searches.finish(connection, lease, state, reason=reason)
    except OperationalError as error:
        _say(f"cannot write how the search ended: {error.orig}")
        return False
    return True


if __name__ == "__main__":
    main()
