"""kill -9 at the nastiest moments, found by reading: between a file and its row, between the result and the end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from db import queue
from db.engine import reading, transaction
from tests.crash.outcome import assert_told_once, files_of, outcome, request
from tests.crash.under_test import UnderTest, under_test
from tests.workers.service import Service

pytestmark = [pytest.mark.crash, pytest.mark.timeout(3600)]

# In the order in which a search comes to them: each attempt dies at the next one.
MOMENTS = {
    "a checkpoint's file is there, and not its row": ("-report", 2),
    "a checkpoint is acknowledged, and older ones are still there": ("+report", 1),
    "an architecture is kept, and not the next one": ("+architecture", 1),
    "a retraining has ended, and the next one has not begun": ("+report", 3),
    "the export is there, and not its row": ("-artifact", 1),
    "the export has its row, and there is no result": ("+artifact", 1),
    "result.json is there, and not its row": ("-result", 1),
    "the result is kept, and the search goes on": ("+result", 1),
}


def attempt(service: UnderTest, moment: str = "-finished", n: int = 0) -> int:
    script = Path(__file__).with_name("dying.py")
    command = [sys.executable, str(script), str(service.folder), moment, str(n)]
    return subprocess.run(command, env=service.environment(), check=False).returncode


def give_back(service: UnderTest, search_id: str) -> None:
    """What the dispatcher does with the search of a dead runner, but for the count of fruitless attempts."""
    with reading(service.engine) as connection:
        (running,) = queue.running(connection)
    assert running.lease.search_id == search_id
    with transaction(service.engine) as connection:
        queue.requeue(connection, running.lease)


def test_a_runner_killed_between_any_file_and_its_row_loses_and_doubles_nothing(tmp_path: Path) -> None:
    wanted = request(n_steps=120)
    with under_test(tmp_path) as service:
        service.migrate()
        submitting = Service(tmp_path, None)
        undisturbed_id = submitting.submit(wanted)
        assert attempt(service) == 0
        reference = outcome(service, undisturbed_id)

        search_id = submitting.submit(wanted)
        for name, (moment, n) in MOMENTS.items():
            assert attempt(service, moment, n) == -signal.SIGKILL, f"not killed where {name}"
            give_back(service, search_id)
        assert attempt(service) == 0
        assert outcome(service, search_id) == reference
        assert service.search(search_id).attempt == len(MOMENTS) + 1
        assert_told_once(service, search_id)
        service.assert_only_checkpoints_that_count(search_id)
        folders = [tmp_path / "searches" / each for each in (search_id, undisturbed_id)]
        names = [[name for name in files_of(folder) if not name.startswith("trials/")] for folder in folders]
        assert names[0] == names[1]
        submitting.engine.dispose()
