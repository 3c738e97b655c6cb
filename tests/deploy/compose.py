"""docker-compose.yml as tests read it: parsed, with its ${NAME:-default} filled in."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
VARIABLE = re.compile(r"\$\{([A-Za-z_]+)(?::-([^}]*))?\}")
Document = dict[str, Any]


def read(path: Path = FILE, environment: Mapping[str, str] | None = None) -> Document:
    """The whole file; variables without a default and without a value stay as they are."""
    found: Document = filled_in(raw(path), environment or {})
    return found


def raw(path: Path = FILE) -> Document:
    """The file with its variables."""
    found: Document = copy.deepcopy(yaml.safe_load(path.read_text()))  # deep: anchors must not be shared
    return found


def filled_in(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: filled_in(each, environment) for name, each in value.items()}
    if isinstance(value, list):
        return [filled_in(each, environment) for each in value]
    if isinstance(value, str):
        return VARIABLE.sub(lambda found: environment.get(found[1], found[2] or ""), value)
    return value


def variables(value: Any) -> dict[str, str | None]:
    """Names in ${...} with their defaults; None where there is none."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {name: default for each in value for name, default in variables(each).items()}
    return {found[1]: found[2] for found in VARIABLE.finditer(value)} if isinstance(value, str) else {}


def start_order(document: Document) -> list[str]:
    """Services such that each comes after those it waits for.

    Raises:
        ValueError: they wait for each other in a circle, or for one that is not there.
    """
    services = document["services"]
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ValueError(f"services wait for each other: {' -> '.join([*path, name])}")
        if name not in services:
            raise ValueError(f"{path[-1]} waits for {name!r}, which is no service")
        for other in services[name].get("depends_on", {}):
            visit(other, (*path, name))
        if name not in order:
            order.append(name)

    for name in services:
        visit(name, ())
    return order


def seconds(duration: str) -> float:
    """Of a duration such as 45s or 1m30s."""
    parts = re.findall(r"(\d+)(h|m|s)", duration)
    assert "".join(number + unit for number, unit in parts) == duration, duration
    return sum(float(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in parts)
