"""Who may import whom: the house rules of the four packages, by reading the sources and in fresh interpreters."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nas import catalog

ROOT = Path(__file__).parent.parent
PACKAGES = ("nas", "db", "workers", "api")
TORCH_FREE = (
    "config", "options", "catalog", "architecture", "cost", "derive", "rules", "placement", "errors", "steps", "text",
    "presets", "specs", "metrics", "ingest", "settled", "layout", "budgets", "leading", "report", "power",
    "permutation", "statement", "statements", "verdicts", "confirmation", "rule_layout", "applied", "known_rules",
    "baselines", "student",
    "constrain", "exact", "what_if",
)  # fmt: skip


def sources(package: str) -> list[Path]:
    return [path for path in sorted((ROOT / package).rglob("*.py")) if "node_modules" not in path.parts]


def imported(path: Path) -> Iterator[tuple[str, bool]]:
    """Dotted names that a file imports, and whether at its top level."""
    tree = ast.parse(path.read_text())
    top = set(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield str(node.module), node in top
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node in top


def ours(path: Path) -> set[str]:
    return {name for name, _ in imported(path) if name.split(".")[0] in PACKAGES}


@pytest.mark.parametrize(
    ("package", "allowed"),
    [("nas", {"nas"}), ("db", {"db"}), ("workers", {"nas", "db", "workers"}), ("api", {"nas", "db", "api", "workers"})],
    ids=PACKAGES,
)
def test_packages_import_downwards_only(package: str, allowed: set[str]) -> None:
    for path in sources(package):
        outside = {name for name in ours(path) if name.split(".")[0] not in allowed}
        assert not outside, f"{path.relative_to(ROOT)} imports {sorted(outside)}"


def test_packages_define_no_names_but_the_registry_of_blocks() -> None:
    inits = [path for package in PACKAGES for path in sources(package) if path.name == "__init__.py"]
    assert [path for path in inits if path.read_text()] == [ROOT / "nas" / "blocks" / "__init__.py"]


def test_only_the_command_line_starts_workers() -> None:
    for path in sources("api"):
        if any(name.startswith("workers") for name in ours(path)):
            command_line = path == ROOT / "api" / "cli.py" or path.parent == ROOT / "api" / "commands"
            assert command_line, path.relative_to(ROOT)


def test_the_api_uses_only_torch_free_files_of_nas() -> None:
    for path in sources("api"):
        used = {name.split(".")[1] for name in ours(path) if name.startswith("nas.")}
        if path == ROOT / "api" / "commands" / "measure.py":  # measures in a process of its own, and says so late
            used.discard("measure")
            assert not any(is_top for name, is_top in imported(path) if name.startswith("nas.measure"))
        assert used <= set(TORCH_FREE), f"{path.relative_to(ROOT)} imports nas.{sorted(used - set(TORCH_FREE))}"


def test_block_modules_import_only_what_an_exported_model_carries() -> None:
    allowed = {"__future__", "dataclasses", "functools", "math", "typing"}  # of the standard library, and the rest
    allowed |= {"torch", "nas.blocks.base", "nas.blocks.linear", "nas.options"}
    for spec in catalog.blocks().values():
        path = ROOT / Path(*spec.class_path.split(":")[0].split(".")).with_suffix(".py")
        modules = {
            node.module if isinstance(node, ast.ImportFrom) else alias.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        outside = {name for name in modules if name not in allowed and not str(name).startswith("torch.")}
        assert not outside, f"{path.relative_to(ROOT)} imports {sorted(map(str, outside))}"


def test_no_source_uses_the_parts_of_ray_that_raise_inside_tune() -> None:
    for package in PACKAGES:
        for path in sources(package):
            banned = {name for name, _ in imported(path) if name.startswith(("ray.train", "ray.air"))}
            assert not banned, f"{path.relative_to(ROOT)} imports {sorted(banned)}"


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("api.app", "torch ray pandas scipy alembic optuna"),
        ("workers.dispatcher", "torch ray pandas fastapi"),
        ("nas.search", "sqlalchemy ray fastapi optuna"),
        *[(f"nas.{name}", "torch sqlalchemy ray fastapi scipy") for name in TORCH_FREE],
    ],
)
def test_a_fresh_interpreter_loads_no_more_than_it_may(module: str, banned: str) -> None:
    code = f"import sys, {module}; print(*sorted(set('{banned}'.split()) & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == ""
