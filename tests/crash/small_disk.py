"""A really small filesystem: a tmpfs of a few MiB, mounted here as root, or in a user namespace of its own.

Where neither is allowed, as in a container with Docker's default restrictions, a small /dev/shm does (Docker gives
64 MiB); where there is none, the test is skipped and says why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

_INSIDE = "BLOCKWRIGHT_TEST_NAMESPACE"
_SMALL_SHM = 256 * 2**20
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class SmallDisk:
    """A folder on a filesystem with little room."""

    folder: Path

    @property
    def _filler(self) -> Path:
        return self.folder / ".filler"

    def fill(self, leave: int = 0) -> None:
        """Take all room but so many bytes."""
        block = b"\0" * 65536
        with self._filler.open("ab") as file, suppress(OSError):
            while True:
                written = os.write(file.fileno(), block)
                if written < len(block):
                    break
        if leave:
            os.truncate(self._filler, max(0, self._filler.stat().st_size - leave))

    def make_room(self) -> None:
        """As a person would who has read the message."""
        self._filler.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, mib: int, nodeid: str) -> Iterator[SmallDisk]:
    """Mount one at a folder; or run the whole test again where that is allowed, and be done; or skip.

    Args:
        folder: made; what is on it is gone afterwards.
        mib: its size.
        nodeid: of the test that asks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=700", "tmpfs", str(folder)]
    said = subprocess.run(mounting, capture_output=True, text=True, check=False)
    if said.returncode == 0:
        try:
            yield SmallDisk(folder)
        finally:
            # Lazily: a process that is just ending may still have a file open there.
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        return
    if _INSIDE not in os.environ and _may_have_a_namespace():
        _run_again_inside(nodeid)
    shm = Path("/dev/shm")
    if shm.is_dir() and shutil.disk_usage(shm).total <= _SMALL_SHM:
        folder.rmdir()
        on_shm = Path(tempfile.mkdtemp(prefix="bwt-", dir=shm))
        folder.symlink_to(on_shm)
        try:
            yield SmallDisk(folder)
        finally:
            shutil.rmtree(on_shm)
        return
    pytest.skip(f"no small filesystem to be had: {said.stderr.strip()}; no user namespace; /dev/shm is not small")


def _may_have_a_namespace() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True).returncode == 0


def _run_again_inside(nodeid: str) -> None:
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-m", "pytest", nodeid]
    command += ["-m", "crash or not crash", "-p", "no:cacheprovider"]
    inside = subprocess.run(
        command, env={**os.environ, _INSIDE: "1"}, cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert inside.returncode == 0, inside.stdout[-5000:]
    pytest.skip("passed in a user namespace of its own, where a small filesystem may be mounted")
