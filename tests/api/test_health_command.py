"""`blockwright health`: one line and a status for containers and supervisors."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from db import revision
from db.engine import transaction
from tests.api.running import Running
from tests.api.test_cli import Run, run
from workers.dispatcher import LOCK_FILE

__all__ = ["run"]  # a fixture


def test_an_api_that_is_ready_says_so(run: Run, service: Running) -> None:
    port = service.url.rpartition(":")[2]
    assert run("health", "api", "--port", port) == (0, f"the api at {service.url} is ready\n", "")


def test_an_api_whose_database_is_not_migrated_is_unhealthy(run: Run, service: Running) -> None:
    with transaction(service.engine) as connection:
        connection.exec_driver_sql(f"UPDATE {revision.VERSION_TABLE} SET version_num = '0000'")
    done = run("health", "api", "--port", service.url.rpartition(":")[2])
    assert done.status == 1
    assert done.err.startswith(f"blockwright: the api at {service.url} is not ready: ")
    assert "run blockwright migrate" in done.err


def test_an_api_that_does_not_answer_is_unhealthy(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("BLOCKWRIGHT_PORT", str(port))
    done = run("health", "api")
    assert done.status == 1
    assert done.err.startswith(f"blockwright: nothing answers at http://127.0.0.1:{port}: ")


def test_a_dispatcher_is_healthy_by_its_last_look(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("health", "dispatcher")
    assert (done.status, done.err) == (1, f"blockwright: no dispatcher has had the data folder {tmp_path} yet\n")
    lock = tmp_path / LOCK_FILE
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)  # it goes on between touching and looking
    lock.touch()
    os.utime(lock, (now, now))
    assert run("health", "dispatcher").out.startswith(f"the dispatcher of {tmp_path} looked 0 s ago")
    long_ago = now - 500
    os.utime(lock, (long_ago, long_ago))
    done = run("health", "dispatcher")
    assert (done.status, done.err) == (1, f"blockwright: the dispatcher of {tmp_path} last looked 500 s ago\n")


def test_a_ray_node_without_its_head_is_unhealthy(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("health", "ray-node")
    assert (done.status, done.err) == (
        1,
        "blockwright: where is the head? set BLOCKWRIGHT_RAY_ADDRESS, such as ray-head:6379\n",
    )
    monkeypatch.setenv("BLOCKWRIGHT_RAY_ADDRESS", "127.0.0.1:9")
    done = run("health", "ray-node")
    assert done.status == 1
    assert done.err == "blockwright: the Ray head at 127.0.0.1:9 does not answer: Connection refused\n"


def test_a_part_that_does_not_exist_is_refused(run: Run) -> None:
    done = run("health", "database")
    assert done.status == 2
    assert "'database' is not one of 'api', 'dispatcher', 'ray-node'" in done.err


@pytest.mark.parametrize("command", [("ray-node",), ("ray-node", "--head"), ("dispatch", "--join-ray")])
def test_a_ray_node_without_a_token_is_one_line(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command)
    assert (done.status, done.err) == (
        2,
        "blockwright: a Ray node needs a token; set BLOCKWRIGHT_RAY_TOKEN_FILE to a file that all nodes have\n",
    )
