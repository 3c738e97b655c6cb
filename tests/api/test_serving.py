"""`blockwright serve` as a user runs it: real processes, ended only by the pids that were started here."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import psutil
import pytest
from pydantic import SecretStr

from api.commands.refuse import Refused
from api.serving import run_api, url_of
from api.settings import Settings
from db.revision import HEAD

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@contextmanager
def blockwright(
    *arguments: str, data_dir: Path, output: int | IO[bytes] = subprocess.PIPE, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BLOCKWRIGHT_")}
    environment |= variables
    command = [sys.executable, "-m", "api.cli", *arguments, "--data-dir", str(data_dir)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PATIENCE_S)


def address(data_dir: Path) -> str:
    wait_for((data_dir / "address").exists, "the service answers")
    return (data_dir / "address").read_text().strip()


def dispatcher_of(process: subprocess.Popen[str]) -> psutil.Process | None:
    for child in psutil.Process(process.pid).children():
        if child.status() != psutil.STATUS_ZOMBIE and "dispatch" in child.cmdline():
            return child
    return None


def session_of(process: psutil.Process) -> int | None:
    """None where it has ended."""
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_serve_migrates_answers_and_ends_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    with blockwright("serve", "--port", "0", data_dir=tmp_path) as process:
        url = address(tmp_path)
        assert httpx.get(f"{url}/readyz", trust_env=False, timeout=PATIENCE_S).json() == {"status": "ok"}
        wait_for(lambda: (tmp_path / "dispatcher.lock").exists(), "the dispatcher runs")
        dispatcher = dispatcher_of(process)
        assert dispatcher is not None
        with httpx.stream("GET", f"{url}/healthz", trust_env=False, timeout=PATIENCE_S) as answer:
            assert answer.status_code == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert f"answers at {url}" in out
    assert "Traceback" not in err
    assert not dispatcher.is_running()
    assert not (tmp_path / "address").exists()


def test_a_log_on_a_full_disk_does_not_keep_the_service_from_answering(tmp_path: Path) -> None:
    with (
        Path("/dev/full").open("wb") as full,
        blockwright("serve", "--port", "0", data_dir=tmp_path, output=full) as it,
    ):
        assert httpx.get(f"{address(tmp_path)}/readyz", trust_env=False, timeout=PATIENCE_S).json() == {"status": "ok"}
        it.send_signal(signal.SIGTERM)
        assert it.wait(timeout=PATIENCE_S) == 0


def test_an_interrupted_migration_is_ended_and_says_nothing(tmp_path: Path) -> None:
    with blockwright("serve", "--port", "0", data_dir=tmp_path) as process:
        found: list[psutil.Process] = []
        wait_for(lambda: found.extend(psutil.Process(process.pid).children()) or found, "the migration runs")
        child = found[0]
        # A session of its own, so that Ctrl-C in a terminal does not reach it; right after the fork it has none yet.
        wait_for(lambda: session_of(child) in (child.pid, None), "the migration has a session of its own")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "Traceback" not in err
    said = [line for line in err.splitlines() if "[info" not in line]  # of a dispatcher that ran by then
    assert said in ([], [f"database is at revision {HEAD}"])  # on a busy machine it may have ended before the signal
    assert not child.is_running()


def test_folders_of_our_packages_names_where_it_is_started_do_no_harm(tmp_path: Path) -> None:
    for name in ("api", "db", "workers", "nas"):
        (tmp_path / "project" / name).mkdir(parents=True)
        (tmp_path / "project" / name / "__init__.py").touch()
    command = [str(Path(sys.executable).with_name("blockwright")), "serve", "--port", "0", "--data-dir", str(tmp_path)]
    process = subprocess.Popen(command, cwd=tmp_path / "project", stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: (tmp_path / "address").exists() or process.poll() is not None, "the service answers")
        wait_for(lambda: (tmp_path / "dispatcher.lock").exists() or process.poll() is not None, "the dispatcher runs")
        assert process.poll() is None
    finally:
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE_S)
    assert "No module named" not in err


def test_an_open_event_stream_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with blockwright("serve", "--port", "0", data_dir=tmp_path) as process:
        url = address(tmp_path)
        # Ray takes seconds to start, and only then is it told that there are not so many processors.
        request = {"name": "waits", "resources": {"cpus": 1000}}
        search = httpx.post(f"{url}/api/v1/searches", json=request, trust_env=False, timeout=PATIENCE_S).json()
        with httpx.stream(
            "GET", f"{url}/api/v1/searches/{search['id']}/events", trust_env=False, timeout=PATIENCE_S
        ) as answer:
            lines = answer.iter_lines()
            next(lines)
            process.terminate()
            assert [line for line in lines if line.startswith("event: ")] == ["event: queued"]
        process.wait(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_a_dispatcher_that_dies_is_started_again(tmp_path: Path) -> None:
    with blockwright("serve", "--port", "0", data_dir=tmp_path) as process:
        address(tmp_path)
        wait_for(lambda: dispatcher_of(process), "the dispatcher runs")
        first = dispatcher_of(process)
        assert first is not None
        first.kill()
        wait_for(lambda: dispatcher_of(process) not in (None, first), "another dispatcher runs")


def test_the_dispatcher_ends_when_serve_is_killed(tmp_path: Path) -> None:
    with blockwright("serve", "--port", "0", data_dir=tmp_path) as process:
        address(tmp_path)
        wait_for(lambda: (tmp_path / "dispatcher.lock").exists(), "the dispatcher runs")
        dispatcher = dispatcher_of(process)
        assert dispatcher is not None
        process.kill()
        wait_for(lambda: not dispatcher.is_running(), "the dispatcher has ended")


@pytest.mark.parametrize("command", ["serve", "api"])
def test_a_port_that_is_taken_is_one_line(tmp_path: Path, command: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with blockwright(command, "--port", str(port), data_dir=tmp_path) as process:
            _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert err == (
        f"blockwright: cannot listen on 127.0.0.1 port {port}: address already in use; --port 0 takes a free one\n"
    )


def test_a_second_serve_on_a_data_folder_is_one_line(tmp_path: Path) -> None:
    with blockwright("serve", "--port", "0", data_dir=tmp_path):
        url = address(tmp_path)
        with blockwright("serve", "--port", "0", data_dir=tmp_path) as second:
            _, err = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 2
        assert err == f"blockwright: another `blockwright serve` runs on the data folder {tmp_path}\n"
        assert address(tmp_path) == url


def test_an_address_beyond_loopback_without_a_token_is_one_line(tmp_path: Path) -> None:
    with blockwright("api", "--host", "0.0.0.0", data_dir=tmp_path) as process:
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert err.startswith("blockwright: refusing to listen on 0.0.0.0 without a token")
    assert err.count("\n") == 1


def test_address_and_token_may_come_from_the_environment(tmp_path: Path) -> None:
    token = "correct-horse-battery"
    variables = {"BLOCKWRIGHT_HOST": "0.0.0.0", "BLOCKWRIGHT_PORT": "0", "BLOCKWRIGHT_TOKEN": token}
    with blockwright("serve", data_dir=tmp_path, **variables) as process:
        wait_for(lambda: (tmp_path / "address").exists() or process.poll() is not None, "the service answers")
        url = address(tmp_path)
        assert httpx.get(f"{url}/version", trust_env=False, timeout=PATIENCE_S).status_code == 401
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{url}/version", headers=headers, trust_env=False, timeout=PATIENCE_S).status_code == 200
        wait_for(lambda: dispatcher_of(process), "the dispatcher runs")
        dispatcher = dispatcher_of(process)
        assert dispatcher is not None
        assert "BLOCKWRIGHT_TOKEN" not in dispatcher.environ()


def test_a_name_that_is_no_address_is_refused(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, host="nowhere.invalid", token=SecretStr("correct-horse-battery"))
    with pytest.raises(Refused, match=r"cannot listen on nowhere\.invalid: "):
        run_api(settings)


def test_the_api_alone_serves_a_migrated_database(tmp_path: Path) -> None:
    data_dir, elsewhere = tmp_path / "data", {"BLOCKWRIGHT_DATABASE_URL": f"sqlite:///{tmp_path}/elsewhere.db"}
    with blockwright("migrate", data_dir=data_dir, **elsewhere) as process:
        process.wait(timeout=PATIENCE_S)
    with blockwright("api", "--port", "0", data_dir=data_dir, **elsewhere) as process:
        url = address(data_dir)
        assert httpx.get(f"{url}/readyz", trust_env=False, timeout=PATIENCE_S).status_code == 200
        assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
        assert psutil.Process(process.pid).children() == []
        process.terminate()
        assert process.wait(timeout=PATIENCE_S) == 0


def test_a_database_that_cannot_be_migrated_stops_serve(tmp_path: Path) -> None:
    (tmp_path / "blockwright.db").write_bytes(b"this is no database" * 100)
    (tmp_path / "address").write_text("http://127.0.0.1:9\n")  # a killed one has left it
    with blockwright("serve", "--port", "0", data_dir=tmp_path) as process:
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "cannot migrate the database" in err
    assert "the service does not start" in err
    assert not (tmp_path / "address").exists()
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
        ("lab.example", "http://lab.example:80"),
    ],
)
def test_the_address_is_one_that_clients_here_can_use(host: str, url: str) -> None:
    assert url_of(host, 80) == url
