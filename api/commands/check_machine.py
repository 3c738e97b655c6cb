"""Findings about this machine and what is installed on it. Heavy packages are imported by child processes alone.

So a package that is broken, or that ends its process, is a finding and no traceback, and doctor stays light.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from api import page as built_page
from api.commands.findings import Finding
from api.version import installed
from nas import catalog

OLDEST_PYTHON = (3, 11)
IMPORT_TIMEOUT_S = 60.0
LOW_MEMORY_MB = 1500  # Ray and one trial
LONGEST_TEMP_DIR = 30  # characters: Ray puts about 75 behind them, and the path of a socket holds 107
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
_REINSTALL = "install Blockwright again, such as by `make setup` or `pip install --force-reinstall blockwright`"
_TORCH = """
import json, torch
x = torch.ones(8, 8)
assert float((x @ x).sum()) == 512.0
cuda = torch.cuda.is_available()
devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else []
print(json.dumps({"version": torch.__version__, "devices": devices, "threads": torch.get_num_threads()}))
"""
_RAY = 'import json, ray.tune; print(json.dumps({"version": ray.__version__}))'
_OPTUNA = 'import json, optuna; print(json.dumps({"version": optuna.__version__}))'


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    found = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return Finding("python", "fail", f"{found} at {sys.executable}", "Blockwright needs Python 3.11 or newer")
    return Finding("python", "ok", f"{found} at {sys.executable}")


def packages(distribution: str = "blockwright") -> Finding:
    """Our own version, and whether what is installed beside it is what it asks for."""
    try:
        wanted = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return Finding(
            "blockwright", "warn", f"{installed()}: runs from a source tree that is not installed", _REINSTALL
        )
    for line in wanted:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            found = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            return Finding("blockwright", "fail", f"{requirement.name} is not installed", _REINSTALL)
        if not requirement.specifier.contains(found, prereleases=True):
            what = f"{requirement.name} is {found}; {installed()} needs {requirement.name}{requirement.specifier}"
            return Finding("blockwright", "fail", what, _REINSTALL)
    return Finding("blockwright", "ok", f"{installed()}, with all packages that it needs")


def blocks() -> Finding:
    """Blocks of installed packages, and those that are left out."""
    known = catalog.installed()
    if known.refused:
        return Finding("blocks", "warn", "; ".join(known.refused), "correct or uninstall its package; it is left out")
    others = sorted(set(known.specs) - set(catalog.BUILT_IN))
    return Finding("blocks", "ok", f"the built-in ones and {', '.join(others)}" if others else "the built-in ones")


def torch() -> Finding:
    found = _imported("torch", _TORCH)
    if isinstance(found, Finding):
        return found
    devices = found["devices"]
    what = f"{found['version']}, on {', '.join(devices) if devices else 'the CPU'}"
    if not devices and NVIDIA_DRIVER.exists():
        todo = "the machine has an NVIDIA driver; a CUDA build of torch would use its GPU (docs/deploy.md)"
        return Finding("torch", "warn", what, todo)
    return Finding("torch", "ok", what)


def ray() -> Finding:
    found = _imported("ray", _RAY)
    return found if isinstance(found, Finding) else Finding("ray", "ok", f"{found['version']}")


def optuna() -> Finding:
    found = _imported("optuna", _OPTUNA)
    return found if isinstance(found, Finding) else Finding("optuna", "ok", f"{found['version']}")


def _imported(name: str, code: str) -> dict[str, Any] | Finding:
    """What the code prints as JSON in a process of its own; a failure as a finding."""
    todo = f"look with `{Path(sys.executable).name} -c 'import {name}'`; {_REINSTALL}"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=IMPORT_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return Finding(name, "fail", f"did not import within {IMPORT_TIMEOUT_S:g} s", todo)
    except OSError as error:
        return Finding(name, "fail", f"no process could be started: {error.strerror}", "end other programs")
    if done.returncode < 0:
        ended_by = signal.Signals(-done.returncode).name
        return Finding(name, "fail", f"its import ended Python by {ended_by}", f"is it built for this machine? {todo}")
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode > 0:
        return Finding(name, "fail", f"cannot be imported: {lines[-1] if lines else 'it says nothing'}", todo)
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        assert isinstance(found, dict)
    except (ValueError, IndexError, AssertionError):
        return Finding(name, "fail", "cannot be used: what is imported is not the package", todo)
    return found


def page(folder: Path = built_page.FOLDER) -> Finding:
    """Whether the page is built; Node is only asked for where it is not."""
    if built_page.is_built(folder):
        return Finding("page", "ok", "built")
    node = shutil.which("node")
    version = ""
    if node:
        version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    found = f"Node on the PATH is {version}" if version else "no Node is on the PATH, so one is fetched for that"
    return Finding(
        "page", "warn", f"not built in {folder}; {found}", "run `make page`, or install a wheel, which has it"
    )


def memory() -> Finding:
    import psutil

    free_mb = psutil.virtual_memory().available // 2**20
    if free_mb < LOW_MEMORY_MB:
        todo = "end other programs, or run fewer trials at once (BLOCKWRIGHT_CPUS)"
        return Finding("memory", "warn", f"{free_mb} MB free; Ray and one trial take about {LOW_MEMORY_MB} MB", todo)
    return Finding("memory", "ok", f"{free_mb} MB free")


def shared_memory(needed_mb: int, folder: Path = Path("/dev/shm")) -> Finding:
    """Where Ray keeps its objects."""
    try:
        free_mb = shutil.disk_usage(folder).free // 2**20
    except OSError as error:
        return Finding(
            "shared memory", "warn", f"{folder} cannot be used: {_reason(error)}", "Ray will use /tmp, and be slower"
        )
    if free_mb < needed_mb:
        return Finding(
            "shared memory",
            "warn",
            f"{free_mb} MB free in {folder}; Ray's object store takes {needed_mb} MB",
            "make it larger (docker: shm_size), or lower BLOCKWRIGHT_OBJECT_STORE_MB",
        )
    return Finding("shared memory", "ok", f"{free_mb} MB free in {folder}; Ray takes {needed_mb} MB")


def temp_dir(folder: Path) -> Finding:
    """Where Ray's session goes: sockets with long names."""
    todo = "set BLOCKWRIGHT_RAY_TEMP_DIR to a short path that can be written, such as /tmp"
    if len(os.fsencode(folder)) > LONGEST_TEMP_DIR:
        what = f"{folder} is too long for the sockets of Ray; at most {LONGEST_TEMP_DIR} characters"
        return Finding("temporary folder", "fail", what, todo)
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("temporary folder", "fail", f"{folder} is not there, or cannot be written", todo)
    return Finding("temporary folder", "ok", str(folder))


def _reason(error: OSError) -> str:
    return re.sub(r"^\[Errno \d+\] ", "", (error.strerror or str(error)).lower())
