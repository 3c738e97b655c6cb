"""What docker-compose.yml starts, as plain processes: its services, commands, environment, order and health checks.

The few values that only mean something inside its networks and volumes are mapped; all others are the file's own.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from api.client import Client, ClientError
from tests import tiny
from tests.deploy import compose
from tests.postgresql import Server
from workers.cluster import free_port

PATIENCE_S = 400.0  # a minute is enough on an idle machine
# Each Ray node has an address of its own, all of this machine: the head's stands in the mapping below.
NODE_HOSTS = {"ray-worker": "127.0.0.3", "dispatcher": "127.0.0.4"}


class Deployment:
    """The services of the file that have a process: all but postgres, which is the tests' own."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self._document = compose.read()
        self._services: dict[str, dict[str, Any]] = self._document["services"]
        self._folder = folder
        self.data_dir = folder / "data"
        self.idle = folder / "idle"  # home and working directory: nothing may be written there
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for part in (self.data_dir, self.idle, folder / "secrets"):
            part.mkdir()
        for name in self._document["secrets"]:
            (folder / "secrets" / name).write_text(secrets.token_urlsafe(32))
        self._mapped = {
            "postgresql+psycopg://blockwright@postgres:5432/blockwright": database_url,
            "ray-head:6379": f"127.0.0.2:{free_port()}",
            **{f"/run/secrets/{name}": f"{folder}/secrets/{name}" for name in self._document["secrets"]},
            "/data": str(self.data_dir),
            "0.0.0.0": "127.0.0.1",
            "8400": "0",
        }

    @property
    def token(self) -> str:
        return (self._folder / "secrets" / "api_token").read_text()

    def log(self, service: str) -> str:
        return (self._folder / f"{service}.log").read_text(errors="replace")

    def start(self) -> None:
        """Everything, each service once those it waits for are as far as the file says."""
        for name in compose.start_order(self._document):
            service = self._services[name]
            for other, wanted in service.get("depends_on", {}).items():
                if other != "postgres":
                    self._wait_until(other, wanted["condition"])
            if name != "postgres":
                self.processes[name] = self._run(name, service["command"])
        for name, process in self.processes.items():
            if "healthcheck" in self._services[name]:
                self._wait_until(name, "service_healthy")
                assert process.poll() is None

    def _wait_until(self, name: str, condition: str) -> None:
        process = self.processes[name]
        if condition == "service_completed_successfully":
            assert process.wait(PATIENCE_S) == 0, self.log(name)
            return
        assert condition == "service_healthy"
        command = self._services[name]["healthcheck"]["test"][2:]  # after CMD, blockwright
        wait_for(lambda: self._is_healthy(name, command), lambda: self.log(name))

    def _is_healthy(self, name: str, command: list[str]) -> bool:
        assert self.processes[name].poll() is None, self.log(name)
        if name == "api":  # on a port that it chose itself
            address = self.data_dir / "address"
            if not address.exists():
                return False
            command = [*command, "--port", address.read_text().strip().rpartition(":")[2]]
        if name == "ray-worker" and "Ray runtime started" not in self.log(name):
            return False  # the check cannot tell this node from the others of this machine
        return self._run(f"{name}.health", command, of=name).wait(PATIENCE_S) == 0

    def _run(self, log: str, command: list[str], of: str | None = None) -> subprocess.Popen[bytes]:
        with (self._folder / f"{log}.log").open("ab") as out:
            return subprocess.Popen(
                [str(Path(sys.executable).parent / "blockwright"), *map(self._map, command)],
                env=self._environment(of or log),
                cwd=self.idle,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _environment(self, service: str) -> dict[str, str]:
        """The file's, and what the image or the machine gives."""
        own = {name: self._map(value) for name, value in self._services[service]["environment"].items()}
        node = {"BLOCKWRIGHT_RAY_NODE_HOST": NODE_HOSTS[service]} if service in NODE_HOSTS else {}
        return {"PATH": os.environ["PATH"], "HOME": str(self.idle), "LANG": "C.UTF-8", **node, **own}

    def _map(self, value: str) -> str:
        return self._mapped.get(value, value)

    def stop(self) -> dict[str, int]:
        """SIGTERM in reverse order; how each ended within its grace period, killed as -9."""
        ended = {}
        for name in reversed(compose.start_order(self._document)):
            process = self.processes.get(name)
            if process is None:
                continue
            if process.poll() is None:
                process.terminate()
            try:
                ended[name] = process.wait(compose.seconds(self._services[name].get("stop_grace_period", "10s")))
            except subprocess.TimeoutExpired:
                process.kill()
                ended[name] = process.wait()
        return ended

    def left(self) -> list[str]:
        """Processes that run with anything of this deployment in their environment."""
        found = []
        for process in psutil.process_iter():
            try:
                if str(self._folder) in " ".join(process.environ().values()):
                    found.append(" ".join(process.cmdline()) or process.name())
            except psutil.Error:
                continue
        return found


def wait_for(is_there: Callable[[], bool], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


def has_trial(process: subprocess.Popen[bytes]) -> bool:
    """Whether a trial runs on the Ray node that this process keeps."""
    try:
        below = psutil.Process(process.pid).children(recursive=True)
        return any("ray::ImplicitFunc" in " ".join(each.cmdline()) for each in below)
    except psutil.Error:
        return False


@pytest.fixture
def deployment(tmp_path: Path, postgresql: Server) -> Iterator[Deployment]:
    with postgresql.database(migrated=False) as url:
        found = Deployment(tmp_path, url)
        try:
            yield found
        finally:
            found.stop()


@pytest.mark.ray
@pytest.mark.timeout(900)
def test_the_services_of_the_compose_file_run_a_search_on_two_ray_nodes(deployment: Deployment, tmp_path: Path) -> None:
    deployment.start()
    url = (deployment.data_dir / "address").read_text().strip()

    with Client(url, "not-the-token-of-this-service") as client, pytest.raises(ClientError, match="needs its token"):
        client.version()
    with Client(url) as client, pytest.raises(ClientError, match="needs its token"):
        next(client.list())

    lively = {"n_steps": 300, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.1}
    request = tiny.request(
        method={**lively, "report_every": 20, "checkpoint_every": 100}, trials={"n_seeds": 2}, retrain={"baselines": []}
    )
    with Client(url, deployment.token) as client:
        search_id = client.submit(request.model_dump(mode="json"))["id"]
        nodes: set[str] = set()

        def has_ended() -> bool:
            nodes.update(name for name in ("ray-head", "ray-worker") if has_trial(deployment.processes[name]))
            return bool(client.get(search_id)["finished_at"])

        wait_for(has_ended, lambda: f"{client.get(search_id)}\n{deployment.log('dispatcher')}")
        search = client.get(search_id)
        assert search["state"] == "succeeded", f"{search['reason']}\n{deployment.log('dispatcher')}"
        assert nodes == {"ray-head", "ray-worker"}
        assert {trial["state"] for trial in client.trials(search_id)} == {"succeeded"}
        with zipfile.ZipFile(client.download(search_id, tmp_path)) as export:
            assert {Path(name).name for name in export.namelist()} >= {"model.py", "config.json", "architecture.json"}

    ended = deployment.stop()
    assert ended == dict.fromkeys(ended, 0), "\n".join(deployment.log(name) for name, status in ended.items() if status)
    assert deployment.left() == []
    assert [path.name for path in deployment.idle.rglob("*")] == []
