"""Searches through dispatcher, runner, Ray and database that are cancelled, adopted and given back.

What becomes of one in which processes were killed is tested in tests/crash.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from db import checkpoints, searches, trials
from db.engine import reading, transaction
from nas.config.request import Resources, SearchRequest
from tests import tiny
from tests.workers.service import serving
from workers import cluster, processes
from workers.cluster import Cluster

pytestmark = pytest.mark.ray


def request(**method: Any) -> SearchRequest:
    lively = {"n_steps": 300, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.1}
    reports = {"report_every": 10, "checkpoint_every": 20}
    return tiny.request(method={**lively, **reports, **method}, trials={"n_seeds": 2})


def test_a_cancelled_search_frees_its_cpus_and_gpus_within_15_s(tmp_path: Path, ray_driver: Cluster) -> None:
    import ray

    wanted = request(n_steps=1_000_000)
    wanted = wanted.model_copy(update={"resources": Resources(cpus=1, gpus=0.5)})
    with serving(tmp_path, ray_driver) as service:
        service.dispatch()
        search_id = service.submit(wanted)
        service.wait_for(search_id, lambda: service.has_event(search_id, "reports"))
        taken = ray.available_resources()
        assert taken.get("GPU", 0) <= 1.5  # a trial holds its half; the other one may be on its way
        assert taken.get("CPU", 0) <= 1
        with transaction(service.engine) as connection:
            searches.cancel(connection, search_id)
        asked = time.monotonic()
        while (free := ray.available_resources()).get("CPU", 0) < 2 or free.get("GPU", 0) < 2:
            assert time.monotonic() - asked < 15
            time.sleep(0.1)
        service.wait_for(search_id, lambda: service.search(search_id).state == "cancelled", timeout_s=60)
        with reading(service.engine) as connection:
            states = {trial.state for trial in trials.of_search(connection, search_id)}
        assert states == {"cancelled"}


def test_a_killed_dispatcher_is_replaced_and_a_stopped_one_leaves_nothing_running(tmp_path: Path) -> None:
    with serving(tmp_path, ray=None) as service:
        first = service.dispatch()
        search_id = service.submit(request(n_steps=1_000_000))
        service.wait_for(search_id, lambda: service.has_event(search_id, "checkpoint"))
        runner = service.running(search_id).runner
        head = cluster.find(tmp_path)
        assert runner is not None
        assert head is not None
        first.kill()
        first.wait()

        second = service.dispatch()
        dispatching = tmp_path / "dispatcher.log"
        service.wait_for(search_id, lambda: dispatching.read_text().count("dispatching") == 2)
        n_before = service.search(search_id).last_event
        service.wait_for(search_id, lambda: service.search(search_id).last_event > n_before + 5)
        assert service.running(search_id).runner == runner  # adopted, not started again
        assert cluster.find(tmp_path) == head

        second.terminate()
        assert second.wait(timeout=200) == 0
        search = service.search(search_id)
        assert search.state == "queued"
        with reading(service.engine) as connection:
            rows = trials.of_search(connection, search_id)
            assert all(checkpoints.newest(connection, row.id) is not None for row in rows if row.step >= 20)
        assert {row.state for row in rows} <= {"pre-empted", "queued"}
        assert not processes.members(runner.pid)
        assert not processes.members(head.process.pid)
        assert not Path(head.temp_dir).exists()
