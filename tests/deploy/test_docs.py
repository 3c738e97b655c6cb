"""docs/deploy.md names every setting and no other, and its commands and files are real ones."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from api.settings import Settings as ApiSettings
from tests.deploy import compose
from tests.deploy.policy import parse_problem
from tests.deploy.test_compose import checked_by_schema
from workers.settings import Settings as WorkerSettings

TEXT = (compose.ROOT / "docs" / "deploy.md").read_text()
OF_CLIENTS = {"BLOCKWRIGHT_URL"}  # read by the command line itself


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_every_setting_is_in_the_table_and_no_other_is_named() -> None:
    fields = ApiSettings.model_fields.keys() | WorkerSettings.model_fields.keys()
    settings = {f"BLOCKWRIGHT_{field.upper()}" for field in fields} | OF_CLIENTS
    rows = [line for line in TEXT.partition("## Settings")[2].splitlines() if line.startswith("| BLOCKWRIGHT_")]
    assert {name for row in rows for name in re.findall(r"BLOCKWRIGHT_\w+", row.split("|")[1])} == settings
    assert {name.rstrip("_") for name in re.findall(r"BLOCKWRIGHT_\w+", TEXT)} <= settings


def test_defaults_in_the_table_are_those_of_the_settings() -> None:
    fields = {**ApiSettings.model_fields, **WorkerSettings.model_fields}
    units = {"": 1, " MiB": 2**20}
    checked = 0
    for row in TEXT.partition("## Settings")[2].splitlines():
        if not row.startswith("| BLOCKWRIGHT_"):
            continue
        names, defaults = (cell.strip().split(", ") for cell in row.split("|")[1:3])
        for name, default in zip(names, defaults, strict=False):
            number = re.fullmatch(r"([\d.]+)( MiB)?", default)
            field = fields.get(name.removeprefix("BLOCKWRIGHT_").lower())
            if number and field is not None and isinstance(field.default, int | float):
                assert float(number[1]) * units[number[2] or ""] == field.default, name
                checked += 1
    assert checked >= 12


def test_the_variables_of_the_compose_file_are_told() -> None:
    told = set(re.findall(r"^\| ([A-Z_, ]+) \|", TEXT, re.MULTILINE))
    names = {name for cell in told for name in cell.split(", ") if not name.startswith("BLOCKWRIGHT_")}
    assert names == set(compose.variables(compose.raw()))


@pytest.mark.parametrize("block", blocks("yaml"))
def test_files_beside_the_compose_file_follow_its_schema(block: str, tmp_path: Path) -> None:
    (tmp_path / "gpu.yml").write_text(block)
    done = checked_by_schema(tmp_path / "gpu.yml")
    assert done.returncode == 0, done.stdout
    assert set(yaml.safe_load(block)["services"]) <= set(compose.read()["services"])


def test_commands_are_ones_that_exist() -> None:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    lines += re.findall(r"`(blockwright [^`]+)`", TEXT)
    lines += re.findall(r"^ExecStart=\S*/(blockwright .+)$", TEXT, re.MULTILINE)
    checked = 0
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        words = words[next((i for i, word in enumerate(words) if "=" not in word), 0) :]
        if words[:1] == ["blockwright"]:
            assert parse_problem(words[1:]) is None, line
            checked += 1
    assert checked >= 15
