"""The local Ray: only on loopback, only with its token, and adopted rather than started twice."""

from __future__ import annotations

import contextlib
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from workers import cluster, processes
from workers.cluster import Cluster, ClusterError
from workers.settings import Settings


@pytest.mark.ray
def test_nothing_of_ray_listens_beyond_loopback(ray_cluster: Cluster) -> None:
    listening = [
        (psutil.Process(pid).name(), connection.laddr.ip)
        for pid in processes.members(ray_cluster.process.pid)
        for connection in psutil.Process(pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 3  # control service, raylet and its agent at least
    assert {ip for _, ip in listening} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, listening


@pytest.mark.ray
def test_a_live_head_is_adopted(ray_cluster: Cluster) -> None:
    data_dir = Path(ray_cluster.token_file).parent
    assert cluster.start(Settings(data_dir=data_dir)) == ray_cluster


@pytest.mark.ray
def test_the_token_is_for_its_owner_alone(ray_cluster: Cluster) -> None:
    token_file = Path(ray_cluster.token_file)
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    assert len(token_file.read_text()) == 64


def test_the_environment_of_trials_carries_no_secret_of_the_service() -> None:
    base = {"PATH": "/bin", "BLOCKWRIGHT_DATABASE_URL": "secret", "BLOCKWRIGHT_TOKEN": "secret", "AWS_KEY": "secret"}
    environment = cluster.environment(base, "/token", "/tmp/bw")
    assert environment["PATH"] == "/bin"
    assert environment["RAY_AUTH_MODE"] == "token"
    assert environment["RAY_AUTH_TOKEN_PATH"] == "/token"
    assert environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert "secret" not in environment.values()


def test_leavings_of_a_dead_head_are_removed(tmp_path: Path) -> None:
    session = tmp_path / "session"
    session.mkdir()
    process = processes.ProcessId(2**22 + 1, 0.0)  # above the largest pid there can be
    dead = Cluster("127.0.0.1:1", process, str(session), str(tmp_path / "ray.token"))
    cluster.write(tmp_path, dead)
    assert cluster.find(tmp_path) is None
    assert not session.exists()
    assert not (tmp_path / "ray.json").exists()


def test_a_head_that_does_not_start_says_why(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, ray_temp_dir=tmp_path / ("long" * 30))
    settings.ray_temp_dir.mkdir()
    with pytest.raises(ClusterError, match=r"ray did not start: .*ray\.log\)"):
        cluster.start(settings)
    assert not (tmp_path / "ray.json").exists()


@pytest.mark.ray
def test_a_head_that_is_unwanted_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, ray_temp_dir=Path(tempfile.mkdtemp(prefix="bwt-")), cpus=1)
    noted = tmp_path / "ray.json"
    with pytest.raises(cluster.Unwanted):
        cluster.start(settings, noted.exists)  # it has a process and a folder by then, and takes seconds more
    assert not noted.exists()
    assert heads_of(tmp_path) == []
    assert list(settings.ray_temp_dir.iterdir()) == []


def start_a_head_and_die(settings: Settings) -> None:
    """A dispatcher that is killed as soon as it has started the process of a head."""
    code = """
import os, signal, sys, time
from pathlib import Path
from workers import cluster
from workers.settings import Settings
cluster._wait = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
cluster.start(Settings(data_dir=Path(sys.argv[1]), ray_temp_dir=Path(sys.argv[2])))
"""
    environment = {"PATH": "/bin:/usr/bin", "PYTHONPATH": cluster.python_path()}
    command = [sys.executable, "-c", code, str(settings.data_dir), str(settings.ray_temp_dir)]
    assert subprocess.run(command, env=environment, check=False).returncode == -9


def heads_of(folder: Path) -> list[int]:
    """Processes whose command line names this very folder as that of a head."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if f"--folder={folder}" in process.cmdline():
                found.append(process.pid)
    return found


@pytest.mark.ray
def test_a_dispatcher_killed_while_it_starts_ray_leaves_no_second_head(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, ray_temp_dir=Path(tempfile.mkdtemp(prefix="bwt-")), cpus=1)
    start_a_head_and_die(settings)
    found = cluster.start(settings)
    try:
        deadline = time.monotonic() + 60
        while heads_of(tmp_path) != [found.process.pid]:  # the other one waits for the lock a moment longer
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert [str(path) for path in settings.ray_temp_dir.iterdir()] == [found.temp_dir]
    finally:
        cluster.stop(found, tmp_path)
    assert not processes.members(found.process.pid)
    settings.ray_temp_dir.rmdir()
