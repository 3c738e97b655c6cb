"""The PostgreSQL of the tests: whatever becomes of them, nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.postgresql import Server

HOLDER = """
import sys, time
from tests.postgresql import Server
with Server() as server:
    print(server.folder, flush=True)
    time.sleep(1000)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda end: end.name)
def test_the_server_ends_with_the_tests_however_they_end(end: signal.Signals) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert holder.stdout is not None
    folder = Path(holder.stdout.readline().strip())
    server = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(server, 0)
    holder.send_signal(end)
    holder.wait()
    holder.stdout.close()
    deadline = time.monotonic() + 120
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


def test_only_its_socket_can_be_reached_and_a_restart_keeps_what_it_holds(postgresql: Server) -> None:
    with postgresql.database() as url, psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        connection.execute("CREATE TABLE kept ()")
        postgresql.stop()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url.replace("+psycopg", ""))
        postgresql.start()
        with psycopg.connect(url.replace("+psycopg", "")) as again:
            assert again.execute("SELECT count(*) FROM kept").fetchone() == (0,)
