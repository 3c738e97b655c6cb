"""A node of a Ray cluster: its command, its environment, and what stops it from starting. Nodes run in tests/deploy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from workers import processes, ray_node
from workers.cluster import ClusterError, free_port
from workers.settings import Settings


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("0123456789abcdef")
    return path


def test_the_head_listens_where_the_others_look_for_it() -> None:
    settings = Settings(ray_address="localhost:6400", cpus=3.5, gpus=2)
    found = ray_node.command(settings, head=True, cpus=settings.whole_cpus, temp_dir="/tmp/x")
    assert {"--head", "--port=6400", "--node-ip-address=127.0.0.1", "--num-cpus=3", "--num-gpus=2"} <= set(found)
    assert "--include-dashboard=false" in found
    assert not any(each.startswith("--address") for each in found)


def test_another_node_names_the_head_and_its_own_address_on_the_way_there() -> None:
    settings = Settings(ray_address="127.0.0.1:6400", object_store_mb=100)
    found = ray_node.command(settings, head=False, cpus=1, temp_dir="/tmp/x")
    assert {"--address=127.0.0.1:6400", "--node-ip-address=127.0.0.1", "--temp-dir=/tmp/x"} <= set(found)
    assert f"--object-store-memory={100 * 2**20}" in found
    assert "--head" not in found
    elsewhere = settings.model_copy(update={"ray_node_host": "127.0.0.9"})
    assert "--node-ip-address=127.0.0.9" in ray_node.command(elsewhere, head=False, cpus=1, temp_dir="/tmp/x")


def test_a_node_of_no_cpus_has_no_gpus_either() -> None:
    settings = Settings(ray_address="127.0.0.1:6400", gpus=2)
    assert "--num-gpus=0" in ray_node.command(settings, head=False, cpus=0, temp_dir="/tmp/x")


def test_the_environment_asks_for_the_token_and_carries_no_secret(
    token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOCKWRIGHT_DATABASE_URL", "secret")
    monkeypatch.setenv("BLOCKWRIGHT_TOKEN", "secret")
    found = ray_node.environment(Settings(ray_token_file=token_file), "/tmp/x")
    assert found["RAY_AUTH_MODE"] == "token"
    assert found["RAY_AUTH_TOKEN_PATH"] == str(token_file)
    assert found["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "1"
    assert "secret" not in found.values()


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (None, r"^a Ray node needs a token; set BLOCKWRIGHT_RAY_TOKEN_FILE to a file that all nodes have$"),
        ("", r"^cannot read the Ray token file .*: .*No such file"),
        ("short", r"^the Ray token in .*token is too short; at least 16 characters$"),
    ],
    ids=["none", "no file", "short"],
)
def test_no_node_starts_without_a_token(tmp_path: Path, token: str | None, message: str) -> None:
    file = tmp_path / "token"
    if token:
        file.write_text(token)
    settings = Settings(
        ray_address="127.0.0.1:1", ray_token_file=None if token is None else file, ray_temp_dir=tmp_path
    )
    with pytest.raises(ClusterError, match=message), ray_node.running(settings):
        pass
    assert not [*tmp_path.glob("bw-*")]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (None, r"^where is the head\? set BLOCKWRIGHT_RAY_ADDRESS, such as ray-head:6379$"),
        ("ray-head", r"^'ray-head' is no address of a Ray head; it looks like ray-head:6379$"),
        (":6379", r"^':6379' is no address of a Ray head"),
        ("ray-head:70000", r"^'ray-head:70000' is no address of a Ray head"),
        ("no-such-host.invalid:6379", r"^cannot resolve 'no-such-host.invalid': "),
    ],
)
def test_an_address_that_leads_nowhere_is_one_line(
    tmp_path: Path, token_file: Path, address: str | None, message: str
) -> None:
    settings = Settings(ray_address=address, ray_token_file=token_file, ray_temp_dir=tmp_path)
    with pytest.raises(ClusterError, match=message), ray_node.running(settings):
        pass
    assert not [*tmp_path.glob("bw-*")]


@pytest.mark.ray
def test_a_head_that_does_not_start_says_why_and_leaves_nothing(tmp_path: Path, token_file: Path) -> None:
    long = tmp_path / ("long" * 30)  # too long for the path of a socket
    long.mkdir()
    settings = Settings(ray_address=f"127.0.0.1:{free_port()}", ray_token_file=token_file, ray_temp_dir=long, cpus=1)
    with pytest.raises(ClusterError, match=r"^the Ray node did not start: .+"), ray_node.running(settings, head=True):
        pass
    assert not [*long.iterdir()]


@pytest.mark.ray
def test_another_token_is_refused_and_a_node_that_ends_by_itself_is_told(token_file: Path, tmp_path: Path) -> None:
    settings = Settings(ray_address=f"127.0.0.2:{free_port()}", ray_token_file=token_file, object_store_mb=80)
    ended = threading.Event()
    with ray_node.running(settings, head=True, cpus=1, on_end=ended.set) as node:
        (tmp_path / "other").write_text("fedcba9876543210")
        foreign = settings.model_copy(update={"ray_token_file": tmp_path / "other", "ray_node_host": "127.0.0.3"})
        with pytest.raises(ClusterError, match="InvalidAuthToken"), ray_node.running(foreign, cpus=1):
            pass
        temp_dir = Path(os.readlink(f"/proc/{node.pid}/cwd"))
        node.kill()
        assert ended.wait(60)
    assert not processes.members(node.pid)
    assert not temp_dir.exists()


@pytest.mark.ray
def test_a_node_whose_keeper_is_killed_ends_too(token_file: Path) -> None:
    environment = {
        **os.environ,
        "BLOCKWRIGHT_RAY_ADDRESS": f"127.0.0.2:{free_port()}",
        "BLOCKWRIGHT_RAY_TOKEN_FILE": str(token_file),
        "BLOCKWRIGHT_OBJECT_STORE_MB": "80",
        "BLOCKWRIGHT_CPUS": "1",
    }
    command = [sys.executable, "-m", "api.cli", "ray-node", "--head"]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as keeper:
        assert keeper.stderr is not None
        assert any("Ray runtime started" in line for line in keeper.stderr)
        (node,) = psutil.Process(keeper.pid).children()
        temp_dir = Path(node.cwd())
        keeper.kill()
        keeper.stderr.read()  # until the node has ended, which holds the other end
    deadline = time.monotonic() + 60
    while processes.members(node.pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    shutil.rmtree(temp_dir)  # the keeper would have done it
