"""A runner that is stopped past its lease, on a machine where nobody can end it, and then goes on: it is too late."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from db.engine import make_engine, transaction
from db.models import searches as searches_table
from tests.crash.conftest import Known
from tests.crash.outcome import assert_told_once, outcome
from tests.crash.under_test import UnderTest, under_test
from workers import processes

pytestmark = [pytest.mark.ray, pytest.mark.crash, pytest.mark.timeout(3600)]


def stop_as_on_another_host(service: UnderTest, search_id: str, pid: int) -> None:
    """SIGSTOP, and another host's name in the row: so the dispatcher leaves the process alone, as it would have to.

    Stopped in the middle of a write it would keep the test out as well; then it is stopped at another moment.
    """
    engine = make_engine(service.url, busy_timeout_s=1)
    change = update(searches_table).where(searches_table.c.id == search_id).values(runner_host="elsewhere")
    while True:
        os.kill(pid, signal.SIGSTOP)
        try:
            with transaction(engine) as connection:
                connection.execute(change)
            break
        except OperationalError:
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
    engine.dispose()


@pytest.mark.parametrize("n_before", [1, 6], ids=["early", "later"])
def test_late_writes_of_a_runner_that_was_stopped_past_its_lease_are_refused(
    tmp_path: Path, known: Known, n_before: int
) -> None:
    with under_test(tmp_path) as service:
        service.migrate()
        service.start("api", "dispatch")
        service.client.add_latency_table(known.table.model_dump(mode="json"))
        search_id = service.client.submit(known.wanted.model_dump(mode="json"))["id"]
        for _ in range(n_before):
            service.wait_for_news(search_id, "reports")
        late = service.runner_pid(search_id)
        assert late is not None
        stop_as_on_another_host(service, search_id, late)
        service.wait_until(lambda: service.search(search_id).attempt == 2, "the lease is over and another starts")
        service.wait_until(lambda: service.runner_pid(search_id) not in (None, late), "the other runner is there")
        assert late in processes.members(late)  # still stopped, and full of reports that it did not write
        last_event = service.search(search_id).last_event
        os.kill(late, signal.SIGCONT)
        service.wait_until(lambda: not processes.members(late), "the late runner has ended itself")
        log = (tmp_path / "searches" / search_id / "runner.log").read_text()
        assert "stopping: the search belongs to another runner" in log
        service.wait_for_end(search_id)

        assert service.search(search_id).attempt == 2
        assert outcome(service, search_id) == known.outcome
        assert_told_once(service, search_id)
        started = [event.number for event in service.events(search_id) if event.type == "started"]
        assert len(started) == 2
        assert started[1] <= last_event
        service.assert_only_checkpoints_that_count(search_id)
        service.end_in_good_order()
