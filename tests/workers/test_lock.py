"""One process at a time has a folder, and a dead one has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.cluster import python_path
from workers.lock import Locked, lock

HOLD = """
import pathlib, sys
from workers.lock import lock
with lock(pathlib.Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_one_process_s_until_it_ends_however_it_does(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        env={**os.environ, "PYTHONPATH": python_path()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(Locked, match=rf"lock is locked by process {holder.pid}$"), lock(path):
            pass
        holder.kill()
    with lock(path):
        assert path.read_text() == str(os.getpid())


def test_a_lock_can_be_shared_or_held_alone(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        lock(path, shared=True),
        lock(path, shared=True),
        pytest.raises(Locked, match=r"is locked by process \d+"),
        lock(path),
    ):
        pass
    with lock(path), pytest.raises(Locked), lock(path, shared=True):
        pass
