"""Whose a running search is: the dispatcher that claimed or adopted it, told from every other one."""

from __future__ import annotations

import os
import socket

from workers import processes
from workers.processes import ProcessId


def this_process() -> str:
    """The name of this process as an owner: host, pid and start time, so that a later process of its pid is another."""
    here = processes.identify(os.getpid())
    return f"{socket.gethostname()}:{here.pid}:{here.started:.2f}"


def is_gone(owner: str) -> bool:
    """Whether it is a process of this host that has ended, or none at all. Of other hosts nothing is known: False."""
    try:
        host, pid, started = owner.rsplit(":", 2)
        process = ProcessId(int(pid), float(started))
    except ValueError:
        return True
    return host == socket.gethostname() and not processes.alive(process)
