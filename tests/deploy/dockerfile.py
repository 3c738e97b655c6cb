"""Dockerfile and .dockerignore as tests read them, and what an image of ours must be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from api.settings import Settings as ApiSettings
from tests.deploy.policy import parse_problem
from workers.settings import Settings as WorkerSettings

SECRETS = ("secrets/api_token", ".env", ".git/config", "data/blockwright.db")
_SECRET = re.compile(r"PASSWORD|TOKEN|SECRET|KEY|CREDENTIAL", re.IGNORECASE)
_BUILD_TOOLS = re.compile(r"\b(gcc|g\+\+|make|build-essential|clang|nodejs|npm|git|curl|wget)\b")
_PACKAGES_OF_THE_IMAGE = {"tini"}


@dataclass(frozen=True)
class Instruction:
    """One instruction, its lines joined."""

    name: str
    arguments: str

    @property
    def words(self) -> list[str]:
        """The arguments; of the exec form its strings."""
        found: list[str] = json.loads(self.arguments) if self.arguments.startswith("[") else self.arguments.split()
        return found


Stages = list[list[Instruction]]


def stages(text: str) -> Stages:
    """Instructions stage by stage; what stands before the first FROM is the first stage's."""
    found: Stages = [[]]
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        name, _, arguments = line.strip().partition(" ")
        if not name:
            continue
        if name == "FROM" and any(each.name == "FROM" for each in found[-1]):
            found.append([])
        found[-1].append(Instruction(name, " ".join(arguments.split())))
    return found


def is_ignored(path: str, patterns: str) -> bool:
    """By the rules of .dockerignore: the last line that matches the path or a folder above it decides."""
    ignored = False
    above = [str(each) for each in PurePosixPath(path).parents if str(each) != "."]
    for line in patterns.splitlines():
        pattern = line.strip().rstrip("/")
        if not pattern or pattern.startswith("#"):
            continue
        keeps = pattern.startswith("!")
        if any(_matches(each, pattern.lstrip("!")) for each in (path, *above)):
            ignored = not keeps
    return ignored


def _matches(path: str, pattern: str) -> bool:
    """`*` within a part of the path, `**/` any parts."""
    regex = "".join(
        {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
        for part in re.findall(r"\*\*/|\*|\?|[^*?]+", pattern)
    )
    return re.fullmatch(regex, path) is not None


def _all(found: Stages, name: str) -> list[Instruction]:
    return [each for stage in found for each in stage if each.name == name]


def ends_as_a_user_that_is_not_root(found: Stages, _: str, __: Path) -> list[str]:
    users = [each for each in found[-1] if each.name == "USER"]
    if not users:
        return ["the image runs as root"]
    problems = [f"the image runs as {users[-1].arguments}"] * (
        not re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1].arguments)
    )
    after = found[-1][found[-1].index(users[-1]) + 1 :]
    return problems + [f"{each.name} stands after USER" for each in after if each.name in ("RUN", "COPY")]


def fetches_nothing_by_add_or_script(found: Stages, _: str, __: Path) -> list[str]:
    problems = [f"ADD {each.arguments}" for each in _all(found, "ADD")]
    return problems + [
        f"RUN fetches and runs: {each.arguments[:60]}"
        for each in _all(found, "RUN")
        if re.search(r"\b(curl|wget)\b|\|\s*(ba)?sh\b", each.arguments)
    ]


def copies_what_is_there(found: Stages, ignore: str, root: Path) -> list[str]:
    problems = []
    names = {each.words[2] for each in _all(found, "FROM") if len(each.words) == 3}
    for each in _all(found, "COPY"):
        words = each.words
        if words[0].startswith("--from="):
            if words[0].removeprefix("--from=") not in names:
                problems.append(f"COPY {words[0]} names no stage")
            continue
        for source in words[:-1]:
            if source.startswith("--"):
                problems.append(f"COPY with {source}")
            elif source in (".", "./") or not (root / source).exists():
                problems.append(f"COPY of {source!r}, which is not there or everything")
            elif is_ignored(source, ignore):
                problems.append(f"COPY of {source!r}, which .dockerignore leaves out")
    return problems


def gets_nothing_secret(found: Stages, ignore: str, _: Path) -> list[str]:
    problems = [f"{path} goes to the builder" for path in SECRETS if not is_ignored(path, ignore)]
    return problems + [
        f"{each.name} {name}"
        for each in [*_all(found, "ARG"), *_all(found, "ENV")]
        for name in re.findall(r"([A-Z_]+)(?==|$)", each.arguments)
        if _SECRET.search(name)
    ]


def pins_its_base(found: Stages, _: str, __: Path) -> list[str]:
    defaults = dict(each.arguments.partition("=")[::2] for each in found[0] if each.name == "ARG")
    problems = []
    for each in _all(found, "FROM"):
        image = re.sub(r"\$\{(\w+)\}", lambda name: defaults.get(name[1], ""), each.words[0])
        if not re.fullmatch(r"[a-z]+:\d+\.\d+\.\d+-slim-[a-z]+", image):
            problems.append(f"FROM {image}")
    return problems


def brings_no_tools_to_build_with(found: Stages, _: str, __: Path) -> list[str]:
    problems = []
    for each in found[-1]:
        if each.name != "RUN":
            continue
        for command in re.split(r"&&|;", each.arguments):
            if "apt-get install" in command:
                extra = {word for word in command.split()[2:] if not word.startswith("-")} - _PACKAGES_OF_THE_IMAGE
                problems += [f"the image installs {name}" for name in sorted(extra)]
                problems += ["apt-get brings what is recommended"] * ("--no-install-recommends" not in command)
            elif tool := _BUILD_TOOLS.search(command) or re.search(r"\bpip\b", command):
                problems.append(f"the image is built with {tool[0]}")
    from_stages = [each.words[0] for each in found[-1] if each.name == "COPY"]
    return problems + [f"the image copies from {each}" for each in from_stages if not each.startswith("--from=")]


def says_how_it_runs(found: Stages, _: str, __: Path) -> list[str]:
    problems = []
    last = {each.name: each for each in found[-1]}
    for name in ("ENTRYPOINT", "CMD", "HEALTHCHECK", "STOPSIGNAL", "EXPOSE"):
        if name not in last:
            problems.append(f"no {name}")
    if problems:
        return problems
    for name in ("ENTRYPOINT", "CMD"):
        if not last[name].arguments.startswith("["):
            return [f"{name} is run by a shell, which hands on no signal"]
    if last["ENTRYPOINT"].words != ["tini", "--", "blockwright"]:
        problems.append(f"ENTRYPOINT {last['ENTRYPOINT'].arguments}")
    check = last["HEALTHCHECK"].arguments.partition("CMD ")[2]
    if not check.startswith("["):
        return [*problems, "HEALTHCHECK is run by a shell"]
    for command in (last["CMD"].words, json.loads(check)[1:]):
        if problem := parse_problem(command):
            problems.append(problem)
    if last["STOPSIGNAL"].arguments != "SIGTERM":
        problems.append(f"STOPSIGNAL {last['STOPSIGNAL'].arguments}")
    return problems


def sets_variables_that_exist(found: Stages, _: str, __: Path) -> list[str]:
    fields = ApiSettings.model_fields.keys() | WorkerSettings.model_fields.keys()
    return [
        f"ENV {name} is read by nothing"
        for each in _all(found, "ENV")
        for name in re.findall(r"BLOCKWRIGHT_\w+", each.arguments)
        if name.removeprefix("BLOCKWRIGHT_").lower() not in fields
    ]


Policy = Callable[[Stages, str, Path], list[str]]
POLICIES: tuple[Policy, ...] = (
    ends_as_a_user_that_is_not_root,
    fetches_nothing_by_add_or_script,
    copies_what_is_there,
    gets_nothing_secret,
    pins_its_base,
    brings_no_tools_to_build_with,
    says_how_it_runs,
    sets_variables_that_exist,
)
