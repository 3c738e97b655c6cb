"""docker-compose.yml: its schema, and each policy with a change that breaks it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.settings import Access
from api.settings import Settings as ApiSettings
from api.version import installed
from tests.deploy import compose, policy
from tests.deploy.compose import Document
from workers import ray_node
from workers.settings import Settings as WorkerSettings

Change = Callable[[Document], Any]


def checked_by_schema(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_file_follows_the_schema_of_compose() -> None:
    done = checked_by_schema(compose.FILE)
    assert done.returncode == 0, done.stdout


def test_the_schema_finds_a_field_that_compose_does_not_know(tmp_path: Path) -> None:
    broken = compose.raw()
    broken["services"]["api"]["health_check"] = {}
    (tmp_path / "compose.yml").write_text(yaml.safe_dump(broken))
    done = checked_by_schema(tmp_path / "compose.yml")
    assert done.returncode == 1
    assert "health_check" in done.stdout


@pytest.mark.parametrize("kept", policy.POLICIES, ids=lambda kept: kept.__name__)
def test_policy_is_kept(kept: policy.Policy) -> None:
    assert kept(compose.read()) == []


def service(name: str, **changes: Any) -> Change:
    """A change of some fields of a service; None removes one."""

    def change(document: Document) -> None:
        document["services"][name].update(changes)
        for field in [field for field, value in changes.items() if value is None]:
            del document["services"][name][field]

    return change


def variable(name: str, **values: str) -> Change:
    return lambda document: document["services"][name]["environment"].update(values)


def added(name: str, field: str, value: Any) -> Change:
    return lambda document: document["services"][name][field].append(value)


BROKEN: list[tuple[policy.Policy, Change, str]] = [
    (policy.runs_as_a_user_that_is_not_root, service("api", user=None), "api runs as None"),
    (policy.runs_as_a_user_that_is_not_root, service("postgres", user="root"), "postgres runs as 'root'"),
    (policy.runs_as_a_user_that_is_not_root, service("api", user="0:0"), "api runs as '0:0'"),
    (policy.is_confined, service("api", privileged=True), "api is privileged"),
    (policy.is_confined, service("api", cap_add=["NET_ADMIN"]), "api keeps capabilities"),
    (policy.is_confined, service("ray-head", security_opt=None), "ray-head may gain privileges"),
    (policy.is_confined, service("ray-head", read_only=False), "ray-head can write to its root file system"),
    (policy.is_confined, service("ray-worker", network_mode="host"), "ray-worker sets network_mode"),
    (policy.is_confined, service("ray-worker", ipc="host"), "ray-worker sets ipc"),
    (
        policy.mounts_named_volumes_only,
        added("dispatcher", "volumes", "/var/run/docker.sock:/var/run/docker.sock"),
        "dispatcher mounts '/var/run/docker.sock', which is no named volume",
    ),
    (policy.mounts_named_volumes_only, added("api", "volumes", "./data:/data"), "api mounts './data', "),
    (policy.publishes_the_api_alone, service("ray-head", ports=["8265:8265"]), "ray-head publishes ['8265:8265']"),
    (policy.publishes_the_api_alone, service("postgres", ports=["127.0.0.1:5432:5432"]), "postgres publishes "),
    (policy.publishes_the_api_alone, service("api", ports=["8400:8400"]), "api publishes ['8400:8400']"),
    (policy.publishes_the_api_alone, added("ray-head", "networks", "edge"), "ray-head is on edge, "),
    (
        policy.publishes_the_api_alone,
        lambda document: document["networks"].update(ray={}),
        "dispatcher is on ray, which is not internal",
    ),
    (policy.keeps_database_and_ray_apart, added("ray-worker", "networks", "data"), "ray-worker is on ['ray', 'data']"),
    (
        policy.keeps_database_and_ray_apart,
        added("ray-worker", "secrets", "database_password"),
        "ray-worker is given database_password",
    ),
    (
        policy.keeps_database_and_ray_apart,
        variable("ray-head", BLOCKWRIGHT_DATABASE_URL="postgresql://postgres/blockwright"),
        "ray-head is given BLOCKWRIGHT_DATABASE_URL",
    ),
    (
        policy.keeps_database_and_ray_apart,
        variable("dispatcher", BLOCKWRIGHT_TOKEN_FILE="/run/secrets/api_token"),
        "dispatcher is given the api's token",
    ),
    (
        policy.takes_secrets_from_files,
        variable("api", BLOCKWRIGHT_TOKEN="0123456789abcdef"),
        "api has BLOCKWRIGHT_TOKEN in its environment",
    ),
    (
        policy.takes_secrets_from_files,
        variable("postgres", POSTGRES_PASSWORD="postgres"),
        "postgres has POSTGRES_PASSWORD in its environment",
    ),
    (
        policy.takes_secrets_from_files,
        variable("api", BLOCKWRIGHT_DATABASE_URL="postgresql://user:secret@postgres/blockwright"),
        "api has a password in BLOCKWRIGHT_DATABASE_URL",
    ),
    (
        policy.takes_secrets_from_files,
        lambda document: document["secrets"].update(api_token={"environment": "TOKEN"}),
        "secret api_token is no file in ./secrets",
    ),
    (
        policy.takes_secrets_from_files,
        added("migrate", "secrets", "api_token"),
        "migrate uses database_password and is given api_token, database_password",
    ),
    (policy.takes_secrets_from_files, added("api", "secrets", "tls"), "api is given tls, which is not declared"),
    (
        policy.takes_secrets_from_files,
        service("api", build={"context": ".", "args": {"PASSWORD": "x"}}),
        "api is built with PASSWORD",
    ),
    (policy.tells_whether_it_is_healthy, service("dispatcher", healthcheck=None), "dispatcher has no health check"),
    (
        policy.tells_whether_it_is_healthy,
        service("api", healthcheck={"test": ["CMD-SHELL", "curl -f localhost"]}),
        "api has no health check",
    ),
    (
        policy.tells_whether_it_is_healthy,
        service("api", healthcheck={"test": ["CMD", "blockwright", "health", "api"]}),
        "api leaves times of its health check open",
    ),
    (policy.tells_whether_it_is_healthy, service("ray-worker", restart="no"), "ray-worker is not started again"),
    (policy.tells_whether_it_is_healthy, service("migrate", restart="always"), "migrate is started again"),
    (
        policy.has_limits,
        service("api", deploy={"resources": {"limits": {"memory": "1g"}}}),
        "api has no limit of pids",
    ),
    (policy.can_be_several, service("dispatcher", hostname="dispatcher"), "dispatcher has hostname 'dispatcher'"),
    (policy.can_be_several, service("ray-worker", container_name="worker"), "ray-worker has container_name 'worker'"),
    (policy.has_limits, service("ray-head", deploy=None), "ray-head has no limit of memory"),
    (policy.has_limits, service("api", tmpfs=["/tmp"]), "api has no size for /tmp"),
    (policy.has_limits, service("api", logging=None), "api logs without end"),
    (policy.pins_its_images, service("postgres", image="postgres:latest"), "postgres runs postgres:latest"),
    (policy.pins_its_images, service("postgres", image="postgres"), "postgres runs postgres"),
    (policy.pins_its_images, service("postgres", image="postgres:17"), "postgres runs postgres:17"),
    (
        policy.names_variables_that_exist,
        variable("api", BLOCKWRIGHT_TOKENS_FILE="x"),
        "api sets BLOCKWRIGHT_TOKENS_FILE, which api does not read",
    ),
    (
        policy.names_variables_that_exist,
        variable("ray-worker", BLOCKWRIGHT_TOKEN_FILE="x"),
        "ray-worker sets BLOCKWRIGHT_TOKEN_FILE, which ray-node does not read",
    ),
    (policy.gives_commands_that_exist, service("api", command=["api", "--prot"]), "api: api --prot: No such option"),
    (policy.gives_commands_that_exist, service("api", command=["run"]), "api: no such command 'run'"),
    (
        policy.gives_commands_that_exist,
        lambda document: document["services"]["api"]["healthcheck"]["test"].__setitem__(3, "apis"),
        "api: health apis: ",
    ),
    (
        policy.gives_commands_that_exist,
        lambda document: document["services"]["api"]["healthcheck"].update(test=["CMD", "curl", "localhost"]),
        "api is checked by ['CMD', 'curl', 'localhost']",
    ),
    (
        policy.waits_in_order,
        service("postgres", depends_on={"api": {"condition": "service_started"}}),
        "services wait for each other: postgres -> api -> migrate -> postgres",
    ),
    (
        policy.waits_in_order,
        service("api", depends_on={"database": {"condition": "service_healthy"}}),
        "api waits for 'database', which is no service",
    ),
    (
        policy.waits_in_order,
        service("api", depends_on={"migrate": {"condition": "service_healthy"}}),
        "api waits for migrate by service_healthy; service_completed_successfully can come true",
    ),
    (
        policy.waits_in_order,
        service("dispatcher", depends_on={"ray-head": {"condition": "service_started"}}),
        "dispatcher waits for ray-head by service_started; service_healthy can come true",
    ),
    (policy.waits_in_order, service("dispatcher", depends_on=None), "dispatcher does not wait for migrate"),
    (policy.leaves_time_to_stop, service("dispatcher", stop_grace_period="10s"), "dispatcher has 10s"),
    (policy.leaves_time_to_stop, service("ray-worker", stop_grace_period=None), "ray-worker has 10s"),
]


@pytest.mark.parametrize(
    ("broken", "change", "line"), BROKEN, ids=[f"{broken.__name__}: {line[:40]}" for broken, _, line in BROKEN]
)
def test_policy_finds_what_breaks_it(broken: policy.Policy, change: Change, line: str) -> None:
    document = compose.read()
    change(document)
    assert [found for found in broken(document) if found.startswith(line)], broken(document)


def test_each_policy_has_a_change_that_breaks_it() -> None:
    assert {broken for broken, _, _ in BROKEN} == set(policy.POLICIES)


def test_our_image_carries_our_version() -> None:
    images = {each["image"] for each in compose.read()["services"].values()} - {"postgres:17.6-bookworm"}
    assert images == {f"blockwright:{installed()}"}


def test_each_variable_has_a_default_and_is_told_where_the_file_begins() -> None:
    found = compose.variables(compose.raw())
    assert found
    assert [name for name, default in found.items() if default is None] == []
    head = compose.FILE.read_text().partition("\nname:")[0]
    told = re.findall(r"[A-Z]+_[A-Z]+", head.partition("Set in the environment")[2])
    assert sorted(told) == sorted(found)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Sets the environment of one service, with its secrets in files."""

    def of(name: str) -> None:
        for variable, value in compose.read()["services"][name]["environment"].items():
            if value.startswith("/run/secrets/"):
                file = tmp_path / value.rpartition("/")[2]
                file.write_text("0123456789abcdef" * 2)
                value = str(file)
            monkeypatch.setenv(variable, value)

    return of


def test_the_settings_take_every_value(environment: Callable[[str], None]) -> None:
    environment("api")
    api = ApiSettings(host="0.0.0.0", port=8400)
    assert api.allowed_hosts == ("localhost",)
    assert api.database_url == f"postgresql+psycopg://blockwright:{'0123456789abcdef' * 2}@postgres:5432/blockwright"
    environment("migrate")
    assert Access().database_url == api.database_url
    environment("dispatcher")
    dispatcher = WorkerSettings()
    assert (dispatcher.data_dir, dispatcher.cpus) == (api.data_dir, 2)
    environment("ray-head")
    node = WorkerSettings()
    assert ray_node.head_address(node) == ray_node.head_address(dispatcher) == ("ray-head", 6379)
    assert ray_node.token_file(node) == ray_node.token_file(dispatcher)
    assert node.whole_cpus == 1


def test_trials_fit_on_the_nodes_by_default() -> None:
    services = compose.read()["services"]
    cpus = {name: float(services[name]["environment"]["BLOCKWRIGHT_CPUS"]) for name in services if "ray" in name}
    assert float(services["dispatcher"]["environment"]["BLOCKWRIGHT_CPUS"]) == sum(cpus.values())


def test_secrets_are_made_once_and_nobody_else_gets_into_their_folder(tmp_path: Path) -> None:
    command = ["make", "--silent", f"--makefile={compose.ROOT / 'Makefile'}", f"PYTHON={sys.executable}", "secrets"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert {f"./secrets/{name}" for name in made} == {each["file"] for each in compose.read()["secrets"].values()}
    assert len(set(made.values())) == 3
    assert all(re.fullmatch(r"[\w-]{40,}", each) for each in made.values())
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "secrets").iterdir()} == {0o444}
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()} == made


def test_git_ignores_what_is_secret() -> None:
    ignored = (compose.ROOT / ".gitignore").read_text().splitlines()
    assert {"secrets/", ".env"} <= set(ignored)
