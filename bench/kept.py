"""What the replays share: rows kept in a file as they come, so that an interrupted replay goes on, and paired means."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import math
import multiprocessing
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "bench" / "results"  # rows of long benches, committed with the tables that are made of them


def commit() -> str:
    """The commit that is checked out, short; empty outside a repository."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def fill(
    path: Path, wanted: Sequence[Mapping[str, Any]], run: Callable[..., dict[str, Any]], measured: Sequence[str]
) -> list[dict[str, Any]]:
    """A row for each wanted setting, in their order: those that `path` holds already, the others run now.

    Args:
        path: JSON list of rows, each the setting, its commit and what `run` measured; rewritten after every run.
        wanted: keyword arguments of `run`.
        run: returns what is measured, by name.
        measured: what to print of a new row.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    found, at = [], commit()  # asked now: the code that runs is in memory already, whatever is committed meanwhile
    for setting in wanted:
        row = next((each for each in rows if setting.items() <= each.items()), None)
        if row is None:
            row = {**setting, "commit": at, **run(**setting)}
            rows.append(row)
            path.write_text("[\n" + ",\n".join(json.dumps(each) for each in rows) + "\n]\n")
            told = "  ".join(f"{name} {row[name]}" for name in (*setting, *measured))
            print(told, flush=True)
        found.append(row)
    return found


@contextmanager
def locked(path: Path, columns: Sequence[str]) -> Iterator[int]:
    """A file of rows, for appending, with its header, and without the half line that a full disk may have left.

    Args:
        path: CSV; made, with its folder, where it is not there.
        columns: of the header.

    Raises:
        SystemExit: another process is at it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise SystemExit(f"{path} is being filled by another process; one at a time, with --workers") from None
    try:
        written = path.read_bytes()
        whole = written.rfind(b"\n") + 1
        if whole < len(written):
            os.ftruncate(file, whole)
        if not whole:
            os.write(file, (",".join(columns) + "\n").encode())
        yield file
    finally:
        os.close(file)


def line(values: Sequence[str]) -> str:
    """A row of such a file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def paired(differences: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; infinite for a single pair, which tells nothing of the spread."""
    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else math.inf
    return float(np.mean(differences)), spread / math.sqrt(len(differences))


@contextmanager
def mapping(n_workers: int) -> Iterator[Any]:
    """`map`, or that of a pool of processes, which end when this one is killed."""
    if n_workers == 1:
        yield map
        return
    with multiprocessing.get_context("spawn").Pool(n_workers) as pool:
        yield pool.imap_unordered
