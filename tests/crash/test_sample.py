"""A sample of the kill tests that runs with all other tests: every process of the service dies once in one search."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.crash.conftest import Known
from tests.crash.killing import kill
from tests.crash.outcome import assert_events_are_whole, outcome
from tests.crash.under_test import PATIENCE_S, Following, under_test

pytestmark = [pytest.mark.ray, pytest.mark.timeout(3600)]


def test_every_process_dies_once_and_the_search_ends_as_an_undisturbed_one(tmp_path: Path, known: Known) -> None:
    draw = random.Random(0)
    with under_test(tmp_path) as service:
        service.migrate()
        service.start("api", "dispatch")
        service.client.add_latency_table(known.table.model_dump(mode="json"))
        search_id = service.client.submit(known.wanted.model_dump(mode="json"))["id"]
        following = Following(service, search_id)
        for victim in ("trial", "api", "stopped runner", "dispatch", "runner", "head"):
            service.wait_for_news(search_id, "reports")
            if victim == "stopped runner":  # for longer than its lease; the dispatcher ends it
                stopped = service.runner_pid(search_id)
                assert stopped is not None
                os.kill(stopped, signal.SIGSTOP)
            else:
                service.wait_until(lambda v=victim: kill(service, v, search_id, draw), f"{victim} is killed")
        service.wait_for_end(search_id)
        following.join(PATIENCE_S)
        assert following.problem is None

        assert service.search(search_id).attempt >= 4  # two runners and the head under a third have died
        assert outcome(service, search_id) == known.outcome
        assert_events_are_whole(service, search_id, following.seen)
        service.assert_only_checkpoints_that_count(search_id)
        service.end_in_good_order()
