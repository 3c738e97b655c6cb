"""Searches through dispatcher, runner, Ray and database; and the same after something was killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from db import checkpoints, latency_tables, reports, searches, trials
from db.engine import reading, transaction
from nas.config import Resources, SearchRequest
from nas.cost import LatencyTable
from tests import tiny
from tests.workers.service import Service, serving
from workers import cluster, processes
from workers.cluster import Cluster
from workers.inline import run_local

pytestmark = pytest.mark.ray


def request(**method: Any) -> SearchRequest:
    lively = {"n_steps": 300, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.1}
    reports = {"report_every": 10, "checkpoint_every": 20}
    return tiny.request(method={**lively, **reports, **method}, trials={"n_seeds": 2})


def probabilities(service: Service, search_id: str) -> dict[int, list[tuple[int, Any]]]:
    """By seed: (step, matrix) of every report of the search trials."""
    found = {}
    with reading(service.engine) as connection:
        for trial in trials.of_search(connection, search_id, kind="search"):
            rows = reports.between(connection, trial.id, 0, 10**9)
            found[trial.seed] = [(row.step, matrices.probabilities) for row, matrices in rows]
    return found


def trial_processes(ray_cluster: Cluster) -> list[int]:
    """The processes of the cluster that run a trial."""
    pids = processes.members(ray_cluster.process.pid)
    return [pid for pid in pids if "ray::ImplicitFunc" in " ".join(psutil.Process(pid).cmdline())]


def has_new_reports(service: Service, search_id: str, n_told: int, *, n_trials: int) -> bool:
    """Whether so many trials have reported since the first `n_told` events."""
    new = service.events(search_id)[n_told:]
    return len({event.data["trial"] for event in new if event.type == "reports"}) >= n_trials


def test_a_search_whose_trial_and_runner_were_killed_ends_as_an_undisturbed_one_bit_by_bit(
    tmp_path: Path, ray_cluster: Cluster
) -> None:
    wanted = request()
    with serving(tmp_path, ray_cluster) as service:
        service.dispatch()
        search_id = service.submit(wanted)
        service.wait_for(search_id, lambda: service.has_event(search_id, "checkpoint"))
        runner = service.running(search_id).runner
        assert runner is not None
        n_told = len(service.events(search_id))
        os.kill(trial_processes(ray_cluster)[0], signal.SIGKILL)  # Tune starts it again, from its own checkpoint
        service.wait_for(search_id, lambda: has_new_reports(service, search_id, n_told, n_trials=2))
        os.kill(runner.pid, signal.SIGKILL)
        killed = time.monotonic()
        n_told = len(service.events(search_id))
        service.wait_for(search_id, lambda: has_new_reports(service, search_id, n_told, n_trials=1))
        assert time.monotonic() - killed < 45
        service.wait_for(search_id, lambda: service.search(search_id).state == "succeeded")

        search = service.search(search_id)
        told = service.events(search_id)
        assert search.attempt == 2
        assert [event.number for event in told] == [*range(1, len(told) + 1)]
        numbers = [(event.data["trial"], event.data["first_step"]) for event in told if event.type == "reports"]
        assert len(numbers) == len(set(numbers))
        kinds = [event.type for event in told]
        assert [kinds.count(kind) for kind in ("latency_table", "requeued", "rule", "succeeded")] == [1, 1, 1, 1]
        folder = tmp_path / "searches" / search_id
        assert (folder / "export.zip").exists()
        assert search.result is not None
        assert search.request["latency_table"] == search.latency_table_id

        # The very same request, table and seeds, in this process and undisturbed.
        resolved = SearchRequest.model_validate(search.request)
        with reading(service.engine) as connection:
            table = LatencyTable.model_validate(latency_tables.get(connection, str(search.latency_table_id)).body)
        here: dict[int, list[tuple[int, Any]]] = {0: [], 1: []}

        def collect(kind: str, data: dict[str, Any]) -> None:
            if kind == "reports" and data["trial"].startswith("search"):
                here[int(data["trial"][-1])].append((data["record"]["step"], data["record"]["probabilities"]))

        local = run_local(resolved, tmp_path / "local", {}, collect, table)
        assert probabilities(service, search_id) == here
        assert local["quality"] == search.result["quality"]
        assert local["derived"] == search.result["derived"]


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
        service.wait_for(search_id, lambda: service.search(search_id).state == "cancelled", timeout_s=15)
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
        assert second.wait(timeout=40) == 0
        search = service.search(search_id)
        assert search.state == "queued"
        with reading(service.engine) as connection:
            rows = trials.of_search(connection, search_id)
            assert all(checkpoints.newest(connection, row.id) is not None for row in rows if row.step >= 20)
        assert {row.state for row in rows} <= {"pre-empted", "queued"}
        assert not processes.members(runner.pid)
        assert not processes.members(head.process.pid)
        assert not Path(head.temp_dir).exists()
