"""Processes by (pid, start time): a pid alone may long belong to somebody else."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass

import psutil

_SAME_START_S = 2.0  # the kernel counts from boot; a corrected clock moves the wall time by less than this
_TEARING_DOWN_S = 5.0  # at most, from SIGKILL until the kernel has taken a process apart, which may hold gigabytes


@dataclass(frozen=True)
class ProcessId:
    """A process of this host.

    Args:
        pid: its number, also of its session where it leads one.
        started: seconds since 1970.
    """

    pid: int
    started: float


def identify(pid: int) -> ProcessId:
    """The process of this pid, as it is now. Raises psutil.NoSuchProcess."""
    return ProcessId(pid, psutil.Process(pid).create_time())


def alive(process: ProcessId) -> bool:
    """Whether this very process runs; one that has ended but was not waited for does not."""
    try:
        found = psutil.Process(process.pid)
        same = abs(found.create_time() - process.started) < _SAME_START_S
        return same and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def send(process: ProcessId, number: signal.Signals) -> None:
    """Signal the process alone, if it is still the one meant."""
    if alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def end_session(process: ProcessId, patience_s: float) -> None:
    """End every process of the session that this process leads: SIGTERM, then SIGKILL after `patience_s`.

    Waits until none is left, some seconds at most: a killed process lives on while the kernel takes it apart.
    Sessions, not groups: Ray gives each of its workers a group of its own. Where the leader is gone its orphans
    still carry its number, and the kernel gives no pid away while a session of that number lives.
    """
    if not _is_ours(process):
        return
    _signal(members(process.pid), signal.SIGTERM)
    _wait_for_end(process.pid, patience_s)
    _signal(members(process.pid), signal.SIGKILL)
    _wait_for_end(process.pid, _TEARING_DOWN_S)


def _wait_for_end(session: int, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and members(session):
        time.sleep(0.05)


def members(session: int) -> list[int]:
    """The live processes of a session, by the pid of its leader."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def _is_ours(process: ProcessId) -> bool:
    try:
        leader = psutil.Process(process.pid)
    except psutil.NoSuchProcess:
        # Only the leader's orphans can bear the number, unless the machine was started again: then somebody else's do.
        return psutil.boot_time() < process.started + _SAME_START_S
    return abs(leader.create_time() - process.started) < _SAME_START_S


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
