"""Uploads, searches, cancels and deletes in a row through REST on one service: nothing is left, nothing grows."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from sqlalchemy import func, select

from db.engine import reading
from db.models import metadata
from tests import tiny
from tests.crash.outcome import request
from tests.crash.under_test import PATIENCE_S, Following, UnderTest, free_cpus, under_test
from workers import processes

pytestmark = [pytest.mark.ray]

KEPT = ("latency_tables", "blockwright_version")  # a measured table is an input of later searches
# An interpreter takes memory in arenas of 1 MiB, and sqlite and the allocator of C keep some more of what was free
# once: so a few steps of that size may come late. 30 rounds that lose 100 kB each would go beyond.
TOLERANCE_MIB = 3.0
BEING_PUT_AWAY = 3  # a socket or a thread of the round before, at the moment of counting; a leak would be 20 at least


@dataclass(frozen=True)
class Size:
    """What a process holds after a round."""

    mib: float
    n_fds: int
    n_threads: int


def size(pid: int) -> Size:
    process = psutil.Process(pid)
    return Size(process.memory_info().rss / 2**20, process.num_fds(), process.num_threads())


def play(service: UnderTest, number: int) -> None:
    """One round: a text, a search on it, its cancel at one of three moments, and both deleted."""
    name = f"text-{number}"
    service.client.add_dataset(name, [tiny.text(seed=number)])
    wanted = request(n_steps=1_000_000).model_dump(mode="json")
    wanted["task"]["dataset"] = name
    search_id = service.client.submit(wanted)["id"]
    following = Following(service, search_id)
    moments: list[Callable[[], object]] = [
        lambda: True,
        lambda: service.runner_pid(search_id),
        lambda: any(event["type"] == "reports" for event in following.seen),
    ]
    service.wait_until(moments[number % 3], f"round {number} has come to its cancel")
    service.client.cancel(search_id)
    service.wait_for_end(search_id)
    following.join(PATIENCE_S)
    assert following.problem is None
    assert following.seen[-1]["type"] == "cancelled"
    service.client.delete(search_id)
    service.client.remove_dataset(name)
    for session in service.sessions - {_head(service)}:
        service.wait_until(lambda session=session: not processes.members(session), "the runner is gone")


def _head(service: UnderTest) -> int | None:
    head = service.head()
    return head.process.pid if head else None


def assert_nothing_is_left(service: UnderTest) -> None:
    """On a service that runs on: no trial, no folder, no row."""
    head = service.head()
    assert head is not None
    service.wait_until(lambda: not service.trial_pids(), "no trial runs")
    service.wait_until(lambda: free_cpus(head) == 2, "all CPUs are free")
    for name in ("searches", "datasets", "tune"):
        folder = service.folder / name
        assert not folder.exists() or [path.name for path in folder.iterdir()] == []
    with reading(service.engine) as connection:
        rows = {
            table.name: connection.scalar(select(func.count()).select_from(table))
            for table in metadata.tables.values()
            if table.name not in KEPT
        }
    assert {name: n for name, n in rows.items() if n} == {}


def played(folder: Path, n: int) -> dict[str, list[Size]]:
    """By process: its size after each round."""
    sizes: dict[str, list[Size]] = {"api": [], "dispatch": []}
    with under_test(folder) as service:
        service.migrate()
        service.start("api", "dispatch")
        for number in range(n):
            play(service, number)
            for command, child in service.children.items():
                sizes[command].append(size(child.pid))
        assert_nothing_is_left(service)
        service.end_in_good_order()
    return sizes


@pytest.mark.timeout(3600)
def test_a_few_rounds_leave_no_process_no_lock_no_folder_and_no_row(tmp_path: Path) -> None:
    played(tmp_path, 5)


@pytest.mark.crash
@pytest.mark.timeout(7200)
def test_fifty_rounds_leave_nothing_and_nothing_grows(tmp_path: Path) -> None:
    for command, sizes in played(tmp_path, 50).items():
        early, late = sizes[10:20], sizes[40:]
        medians = [statistics.median(each.mib for each in part) for part in (early, late)]
        print(f"{command}: {medians[0]:.1f} MiB in rounds 11-20, {medians[1]:.1f} MiB in rounds 41-50", flush=True)
        assert medians[1] - medians[0] < TOLERANCE_MIB, command
        for held in ("n_fds", "n_threads"):
            counts = [max(getattr(each, held) for each in part) for part in (sizes[:20], late)]
            print(f"{command}: at most {counts[0]} {held} in rounds 1-20, {counts[1]} in rounds 41-50", flush=True)
            assert counts[1] < counts[0] + BEING_PUT_AWAY, (command, held)
