"""A runner that may no longer write ends itself, with everything it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from db import queue, searches
from db.engine import transaction
from tests import tiny
from tests.workers.service import Service
from workers.cluster import python_path
from workers.settings import Settings

HEART = """
import sys, time
from db.lease import Lease
from workers.process import Heartbeat
from workers.settings import Settings
settings = Settings()
Heartbeat(settings, Lease(sys.argv[1], int(sys.argv[2])), lambda: print("cancelling", flush=True), settings.lease_s)
time.sleep(100)
"""


def start(service: Service, command: list[str], **settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        env={
            **os.environ,
            "BLOCKWRIGHT_DATA_DIR": str(service.data_dir),
            "PYTHONPATH": python_path(),
            **{f"BLOCKWRIGHT_{name}": value for name, value in settings.items()},
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def claim(service: Service) -> queue.Claim:
    service.submit(tiny.request())
    with transaction(service.engine) as connection:
        claimed = queue.claim_next(connection, "test", free_cpus=1, free_gpus=0, lease_s=60)
    assert claimed is not None
    return claimed


def test_a_runner_with_an_old_token_ends_itself(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    lease = claim(service).lease
    old = str(lease.token - 1)
    runner = start(service, ["-m", "workers.process", "--search", lease.search_id, "--token", old])
    said, _ = runner.communicate(timeout=60)
    assert runner.returncode == -signal.SIGKILL
    assert "stopping: the search belongs to another runner now" in said
    service.engine.dispose()


def test_a_runner_without_database_ends_itself_with_its_lease(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    lease = claim(service).lease
    with transaction(service.engine):  # nobody else can write now
        heart = start(service, ["-c", HEART, lease.search_id, str(lease.token)], LEASE_S="4", HEARTBEAT_S="0.2")
        said, _ = heart.communicate(timeout=60)
    assert heart.returncode == -signal.SIGKILL
    assert "stopping: the database was out of reach until the end of the lease" in said
    service.engine.dispose()


def test_a_runner_whose_database_answers_with_errors_ends_itself_before_its_lease_does(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    settings = {"LEASE_S": "9", "HEARTBEAT_S": "6.9", "DATABASE_URL": f"sqlite:///{tmp_path}/gone/blockwright.db"}
    code = HEART.replace("Heartbeat(", 'print("beating", flush=True); Heartbeat(', 1)
    heart = start(service, ["-c", code, "search", "1"], **settings)
    assert heart.stdout is not None
    assert heart.stdout.readline() == "beating\n"
    began = time.monotonic()
    said, _ = heart.communicate(timeout=60)
    assert time.monotonic() - began < 12  # its last try is after 7 s; the beat after next would be at 13.8
    assert "stopping: the database was out of reach until the end of the lease" in said
    service.engine.dispose()


def test_a_runner_that_was_held_up_for_longer_than_its_lease_goes_on_if_nobody_took_the_search(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    lease = claim(service).lease

    def wait_for(is_kept: bool) -> None:
        deadline = time.monotonic() + 60
        while (service.running(lease.search_id).expires_in_s > 0) is not is_kept:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    with transaction(service.engine) as connection:
        queue.heartbeat(connection, lease, lease_s=-1)
    heart = start(service, ["-c", HEART, lease.search_id, str(lease.token)], LEASE_S="3", HEARTBEAT_S="0.2")
    wait_for(True)
    heart.send_signal(signal.SIGSTOP)
    wait_for(False)
    heart.send_signal(signal.SIGCONT)
    wait_for(True)
    assert heart.poll() is None
    heart.kill()
    heart.communicate()
    service.engine.dispose()


def test_a_lease_that_a_heartbeat_cannot_keep_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"lease_s 5 is too short for heartbeat_s 3; it must be more than 5"):
        Settings(lease_s=5)


def test_a_heartbeat_hears_of_a_cancel(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    lease = claim(service).lease
    with transaction(service.engine) as connection:
        searches.cancel(connection, lease.search_id)
    heart = start(service, ["-c", HEART, lease.search_id, str(lease.token)])
    assert heart.stdout is not None
    assert heart.stdout.readline() == "cancelling\n"
    heart.kill()
    heart.communicate()
    service.engine.dispose()
