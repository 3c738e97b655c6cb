from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from workers import owner, processes


def test_this_process_is_here() -> None:
    assert not owner.is_gone(owner.this_process())


def test_a_process_that_has_ended_is_gone() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    started = processes.identify(ended.pid).started
    ended.wait()
    assert owner.is_gone(f"{socket.gethostname()}:{ended.pid}:{started:.2f}")


@pytest.mark.parametrize(
    ("other", "gone"),
    [
        pytest.param(f"{socket.gethostname()}:{os.getpid()}:5.00", True, id="an earlier process of this pid"),
        pytest.param("elsewhere:1:5.00", False, id="another host"),
        pytest.param("fd00::1:42:5.00", False, id="another host by address"),
        pytest.param("somebody", True, id="no process at all"),
    ],
)
def test_of_others_only_what_is_known_is_said(other: str, gone: bool) -> None:
    assert owner.is_gone(other) is gone
