"""What a compose file of ours must be: each policy names what breaks it, as lines for people; none: it is kept.

A policy is a function of the parsed file with its variables filled in. `tests.deploy.test_compose` holds for each of
them a change that breaks it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import typer
import typer.main

from api import cli
from api.settings import Access
from api.settings import Settings as ApiSettings
from db.settings import Settings as DatabaseSettings
from tests.deploy.compose import Document, seconds, start_order
from workers import ray_node
from workers.settings import Settings as WorkerSettings

Service = dict[str, Any]
Policy = Callable[[Document], list[str]]
SETTINGS: dict[str, type[DatabaseSettings]] = {
    "migrate": Access,
    "api": ApiSettings,
    "dispatch": WorkerSettings,
    "ray-node": WorkerSettings,
}
_SHARED = ("network_mode", "pid", "ipc", "userns_mode", "devices", "cgroup", "device_cgroup_rules")
_SECRET = re.compile(r"PASSWORD|TOKEN|SECRET|KEY|CREDENTIAL", re.IGNORECASE)


def _services(document: Document) -> Iterator[tuple[str, Service]]:
    yield from document["services"].items()


def _is_ours(service: Service) -> bool:
    return str(service.get("image", "")).startswith("blockwright:")


def _environment(service: Service) -> dict[str, str]:
    found: dict[str, str] = service.get("environment", {})
    return found


def runs_as_a_user_that_is_not_root(document: Document) -> list[str]:
    """By number: Kubernetes and auditors cannot look up names, and an image's default may change."""
    return [
        f"{name} runs as {service.get('user')!r}"
        for name, service in _services(document)
        if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", str(service.get("user", "")))
    ]


def is_confined(document: Document) -> list[str]:
    """No privileges, no capabilities, a root file system for reading only, nothing of the host shared."""
    found = []
    for name, service in _services(document):
        if service.get("privileged"):
            found.append(f"{name} is privileged")
        if service.get("cap_drop") != ["ALL"] or service.get("cap_add"):
            found.append(f"{name} keeps capabilities")
        if "no-new-privileges:true" not in service.get("security_opt", []):
            found.append(f"{name} may gain privileges")
        if service.get("read_only") is not True:
            found.append(f"{name} can write to its root file system")
        shared = {
            "network_mode",
            "pid",
            "ipc",
            "userns_mode",
            "devices",
            "cgroup",
            "device_cgroup_rules",
        } & service.keys()
        found += [f"{name} sets {key}" for key in sorted(shared)]
    return found


def mounts_named_volumes_only(document: Document) -> list[str]:
    """No folder of the host, and so no Docker socket either."""
    found = []
    for name, service in _services(document):
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0] if isinstance(volume, str) else volume.get("source", "")
            if source not in document.get("volumes", {}):
                found.append(f"{name} mounts {source!r}, which is no named volume")
    return found


def publishes_the_api_alone(document: Document) -> list[str]:
    """One port, on loopback by default; Ray and the database are on networks without a way out."""
    found = []
    for name, service in _services(document):
        ports = service.get("ports", [])
        if name != "api" and (ports or service.get("expose")):
            found.append(f"{name} publishes {ports or service['expose']}")
        if name == "api" and ports != ["127.0.0.1:8400:8400"]:
            found.append(f"api publishes {ports}")
        open_networks = [
            each
            for each in service.get("networks", ["default"])
            if not document["networks"].get(each, {}).get("internal")
        ]
        if name != "api" and open_networks:
            found.append(f"{name} is on {', '.join(open_networks)}, which is not internal")
    return found


def keeps_database_and_ray_apart(document: Document) -> list[str]:
    """Trials run on Ray nodes: no database on their network, and neither its address nor the api's token with them."""
    found = []
    for name, service in _services(document):
        if name.startswith("ray-"):
            if service.get("networks") != ["ray"]:
                found.append(f"{name} is on {service.get('networks')}")
            if extra := set(service.get("secrets", [])) - {"ray_token"}:
                found.append(f"{name} is given {', '.join(sorted(extra))}")
            found += [f"{name} is given {each}" for each in _environment(service) if "DATABASE" in each]
        elif "BLOCKWRIGHT_TOKEN_FILE" in _environment(service) and name != "api":
            found.append(f"{name} is given the api's token")
    return found


def takes_secrets_from_files(document: Document) -> list[str]:
    """Nothing secret stands in the file or in an environment; each service gets what it names, and no more."""
    found = []
    declared = document.get("secrets", {})
    for name, value in declared.items():
        if set(value) != {"file"} or not str(value["file"]).startswith("./secrets/"):
            found.append(f"secret {name} is no file in ./secrets")
    for name, service in _services(document):
        granted = set(service.get("secrets", []))
        if unknown := granted - declared.keys():
            found.append(f"{name} is given {', '.join(sorted(unknown))}, which is not declared")
        used = set()
        for variable, value in _environment(service).items():
            if variable.endswith("_FILE"):
                used.add(value.removeprefix("/run/secrets/"))
            elif _SECRET.search(variable):
                found.append(f"{name} has {variable} in its environment")
            if re.search(r"//[^/@]*:[^/@]*@", value):
                found.append(f"{name} has a password in {variable}")
        if used != granted:
            found.append(
                f"{name} uses {', '.join(sorted(used)) or 'no secret'} and is given {', '.join(sorted(granted))}"
            )
        arguments = service.get("build", {}).get("args", {})
        found += [f"{name} is built with {each}" for each in arguments if _SECRET.search(each)]
    return found


def tells_whether_it_is_healthy(document: Document) -> list[str]:
    """A health check and a restart policy for whatever stays; what runs once is not started again."""
    found = []
    for name, service in _services(document):
        if name == "migrate":
            if service.get("restart") != "no":
                found.append("migrate is started again")
            continue
        check = service.get("healthcheck", {})
        if check.get("disable") or not check.get("test") or check["test"][0] != "CMD":
            found.append(f"{name} has no health check")
        elif not {"interval", "timeout", "retries", "start_period"} <= check.keys():
            found.append(f"{name} leaves times of its health check open")
        if service.get("restart") != "unless-stopped":
            found.append(f"{name} is not started again")
    return found


def can_be_several(document: Document) -> list[str]:
    """A dispatcher knows its runners by its host's name: two of one name would end each other's."""
    return [
        f"{name} has {field} {service[field]!r}"
        for name, service in _services(document)
        for field in ("hostname", "container_name")
        if field in service and name not in ("postgres", "ray-head")
    ]


def has_limits(document: Document) -> list[str]:
    """Memory and processes of everything; what it writes to logs and to memory file systems too."""
    found = []
    for name, service in _services(document):
        limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
        found += [f"{name} has no limit of {each}" for each in ("memory", "pids") if not limits.get(each)]
        found += [f"{name} has no size for {each}" for each in service.get("tmpfs", []) if "size=" not in each]
        if "max-size" not in service.get("logging", {}).get("options", {}):
            found.append(f"{name} logs without end")
    return found


def pins_its_images(document: Document) -> list[str]:
    """To a version of three parts, or of the two that PostgreSQL has."""
    return [
        f"{name} runs {service.get('image')}"
        for name, service in _services(document)
        if not re.fullmatch(r"[a-z]+:\d+\.\d+(\.\d+)?(-[a-z]+)?", str(service.get("image", "")))
    ]


def names_variables_that_exist(document: Document) -> list[str]:
    """Each BLOCKWRIGHT_... is a field of the settings that the service's command reads."""
    found = []
    for name, service in _services(document):
        if not _is_ours(service):
            continue
        settings = SETTINGS[service["command"][0]]
        for variable in _environment(service):
            field = variable.removeprefix("BLOCKWRIGHT_").lower()
            if not variable.startswith("BLOCKWRIGHT_") or field not in settings.model_fields:
                found.append(f"{name} sets {variable}, which {service['command'][0]} does not read")
    return found


def gives_commands_that_exist(document: Document) -> list[str]:
    """The command line takes each command and each health check with its options; none is run."""
    found = []
    for name, service in _services(document):
        if not _is_ours(service):
            continue
        check = service.get("healthcheck", {}).get("test", ["CMD", "blockwright"])
        if check[:2] != ["CMD", "blockwright"]:
            found.append(f"{name} is checked by {check}")
        for command in filter(None, (service["command"], check[2:])):
            if problem := parse_problem(command):
                found.append(f"{name}: {problem}")
    return found


def parse_problem(arguments: list[str]) -> str | None:
    """Why the command line refuses these arguments, if it does."""
    group: Any = typer.main.get_command(cli.app)
    try:
        with group.make_context("blockwright", list(arguments), resilient_parsing=True) as context:
            command = group.get_command(context, arguments[0])
            if command is None:
                return f"no such command {arguments[0]!r}"
            command.make_context(arguments[0], arguments[1:], parent=context).close()
    except typer.TyperException as error:
        return f"{' '.join(arguments)}: {error}"
    return None


def waits_in_order(document: Document) -> list[str]:
    """There is no circle, each condition can come true, and whoever uses the database waits for migrate."""
    try:
        start_order(document)
    except ValueError as error:
        return [str(error)]
    found = []
    services = document["services"]
    for name, service in _services(document):
        waits = service.get("depends_on", {})
        for other, how in waits.items():
            wanted = how.get("condition")
            one_shot = services[other].get("restart") == "no"
            right = "service_completed_successfully" if one_shot else "service_healthy"
            if wanted != right:
                found.append(f"{name} waits for {other} by {wanted}; {right} can come true")
        uses_database = "BLOCKWRIGHT_DATABASE_URL" in _environment(service)
        if uses_database and name != "migrate" and "migrate" not in waits:
            found.append(f"{name} does not wait for migrate")
    return found


def leaves_time_to_stop(document: Document) -> list[str]:
    """The grace period is longer than what our own processes take to end in good order."""
    patience = WorkerSettings.model_fields["stop_patience_s"].default
    needed = {
        "api": 10.0,  # streams are ended at once, answers are given five seconds
        "dispatcher": 2 * patience + ray_node.STOP_PATIENCE_S,  # runners stop, then leave Ray; then the node ends
        "ray-head": ray_node.STOP_PATIENCE_S,
        "ray-worker": ray_node.STOP_PATIENCE_S,
        "postgres": 30.0,
    }
    return [
        f"{name} has {service.get('stop_grace_period', '10s')} to stop, and needs {needed[name]:g}s"
        for name, service in _services(document)
        if name in needed and seconds(service.get("stop_grace_period", "10s")) < needed[name] + 2
    ]


POLICIES: tuple[Policy, ...] = (
    runs_as_a_user_that_is_not_root,
    is_confined,
    mounts_named_volumes_only,
    publishes_the_api_alone,
    keeps_database_and_ray_apart,
    takes_secrets_from_files,
    tells_whether_it_is_healthy,
    can_be_several,
    has_limits,
    pins_its_images,
    names_variables_that_exist,
    gives_commands_that_exist,
    waits_in_order,
    leaves_time_to_stop,
)
