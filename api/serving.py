"""Runs the service: the api in this process, and for `serve` the migration and the dispatcher as child processes.

This process alone holds the port and the token. Each child leads a process session of its own, so that Ctrl-C in
a terminal reaches only this process, which then asks the child to stop and waits for it. If this process is
killed without a chance to ask, the dispatcher notices that its parent is gone.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import uvicorn

from api.app import Service, create_app
from api.browser import can_open, open_page
from api.commands.connection import ADDRESS_FILE
from api.commands.refuse import Refused
from api.page import is_built
from api.protocol import Protocol
from api.settings import Access, Settings
from api.version import installed

STOP_PATIENCE_S = 45.0  # running searches stop at a checkpoint, and Ray is ended, within this
RESTART_S = (1.0, 2.0, 5.0, 10.0, 30.0)
_SECRET = ("BLOCKWRIGHT_TOKEN", "BLOCKWRIGHT_TOKEN_FILE")
log = logging.getLogger("blockwright.api")


def run_api(settings: Settings) -> int:
    """The REST service until SIGINT or SIGTERM; returns the exit status.

    Raises:
        Refused: the address cannot be listened on.
    """
    with _interrupts(), _listening(settings) as listener:
        _answer(settings, listener)
    return 0


def serve(settings: Settings, *, show: bool = False) -> int:
    """Migrate, then the api and a dispatcher until SIGINT or SIGTERM; returns the exit status.

    Args:
        show: open the page in a browser once the service answers.

    Raises:
        Refused: the address cannot be listened on, another `serve` has the data folder, or the database cannot be
            migrated.
    """
    with _interrupts(), _listening(settings) as listener, _only_one(settings.data_dir):
        _migrate(settings)
        with _Dispatcher(settings):
            _answer(settings, listener, show=show)
    return 0


def environment(settings: Access) -> dict[str, str]:
    """What a child gets: where data and code lie, and no token."""
    return {
        **_without_secrets(),
        "BLOCKWRIGHT_DATA_DIR": str(settings.data_dir),
        "BLOCKWRIGHT_DATABASE_URL": settings.database_url,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def _without_secrets() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _SECRET}


def url_of(host: str, port: int) -> str:
    """The address for clients on this machine: a wildcard is reached by loopback."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def _child(env: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    # -P: a folder `api` where the user happens to be must not be taken for ours.
    command = [sys.executable, "-P", "-m", "api.cli", *arguments]
    return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, start_new_session=True)


def _migrate(settings: Settings) -> None:
    child = _child(environment(settings), "migrate")
    try:
        status = child.wait()
    finally:  # interrupted: it is one transaction, so it may be ended at any moment
        child.terminate()
        child.wait()
    if status != 0:
        raise Refused("the database is not up to date, so the service does not start")


class _Server(uvicorn.Server):
    """Tells when it answers, and ends the event streams first when it stops: it would wait for them."""

    def __init__(self, config: uvicorn.Config, app: Service, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = app
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.state.follower.close()
        super().handle_exit(sig, frame)


def _say(line: str) -> None:
    """One line on standard output, past its buffer: a log on a full disk must end the service neither now nor later."""
    with suppress(OSError):
        os.write(sys.stdout.fileno(), f"{line}\n".encode())


def _answer(settings: Settings, listener: socket.socket, *, show: bool = False) -> None:
    """Serve until asked to stop; the address is written down while the service answers."""
    app = create_app(settings)
    url = url_of(settings.host, listener.getsockname()[1])
    file = settings.data_dir / ADDRESS_FILE

    def ready() -> None:
        part = file.with_name(f".{file.name}.{os.getpid()}")
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.write_text(f"{url}\n")
        part.replace(file)
        _say(f"Blockwright {installed()} answers at {url}  (data in {settings.data_dir}; Ctrl-C stops it)")
        if not is_built():
            _say("it has no page yet: `make page` builds it")
        elif show and can_open():
            open_page(f"{url}/", _without_secrets())
        elif show:
            _say(f"no display here; open {url}/ in a browser")

    config = uvicorn.Config(
        app,
        http=Protocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        # Proxies are not trusted by default: their headers could forge an address.
        proxy_headers=False,
    )
    try:
        _Server(config, app, ready).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn has ended in good order, and sends the signal on to our own handler
        pass
    finally:
        if file.exists() and file.read_text().strip() == url:
            file.unlink()


@contextmanager
def _interrupts() -> Iterator[None]:
    """SIGTERM means what Ctrl-C means: KeyboardInterrupt wherever we are, so that everything is cleaned up."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:  # before the service answered, or while it was being put away
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """A bound socket, taken before anything is started: a taken port costs nothing."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Refused(f"cannot listen on {settings.host}: {(error.strerror or str(error)).lower()}") from None
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise Refused(
                f"cannot listen on {settings.host} port {settings.port}: {reason}; --port 0 takes a free one"
            ) from None
        yield listener


@contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    """One `serve` per data folder, by a file lock that ends with this process however it ends."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data_dir / "serve.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"another `blockwright serve` runs on the data folder {data_dir}") from None
        (data_dir / ADDRESS_FILE).unlink(missing_ok=True)  # of one that was killed
        yield


class _Dispatcher:
    """The dispatcher as a child process: started again if it dies, stopped and waited for at the end."""

    def __init__(self, settings: Settings) -> None:
        self._env = environment(settings)
        self._stopping = threading.Event()
        self._process = self._start()
        self._watcher = threading.Thread(target=self._watch, name="dispatcher", daemon=True)

    def __enter__(self) -> None:
        self._watcher.start()

    def __exit__(self, *details: object) -> None:
        self._stopping.set()
        # A second Ctrl-C must not leave the dispatcher behind: it stops by itself within the patience.
        ignored = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            self._watcher.join()
            if self._process.poll() is None:
                self._process.terminate()
            try:
                self._process.wait(timeout=STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                log.error("the dispatcher did not stop within %.0f s and is killed", STOP_PATIENCE_S)
                self._process.kill()
                self._process.wait()
        finally:
            for number, handler in ignored.items():
                signal.signal(number, handler)

    def _start(self) -> subprocess.Popen[bytes]:
        return _child(self._env, "dispatch", "--parent", str(os.getpid()))

    def _watch(self) -> None:
        waits = iter(RESTART_S)
        while not self._stopping.wait(0.5):
            status = self._process.poll()
            if status is not None:
                wait_s = next(waits, RESTART_S[-1])
                log.error("the dispatcher ended with status %s; it is started again in %.0f s", status, wait_s)
                if self._stopping.wait(wait_s):
                    return
                self._process = self._start()
