"""Processes are told apart by pid and start time, and ended with everything of their session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil

from workers import processes
from workers.processes import ProcessId

# A leader with a child in a group of its own, as Ray's workers have; both ignore SIGTERM.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)
os.write(1, b"ready\\n")
time.sleep(100)
"""


def start(code: str, lines: int = 1) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout is not None
    for _ in range(lines):
        assert child.stdout.readline() == "ready\n"
    return child


def finish(child: subprocess.Popen[str]) -> int:
    assert child.stdout is not None
    child.stdout.close()
    return child.wait()


def test_this_process_is_alive_and_one_of_its_pid_and_another_start_is_not() -> None:
    here = processes.identify(os.getpid())
    assert processes.alive(here)
    assert not processes.alive(ProcessId(here.pid, here.started - 100))
    assert not processes.alive(ProcessId(2**22 + 1, 0.0))


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    found = processes.identify(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and not waited for
    assert not processes.alive(found)
    child.wait()


def test_a_session_is_ended_with_members_of_other_groups_that_ignore_the_first_signal() -> None:
    child = start(STUBBORN, lines=2)
    found = processes.identify(child.pid)
    assert len(processes.members(child.pid)) == 2
    processes.end_session(found, patience_s=0.1)
    assert finish(child) == -signal.SIGKILL
    deadline = time.monotonic() + 120
    while processes.members(child.pid):
        assert time.monotonic() < deadline


def test_orphans_of_a_killed_leader_are_ended_too() -> None:
    child = start(STUBBORN, lines=2)
    found = processes.identify(child.pid)
    child.kill()
    finish(child)
    assert processes.members(found.pid)
    processes.end_session(found, patience_s=0)
    deadline = time.monotonic() + 120
    while processes.members(found.pid):
        assert time.monotonic() < deadline


def test_after_a_reboot_orphans_of_that_number_are_somebody_elses() -> None:
    """Such as what was left running in a login session that has ended."""
    child = start(STUBBORN, lines=2)
    found = processes.identify(child.pid)
    child.kill()
    finish(child)
    before_the_boot = ProcessId(found.pid, psutil.boot_time() - 100)
    processes.end_session(before_the_boot, patience_s=0)
    assert processes.members(found.pid)
    processes.end_session(found, patience_s=0)


def test_a_process_that_only_bears_the_number_is_left_alone() -> None:
    child = start('print("ready", flush=True)\nimport time; time.sleep(100)')
    found = processes.identify(child.pid)
    earlier = ProcessId(found.pid, found.started - 100)
    processes.end_session(earlier, patience_s=0)
    processes.send(earlier, signal.SIGKILL)
    assert processes.alive(found)
    processes.send(found, signal.SIGKILL)
    assert finish(child) == -signal.SIGKILL
