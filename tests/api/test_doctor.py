"""`blockwright doctor`: every finding, by making its situation real."""

from __future__ import annotations

import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from api.commands import check_machine as machine
from api.commands import check_service as service
from api.commands import doctor
from api.commands.connection import ADDRESS_FILE
from api.commands.findings import Finding, look
from api.settings import Settings
from api.version import installed
from db import migrate, revision
from db.engine import make_engine, transaction
from nas import catalog
from tests.api.running import Running, running
from tests.api.test_cli import Run, run
from tests.postgresql import Server
from workers import processes
from workers.dispatcher import LOCK_FILE
from workers.lock import lock
from workers.settings import Settings as WorkerSettings

__all__ = ["run"]  # a fixture
REINSTALL = "install Blockwright again, such as by `make setup` or `pip install --force-reinstall blockwright`"


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """Another program's web service; its address."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            """Quietly."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


# -- the machine ------------------------------------------------------------------------------------------------------


def test_python() -> None:
    assert machine.python() == Finding("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")
    assert machine.python((3, 10, 9)) == Finding(
        "python", "fail", f"3.10.9 at {sys.executable}", "Blockwright needs Python 3.11 or newer"
    )


def distribution(folder: Path, name: str, version: str, *requirements: str) -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {each}" for each in requirements)]
    (info / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n")


def test_packages_that_do_not_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.packages() == Finding("blockwright", "ok", f"{installed()}, with all packages that it needs")
    assert machine.packages("bw-not-installed").level == "warn"
    assert machine.packages("bw-not-installed").what.endswith(": runs from a source tree that is not installed")
    monkeypatch.syspath_prepend(tmp_path)
    distribution(tmp_path, "bw_one", "1.0", "bw-two>=2", 'never; extra == "dev"')
    assert machine.packages("bw-one") == Finding("blockwright", "fail", "bw-two is not installed", REINSTALL)
    distribution(tmp_path, "bw_two", "1.5")
    what = f"bw-two is 1.5; {installed()} needs bw-two>=2"
    assert machine.packages("bw-one") == Finding("blockwright", "fail", what, REINSTALL)


def test_blocks_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.blocks() == Finding("blocks", "ok", "the built-in ones")
    found = catalog.Installed({**catalog.BUILT_IN, "wide": catalog.block("ffn")}, ())
    monkeypatch.setattr(catalog, "installed", lambda: found)
    assert machine.blocks() == Finding("blocks", "ok", "the built-in ones and wide")
    monkeypatch.setattr(
        catalog, "installed", lambda: replace(found, refused=("entry point 'a:B' cannot be loaded: no",))
    )
    todo = "correct or uninstall its package; it is left out"
    assert machine.blocks() == Finding("blocks", "warn", "entry point 'a:B' cannot be loaded: no", todo)


BROKEN = [
    ("raise ImportError('libcudart.so.13: cannot open shared object file')", "cannot be imported: ImportError: libcud"),
    ("raise SystemExit(3)", "cannot be imported: it says nothing"),
    ("import os; os.abort()", "its import ended Python by SIGABRT"),
    ("import os; os._exit(0)", "cannot be used: what is imported is not the package"),
    ("", "cannot be imported: AttributeError: "),
]


@pytest.mark.parametrize(("code", "what"), BROKEN, ids=["raises", "exits", "aborts", "ends", "is empty"])
def test_a_broken_torch_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, what: str) -> None:
    (tmp_path / "torch.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = machine.torch()
    assert (found.name, found.level) == ("torch", "fail")
    assert found.what.startswith(what)
    assert found.todo is not None
    assert found.todo.endswith(f"-c 'import torch'`; {REINSTALL}")


@pytest.mark.parametrize(("name", "check"), [("ray", machine.ray), ("optuna", machine.optuna)])
def test_a_broken_package_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, check: Any) -> None:
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('half installed')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = check()
    assert (found.name, found.level, found.what) == (name, "fail", "cannot be imported: RuntimeError: half installed")


def test_an_import_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(machine, "IMPORT_TIMEOUT_S", 0.5)
    assert machine.torch().what == "did not import within 0.5 s"


def test_a_gpu_that_torch_does_not_see_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this torch sees a GPU")
    monkeypatch.setattr(machine, "NVIDIA_DRIVER", tmp_path)
    monkeypatch.setattr(machine, "IMPORT_TIMEOUT_S", 200)  # a busy machine is no fault
    assert machine.torch() == Finding(
        "torch",
        "warn",
        f"{torch.__version__}, on the CPU",
        "the machine has an NVIDIA driver; a CUDA build of torch would use its GPU (docs/deploy.md)",
    )


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    todo = "run `make page`, or install a wheel, which has it"
    what = f"not built in {tmp_path}; no Node is on the PATH, so one is fetched for that"
    assert machine.page(tmp_path) == Finding("page", "warn", what, todo)
    (tmp_path / "node").write_text("#!/bin/sh\necho v12.0.0\n")
    (tmp_path / "node").chmod(0o755)
    assert machine.page(tmp_path) == Finding(
        "page", "warn", f"not built in {tmp_path}; Node on the PATH is v12.0.0", todo
    )
    (tmp_path / "index.html").touch()
    assert machine.page(tmp_path) == Finding("page", "ok", "built")


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LOW_MEMORY_MB", 0)
    assert machine.memory().level == "ok"
    monkeypatch.setattr(machine, "LOW_MEMORY_MB", 10**9)
    found = machine.memory()
    assert found.level == "warn"
    assert found.what.endswith("MB free; Ray and one trial take about 1000000000 MB")


def test_shared_memory(tmp_path: Path) -> None:
    assert machine.shared_memory(1, tmp_path).level == "ok"
    found = machine.shared_memory(10**9, tmp_path)
    assert found.level == "warn"
    assert found.what.endswith(f"MB free in {tmp_path}; Ray's object store takes 1000000000 MB")
    assert found.todo == "make it larger (docker: shm_size), or lower BLOCKWRIGHT_OBJECT_STORE_MB"
    missing = machine.shared_memory(1, tmp_path / "shm")
    assert (missing.level, missing.what) == ("warn", f"{tmp_path / 'shm'} cannot be used: no such file or directory")


def test_temporary_folder(tmp_path: Path) -> None:
    assert machine.temp_dir(Path("/tmp")) == Finding("temporary folder", "ok", "/tmp")
    todo = "set BLOCKWRIGHT_RAY_TEMP_DIR to a short path that can be written, such as /tmp"
    long = Path("/tmp") / ("long" * 8)
    what = f"{long} is too long for the sockets of Ray; at most 30 characters"
    assert machine.temp_dir(long) == Finding("temporary folder", "fail", what, todo)
    what = "/no/such is not there, or cannot be written"
    assert machine.temp_dir(Path("/no/such")) == Finding("temporary folder", "fail", what, todo)


# -- data, disk, database ---------------------------------------------------------------------------------------------


def test_data_folder(tmp_path: Path) -> None:
    assert service.data_folder(Settings(data_dir=tmp_path)) == Finding(
        "data folder", "ok", f"{tmp_path} can be written"
    )
    inside = tmp_path / "a" / "b"
    assert service.data_folder(Settings(data_dir=inside)) == Finding(
        "data folder", "ok", f"{inside} will be made on the first start"
    )
    assert not (tmp_path / "a").exists()
    tmp_path.chmod(0o777)
    found = service.data_folder(Settings(data_dir=tmp_path))
    assert (found.level, found.what) == ("warn", f"{tmp_path} can be written by others")
    assert found.todo == f"run `chmod go-w {tmp_path}`: who writes there runs code in the trials"


def test_a_data_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for data_dir in (tmp_path / "file", tmp_path / "file" / "data"):
        assert service.data_folder(Settings(data_dir=data_dir)) == Finding(
            "data folder", "fail", f"{tmp_path / 'file'} is no folder", "set BLOCKWRIGHT_DATA_DIR to a folder of yours"
        )
    # Not even root writes in /proc.
    found = service.data_folder(Settings(data_dir=Path("/proc/self")))
    assert (found.level, found.what) == ("fail", "/proc/self cannot be written: no such file or directory")
    found = service.data_folder(Settings(data_dir=Path("/proc/blockwright")))
    assert (found.level, found.what) == ("fail", "/proc/blockwright cannot be made: no such file or directory")
    assert found.todo == ("give yourself the right to write /proc, or set BLOCKWRIGHT_DATA_DIR to a folder of yours")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_data_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    found = service.data_folder(Settings(data_dir=tmp_path))
    assert (found.level, found.what) == ("fail", f"{tmp_path} cannot be written: permission denied")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_data_folder_of_somebody_else(tmp_path: Path) -> None:
    os.chown(tmp_path, 10001, 10001)
    found = service.data_folder(Settings(data_dir=tmp_path))
    assert (found.level, found.what) == ("warn", f"{tmp_path} belongs to user 10001; this is user 0")


def test_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "LITTLE_DISK_MB", 0)
    monkeypatch.setattr(service, "TOO_LITTLE_DISK_MB", 0)
    settings = Settings(data_dir=tmp_path / "not" / "there")
    found = service.disk(settings)
    assert found.level == "ok"
    assert found.what.endswith(f" MB free at {tmp_path}")
    monkeypatch.setattr(service, "LITTLE_DISK_MB", 10**12)
    assert service.disk(settings).level == "warn"
    monkeypatch.setattr(service, "TOO_LITTLE_DISK_MB", 10**12)
    found = service.disk(settings)
    assert (found.level, found.todo) == (
        "fail",
        "free some: no search will finish; `blockwright delete` removes old ones",
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, settings: Settings) -> Iterator[str]:
    """A migrated database on each engine."""
    if request.param == "sqlite":
        yield settings.database_url
        return
    server: Server = request.getfixturevalue("postgresql")
    with server.database() as found:
        yield found


def at_revision(url: str, wanted: str) -> None:
    engine = make_engine(url)
    with transaction(engine) as connection:
        connection.exec_driver_sql(f"UPDATE {revision.VERSION_TABLE} SET version_num = '{wanted}'")
    engine.dispose()


def test_database_by_its_revision(url: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=url)
    head = revision.HEAD
    shown = make_url(url).render_as_string()
    assert service.database(settings) == Finding("database", "ok", f"{shown} at revision {head}")
    at_revision(url, "0000")
    assert service.database(settings) == Finding(
        "database",
        "fail",
        f"{shown} is at revision 0000; this version needs {head}",
        "make a backup, then run `blockwright migrate`",
    )
    at_revision(url, "9999")
    assert service.database(settings) == Finding(
        "database",
        "fail",
        f"{shown} is at revision 9999 of a newer Blockwright; this one knows {head}",
        "install that version, or restore the backup made before it",
    )
    at_revision(url, head)
    migrate.downgrade(url, "base")
    found = service.database(settings)
    assert found == Finding("database", "fail", f"{shown} has no tables of ours", "run `blockwright migrate`")


def test_a_database_that_is_not_there_yet_is_no_fault_and_is_not_made(tmp_path: Path) -> None:
    found = service.database(Settings(data_dir=tmp_path, database_url=""))
    assert found.level == "ok"
    assert found.what == f"sqlite:///{tmp_path}/blockwright.db is not there yet; `blockwright serve` makes it"
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "blockwright.db").write_text("this is a letter to a friend, and no database at all\n" * 40)
    found = service.database(Settings(data_dir=tmp_path, database_url=""))
    assert found.level == "fail"
    assert found.what == f"sqlite:///{tmp_path}/blockwright.db does not answer: file is not a database"
    assert found.todo == "put the file right or restore a backup"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("user:secret@127.0.0.1:PORT/name", "user:***@127.0.0.1:PORT/name"),
        ("user@127.0.0.1:PORT/name?password=secret&connect_timeout=5", "user@127.0.0.1:PORT/name?connect_timeout=5"),
    ],
)
def test_a_database_that_does_not_answer_is_told_without_its_password(tmp_path: Path, url: str, shown: str) -> None:
    port = str(free_port())
    url, shown = (f"postgresql+psycopg://{each}".replace("PORT", port) for each in (url, shown))
    settings = Settings(data_dir=tmp_path, database_url=url)
    found = service.database(settings)
    assert found.level == "fail"
    assert found.what.startswith(f"{shown} does not answer: ")
    assert "secret" not in found.what
    assert found.todo == "start it, and check address, user and password"
    assert service.clock(settings) == Finding(
        "clock", "warn", "unknown, for the database does not answer", "see database"
    )


def test_a_database_that_accepts_and_says_nothing_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PATIENCE_S", 2.0)
    with taken_port() as port:
        settings = Settings(data_dir=tmp_path, database_url=f"postgresql://user@127.0.0.1:{port}/name")
        found = service.database(settings)
    assert found.level == "fail"
    assert "timeout expired" in found.what


def test_a_database_of_another_kind(tmp_path: Path) -> None:
    found = service.database(Settings(data_dir=tmp_path, database_url="mysql://host/name"))
    assert found == Finding(
        "database", "fail", "unknown database 'mysql'; known: sqlite, postgresql", "correct BLOCKWRIGHT_DATABASE_URL"
    )


def test_clock_of_the_database(tmp_path: Path, postgresql: Server) -> None:
    assert service.clock(Settings(data_dir=tmp_path)) == Finding("clock", "ok", "the database is on this machine")
    with postgresql.database() as url:
        settings = Settings(data_dir=tmp_path, database_url=url)
        assert service.clock(settings) == Finding("clock", "ok", "the database's clock is 0.0 s off this machine's")
        engine = make_engine(url)
        with transaction(engine) as connection:
            connection.exec_driver_sql(
                "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
                "$$ SELECT pg_catalog.clock_timestamp() - interval '1 hour' $$"
            )
            name = engine.url.database
            connection.exec_driver_sql(f"ALTER DATABASE {name} SET search_path = public, pg_catalog")
        engine.dispose()
        found = service.clock(settings)
    assert found.level == "warn"
    off = re.fullmatch(r"the database's clock is (\d+\.\d) s off this machine's", found.what)
    assert off is not None, found.what
    assert float(off[1]) == pytest.approx(3600, abs=60)
    assert found.todo == "let both set their clocks (NTP): times shown will not fit together"


# -- token, port, service ---------------------------------------------------------------------------------------------


def test_token(tmp_path: Path) -> None:
    found = service.token(Settings(data_dir=tmp_path))
    assert found == Finding("token", "ok", "none, and none is needed: the api listens on 127.0.0.1 alone")
    found = service.token(Settings(data_dir=tmp_path, token="0123456789abcdef"))
    assert found == Finding("token", "ok", "16 characters, from BLOCKWRIGHT_TOKEN")
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    file.chmod(0o644)
    settings = Settings(data_dir=tmp_path, token_file=file)
    tmp_path.chmod(0o755)
    what = f"everybody on this machine can read {file}"
    assert service.token(settings) == Finding("token", "warn", what, f"run `chmod 600 {file}`")
    tmp_path.chmod(0o700)
    assert service.token(settings) == Finding("token", "ok", f"16 characters, from {file}")


def test_port_that_is_free_or_any(tmp_path: Path) -> None:
    port = free_port()
    found = service.port(Settings(data_dir=tmp_path, port=port))
    assert found == Finding("port", "ok", f"127.0.0.1 port {port} is free")
    assert service.port(Settings(data_dir=tmp_path, port=0)) == Finding("port", "ok", "any free one")


def test_port_that_another_program_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PATIENCE_S", 0.5)
    with taken_port() as port:
        found = service.port(Settings(data_dir=tmp_path, port=port))
    assert found == Finding(
        "port",
        "fail",
        f"cannot listen on 127.0.0.1 port {port}: address already in use",
        "end what has it, or choose another by --port or BLOCKWRIGHT_PORT (0: any free one)",
    )


def test_port_of_an_address_of_another_machine(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, host="192.0.2.77", port=8400, token="0123456789abcdef")
    found = service.port(settings)
    assert (found.level, found.what) == (
        "fail",
        "cannot listen on 192.0.2.77 port 8400: cannot assign requested address",
    )


def test_port_that_blockwright_has(tmp_path: Path, service_with_token: Running) -> None:
    port = int(service_with_token.url.rpartition(":")[2])
    found = service.port(Settings(data_dir=tmp_path, port=port))
    assert found == Finding("port", "ok", f"127.0.0.1 port {port} is taken, by Blockwright")


@pytest.fixture
def service_with_token(settings: Settings) -> Iterator[Running]:
    with running(Settings(data_dir=settings.data_dir, port=0, token="0123456789abcdef")) as found:
        yield found


def test_service_that_runs(settings: Settings, service_with_token: Running) -> None:
    url = service_with_token.url
    (settings.data_dir / ADDRESS_FILE).write_text(f"{url}\n")
    found = service.service(Settings(data_dir=settings.data_dir, token="0123456789abcdef"))
    assert found == Finding("service", "ok", f"{url} runs version {installed()}")
    found = service.service(Settings(data_dir=settings.data_dir, token="fedcba9876543210"))
    assert found == Finding(
        "service",
        "fail",
        f"{url} refuses the token that is set here",
        "set BLOCKWRIGHT_TOKEN or BLOCKWRIGHT_TOKEN_FILE to what the service was started with",
    )


def test_service_that_does_not_run(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    assert service.service(settings) == Finding(
        "service", "ok", "none runs on the data folder; `blockwright serve` starts one"
    )
    file = tmp_path / ADDRESS_FILE
    file.write_text("http://127.0.0.1:9\n")
    assert service.service(settings) == Finding(
        "service",
        "warn",
        f"{file} names http://127.0.0.1:9, where nothing of ours answers",
        "it was killed: start it again, which corrects the file",
    )
    file.write_bytes(b"\xff\xfe")
    assert service.service(settings).what.startswith(f"{file} cannot be read: ")


@pytest.mark.parametrize("body", ["<html>hello</html>", '{"version": "1"}', "[]", '{"type": 1}'])
def test_service_of_another_program(tmp_path: Path, body: str) -> None:
    for status in (200, 401):
        with answering(status, body) as url:
            (tmp_path / ADDRESS_FILE).write_text(url)
            found = service.service(Settings(data_dir=tmp_path))
        assert (found.level, found.what) == (
            "warn",
            f"{tmp_path / ADDRESS_FILE} names {url}, where nothing of ours answers",
        )


def test_service_of_another_version(tmp_path: Path) -> None:
    with answering(200, '{"version": "9.9", "python": "3.99"}') as url:
        (tmp_path / ADDRESS_FILE).write_text(url)
        found = service.service(Settings(data_dir=tmp_path))
    what = f"{url} runs version 9.9; installed is {installed()}"
    assert found == Finding("service", "warn", what, "start the service again to run what is installed")


@pytest.mark.parametrize("shared", [False, True])  # over a Ray cluster of an address there may be several
def test_dispatcher(tmp_path: Path, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data_dir=tmp_path)
    started = "`blockwright serve` starts one, `blockwright dispatch` runs one alone"
    assert service.dispatcher(settings) == Finding("dispatcher", "ok", f"none has had the data folder yet; {started}")
    with lock(tmp_path / LOCK_FILE, shared=shared):
        content = (tmp_path / LOCK_FILE).read_text()
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now)  # it goes on between touching and looking
        os.utime(tmp_path / LOCK_FILE, (now, now))
        assert service.dispatcher(settings) == Finding("dispatcher", "ok", "runs, and looked for searches 0 s ago")
        long_ago = now - 500
        os.utime(tmp_path / LOCK_FILE, (long_ago, long_ago))
        assert service.dispatcher(settings) == Finding(
            "dispatcher",
            "warn",
            "it last looked for searches 500 s ago",
            "is the database out of reach? otherwise start it again",
        )
        assert (tmp_path / LOCK_FILE).read_text() == content  # looking changes nothing
    assert service.dispatcher(settings) == Finding("dispatcher", "ok", f"none runs on the data folder; {started}")
    (tmp_path / ADDRESS_FILE).touch()
    assert service.dispatcher(settings) == Finding(
        "dispatcher",
        "warn",
        "none runs on the data folder, though a service does or did",
        f"queued searches wait for it; {started}",
    )


def note_head(folder: Path, port: int, process: processes.ProcessId) -> None:
    noted = {"address": f"127.0.0.1:{port}", "process": {"pid": process.pid, "started": process.started}}
    (folder / "ray.json").write_text(json.dumps(noted))


def test_ray_cluster_of_our_own(tmp_path: Path) -> None:
    settings = WorkerSettings(data_dir=tmp_path)
    assert service.ray_cluster(settings) == Finding(
        "ray cluster", "ok", "none runs; the dispatcher starts one with the first search"
    )
    note_head(tmp_path, 9, processes.ProcessId(2**22 + 1, 0.0))
    assert service.ray_cluster(settings) == Finding(
        "ray cluster", "ok", "the last one has ended; the dispatcher starts one with the next search"
    )
    assert (tmp_path / "ray.json").exists()  # looking changes nothing
    here = processes.identify(os.getpid())
    with taken_port() as port:
        note_head(tmp_path, port, here)
        assert service.ray_cluster(settings) == Finding("ray cluster", "ok", f"answers at 127.0.0.1:{port}")
    found = service.ray_cluster(settings)
    assert (found.level, found.what) == ("fail", f"nothing answers at 127.0.0.1:{port}: connection refused")


def test_ray_cluster_that_is_named(tmp_path: Path) -> None:
    todo = "without it no search can run"
    settings = WorkerSettings(data_dir=tmp_path, ray_address="ray-head")
    what = "'ray-head' is no address of a Ray head; it looks like ray-head:6379"
    assert service.ray_cluster(settings) == Finding("ray cluster", "fail", what, todo)
    with taken_port() as port:
        settings = WorkerSettings(data_dir=tmp_path, ray_address=f"127.0.0.1:{port}")
        found = service.ray_cluster(settings)
        assert (found.level, found.todo) == ("fail", todo)
        assert found.what.startswith("a Ray node needs a token; set BLOCKWRIGHT_RAY_TOKEN_FILE")
        (tmp_path / "token").write_text("0123456789abcdef")
        settings = settings.model_copy(update={"ray_token_file": tmp_path / "token"})
        assert service.ray_cluster(settings) == Finding("ray cluster", "ok", f"answers at 127.0.0.1:{port}")
    assert service.ray_cluster(settings) == Finding(
        "ray cluster",
        "fail",
        f"nothing answers at 127.0.0.1:{port}: connection refused",
        "start it (`blockwright ray-node --head`), or leave out BLOCKWRIGHT_RAY_ADDRESS to have one of your own",
    )


# -- the whole --------------------------------------------------------------------------------------------------------


def test_what_hangs_is_a_finding_of_its_own() -> None:
    never = threading.Event()

    def hangs() -> Finding:
        never.wait(60)
        return Finding("a", "ok", "in the end")

    found = look({"a": hangs, "b": lambda: Finding("b", "ok", "at once")}, 3)
    assert found == [
        Finding("a", "fail", "no answer within 3 s", "look at what it depends on: disk, network, load"),
        Finding("b", "ok", "at once"),
    ]
    never.set()


def test_what_breaks_is_a_finding_and_shows_no_secret() -> None:
    def forbidden() -> Finding:
        raise PermissionError(13, "Permission denied", "/root/data")

    def bug() -> Finding:
        raise ValueError("postgresql://user:secret@host/name")

    todo = "give this user the right to, or correct its setting"
    assert look({"a": forbidden, "b": bug}, 20) == [
        Finding("a", "fail", "cannot be looked at: permission denied: /root/data", todo),
        Finding("b", "fail", "cannot be looked at: ValueError", todo),
    ]


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Small packages in place of those that take seconds to import."""
    folder = tmp_path / "packages"
    folder.mkdir()
    for name in ("torch", "ray", "optuna"):
        (folder / f"{name}.py").write_text("raise ImportError('none for this test')")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("BLOCKWRIGHT_PORT", "0")


NAMES = ["python", "blockwright", "torch", "ray", "optuna", "page", "blocks", "memory"]
SERVICE_NAMES = ["shared memory", "temporary folder", "data folder", "disk", "database", "clock", "token", "port"]
SERVICE_NAMES += ["service", "dispatcher", "ray cluster"]


@pytest.mark.usefixtures("light")
def test_findings_are_printed_with_what_to_do_and_a_status(run: Run) -> None:
    done = run("doctor")
    assert (done.status, done.err) == (1, "")
    lines = [line.strip() for line in done.out.splitlines()]
    assert "fail  torch             cannot be imported: ImportError: none for this test" in lines
    assert [line for line in lines if line.startswith("-> look with `python")]
    done = run("doctor", "--json")
    assert done.status == 1
    found = json.loads(done.out)
    assert found["ok"] is False
    assert [each["name"] for each in found["findings"]] == NAMES + SERVICE_NAMES
    assert {each["name"] for each in found["findings"] if each["level"] == "fail"} == {"torch", "ray", "optuna"}


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(
    ("variable", "value", "what"),
    [
        ("BLOCKWRIGHT_TOKEN", "short", "the token is too short; at least 16 characters"),
        ("BLOCKWRIGHT_HOST", "0.0.0.0", "refusing to listen on 0.0.0.0 without a token; set BLOCKWRIGHT_TOKEN or"),
        ("BLOCKWRIGHT_LEASE_S", "3", "lease_s 3 is too short for heartbeat_s 3; it must be more than 5"),
        ("BLOCKWRIGHT_TOKEN_FILE", "/no/such", "cannot read the token file /no/such"),
    ],
)
def test_settings_that_cannot_be_read_are_a_finding(
    run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, what: str
) -> None:
    monkeypatch.setenv(variable, value)
    done = run("doctor", "--json")
    assert done.status == 1
    findings = json.loads(done.out)["findings"]
    assert [each["name"] for each in findings] == [*NAMES, "settings"]
    assert what in findings[-1]["what"]
    assert findings[-1]["todo"].startswith("correct the BLOCKWRIGHT_ variables of the environment")


def test_a_whole_installation_is_well_and_doctor_itself_stays_light(tmp_path: Path) -> None:
    code = (
        "import sys, api.commands.doctor as doctor, api.commands.check_machine as machine\n"
        "machine.IMPORT_TIMEOUT_S = 200  # a busy machine is no fault\n"
        "findings = doctor.examine(None, 220)\n"
        "print(*[f'{each.name}: {each.what}' for each in findings if each.level == 'fail'], sep='\\n')\n"
        "print(*sorted({'torch', 'ray', 'optuna', 'scipy', 'alembic', 'uvicorn'} & set(sys.modules)))\n"
    )
    environment = {**os.environ, "BLOCKWRIGHT_DATA_DIR": str(tmp_path), "BLOCKWRIGHT_PORT": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")
    assert doctor.TIMEOUT_S > machine.IMPORT_TIMEOUT_S
