"""Dockerfile and .dockerignore: each policy, and a change that breaks it. No engine builds them here."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.deploy import dockerfile
from tests.deploy.compose import ROOT, read

TEXT = (ROOT / "Dockerfile").read_text()
IGNORE = (ROOT / ".dockerignore").read_text()


@pytest.mark.parametrize("kept", dockerfile.POLICIES, ids=lambda kept: kept.__name__)
def test_policy_is_kept(kept: dockerfile.Policy) -> None:
    assert kept(dockerfile.stages(TEXT), IGNORE, ROOT) == []


BROKEN: list[tuple[dockerfile.Policy, str, str, str]] = [
    (dockerfile.ends_as_a_user_that_is_not_root, "USER 10001:10001\n", "", "the image runs as root"),
    (dockerfile.ends_as_a_user_that_is_not_root, "USER 10001:10001", "USER root", "the image runs as root"),
    (dockerfile.ends_as_a_user_that_is_not_root, "USER 10001:10001", "USER 0:0", "the image runs as 0:0"),
    (dockerfile.ends_as_a_user_that_is_not_root, "STOPSIGNAL", "RUN true\nSTOPSIGNAL", "RUN stands after USER"),
    (dockerfile.fetches_nothing_by_add_or_script, "COPY nas", "ADD https://host/x.tar /x\nCOPY nas", "ADD https:"),
    (dockerfile.fetches_nothing_by_add_or_script, "RUN pip", "RUN curl https://host/x | sh && pip", "RUN fetches and"),
    (dockerfile.copies_what_is_there, "COPY nas nas", "COPY nsa nas", "COPY of 'nsa', which is not there"),
    (dockerfile.copies_what_is_there, "COPY nas nas", "COPY . .", "COPY of '.', which is not there or everything"),
    (dockerfile.copies_what_is_there, "COPY nas nas", "COPY docs docs", "COPY of 'docs', which .dockerignore leaves"),
    (dockerfile.copies_what_is_there, "--from=packages", "--from=package", "COPY --from=package names no stage"),
    (dockerfile.copies_what_is_there, "COPY nas nas", "COPY --chmod=777 nas nas", "COPY with --chmod=777"),
    (dockerfile.gets_nothing_secret, 'ARG TORCH_INDEX=""', "ARG INDEX_PASSWORD", "ARG INDEX_PASSWORD"),
    (dockerfile.gets_nothing_secret, "HOME=/tmp", "BLOCKWRIGHT_TOKEN=0123456789abcdef", "ENV BLOCKWRIGHT_TOKEN"),
    (dockerfile.pins_its_base, "3.11.13-slim-bookworm", "3-slim-bookworm", "FROM python:3-slim-bookworm"),
    (dockerfile.pins_its_base, "FROM python:${PYTHON} AS wheel", "FROM python AS wheel", "FROM python"),
    (dockerfile.brings_no_tools_to_build_with, "recommends tini", "recommends tini gcc", "the image installs gcc"),
    (dockerfile.brings_no_tools_to_build_with, "--no-install-recommends ", "", "apt-get brings what is recommended"),
    (
        dockerfile.brings_no_tools_to_build_with,
        "COPY --from=packages /opt/blockwright /opt/blockwright",
        "COPY nas /opt/nas",
        "the image copies from nas",
    ),
    (
        dockerfile.brings_no_tools_to_build_with,
        " && groupadd",
        " && pip install blockwright && groupadd",
        "the image is built with pip",
    ),
    (dockerfile.says_how_it_runs, "HEALTHCHECK ", "#", "no HEALTHCHECK"),
    (dockerfile.says_how_it_runs, 'CMD ["serve", "--host", "0.0.0.0"]', "CMD serve", "CMD is run by a shell"),
    (dockerfile.says_how_it_runs, '["tini", "--", "blockwright"]', '["blockwright"]', 'ENTRYPOINT ["blockwright"]'),
    (dockerfile.says_how_it_runs, 'CMD ["blockwright", "health", "api"]', "CMD curl localhost", "HEALTHCHECK is run"),
    (dockerfile.says_how_it_runs, '"health", "api"', '"health", "apis"', "health apis: "),
    (dockerfile.says_how_it_runs, "STOPSIGNAL SIGTERM", "STOPSIGNAL SIGKILL", "STOPSIGNAL SIGKILL"),
    (dockerfile.sets_variables_that_exist, "BLOCKWRIGHT_DATA_DIR", "BLOCKWRIGHT_DATA", "ENV BLOCKWRIGHT_DATA is read"),
]


@pytest.mark.parametrize(
    ("broken", "part", "instead", "line"), BROKEN, ids=[f"{each[0].__name__}: {each[3][:30]}" for each in BROKEN]
)
def test_policy_finds_what_breaks_it(broken: dockerfile.Policy, part: str, instead: str, line: str) -> None:
    assert part in TEXT
    found = broken(dockerfile.stages(TEXT.replace(part, instead)), IGNORE, ROOT)
    assert [each for each in found if each.startswith(line)], found


@pytest.mark.parametrize("path", dockerfile.SECRETS)
def test_a_builder_that_got_everything_would_get_secrets(path: str) -> None:
    assert dockerfile.gets_nothing_secret([[]], "", ROOT) == [
        f"{each} goes to the builder" for each in dockerfile.SECRETS
    ]
    assert dockerfile.is_ignored(path, IGNORE)


def test_each_policy_has_a_change_that_breaks_it() -> None:
    assert {each[0] for each in BROKEN} == set(dockerfile.POLICIES)


@pytest.mark.parametrize(
    ("path", "patterns", "ignored"),
    [
        ("a/b", "", False),
        ("a/b", "a", True),
        ("a/b", "*", True),
        ("a/b", "*\n!a", False),
        ("a/b/c.pyc", "*\n!a\n**/*.pyc", True),
        ("c.pyc", "**/*.pyc", True),
        ("a/x/__pycache__/y", "**/__pycache__", True),
        ("a/web/dist", "!a\na/web/dist/", True),
        ("ab", "a", False),
        ("a/bc", "# a\na/b", False),
    ],
)
def test_patterns_mean_what_they_mean_to_the_builder(path: str, patterns: str, ignored: bool) -> None:
    assert dockerfile.is_ignored(path, patterns) == ignored


def test_the_wheel_gets_all_that_its_build_reads() -> None:
    copied = {source for each in dockerfile.stages(TEXT)[0] if each.name == "COPY" for source in each.words[:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {"pyproject.toml", project["project"]["readme"], f"{project['build-system']['build-backend']}.py"}
    assert copied == needed | set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])


@pytest.mark.parametrize(
    "path",
    ["api/web/package-lock.json", "api/web/src/main.tsx", "api/web/index.html", "db/migrations/script.py.mako"],
)
def test_what_the_wheel_is_built_of_is_not_left_out(path: str) -> None:
    assert (ROOT / path).exists()
    assert not dockerfile.is_ignored(path, IGNORE)


@pytest.mark.parametrize("path", ["api/web/node_modules/vite/x.js", "api/web/dist/index.html", "nas/__pycache__/x.pyc"])
def test_what_the_build_makes_itself_is_left_out(path: str) -> None:
    assert dockerfile.is_ignored(path, IGNORE)


def test_torch_is_pinned_where_its_own_index_is_asked() -> None:
    pins = [line for line in Path(ROOT / "requirements.lock").read_text().splitlines() if line.startswith("torch==")]
    assert len(pins) == 1
    assert "+" not in pins[0]  # a wheel with a local version, such as +cpu, is the same version to pip


def test_image_and_compose_file_agree() -> None:
    found = {each.name: each for each in dockerfile.stages(TEXT)[-1]}
    ours = {name: each for name, each in read()["services"].items() if each["image"].startswith("blockwright:")}
    assert {each["user"] for each in ours.values()} == {found["USER"].arguments}
    assert {volume for each in ours.values() for volume in each.get("volumes", [])} == {
        f"data:{found['VOLUME'].words[0]}"
    }
    assert ours["api"]["ports"][0].endswith(f":{found['EXPOSE'].arguments}")
