"""No room on the disk: a reason that names the path and what to do, and the search goes on once there is room."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from db import queue
from db.engine import make_engine, transaction
from nas.errors import SearchFailed
from tests.crash.conftest import Known
from tests.crash.outcome import Outcome, assert_told_once, outcome
from tests.crash.small_disk import SmallDisk, small_disk
from tests.crash.under_test import UnderTest, under_test
from workers.cluster import Cluster
from workers.disk import explain
from workers.inline import InlineTrials, run_local
from workers.recorder import Recorder
from workers.runner import run_search

pytestmark = pytest.mark.timeout(3600)


def submit(service: UnderTest, known: Known) -> str:
    service.client.add_latency_table(known.table.model_dump(mode="json"))
    search_id: str = service.client.submit(known.wanted.model_dump(mode="json"))["id"]
    return search_id


def of_the_session(ray: Cluster) -> dict[str, str]:
    """The tests' one Ray, where nothing of it is killed."""
    return {"BLOCKWRIGHT_RAY_ADDRESS": ray.address, "BLOCKWRIGHT_RAY_TOKEN_FILE": ray.token_file}


def has_checkpoint(service: UnderTest, search_id: str) -> bool:
    return any(event.type == "checkpoint" for event in service.events(search_id))


@pytest.mark.ray
@pytest.mark.crash
def test_no_room_for_a_checkpoint_ends_the_search_with_a_reason_and_with_room_it_goes_on(
    tmp_path: Path, known: Known, ray_cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    joined = of_the_session(ray_cluster)
    with (
        small_disk(tmp_path / "searches", 8, request.node.nodeid) as disk,
        under_test(tmp_path, extra=joined) as service,
    ):
        service.migrate()
        service.start("api", "dispatch")
        search_id = submit(service, known)
        service.wait_until(lambda: has_checkpoint(service, search_id), "a checkpoint is acknowledged")
        disk.fill()
        service.wait_for_end(search_id)
        search = service.search(search_id)
        assert search.state == "failed"
        assert re.fullmatch(
            rf"trial (search|retrain)-0-\d failed: cannot save a checkpoint in {tmp_path}/searches/{search_id}/trials/"
            r".*: .*No space left on device.*; make room there, or put it right, and resume the search",
            str(search.reason),
        )
        assert not [*(tmp_path / "searches").rglob("*.part")]
        disk.make_room()
        service.client.resume(search_id)
        service.wait_for_end(search_id)
        assert outcome(service, search_id) == known.outcome
        service.assert_only_checkpoints_that_count(search_id)
        service.end_in_good_order()


@pytest.mark.ray
@pytest.mark.crash
def test_no_room_for_the_database_holds_a_search_up_and_with_room_it_goes_on_by_itself(
    tmp_path: Path, known: Known, ray_cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    with small_disk(tmp_path / "small", 16, request.node.nodeid) as disk:  # its log alone takes 4
        url = f"sqlite:///{tmp_path}/small/blockwright.db"
        extra = {"BLOCKWRIGHT_DATABASE_URL": url, **of_the_session(ray_cluster)}
        with under_test(tmp_path / "data", extra=extra) as service:
            service.migrate()
            service.start("api", "dispatch")
            search_id = submit(service, known)
            service.wait_until(lambda: has_checkpoint(service, search_id), "a checkpoint is acknowledged")
            disk.fill()
            time.sleep(15)  # beyond the lease
            wanted = known.wanted.model_dump(mode="json")
            with httpx.Client(base_url=service.address, trust_env=False, timeout=600) as http:
                answers = [http.post("/api/v1/searches", json=wanted) for _ in range(20)]
            refused = [answer.json() for answer in answers if not answer.is_success]
            assert refused, "the disk was not full"
            assert {answer["code"] for answer in refused} == {"disk-full"}
            assert "make room there" in refused[0]["detail"]
            assert service.client.get(search_id)["state"] == "running"
            disk.make_room()
            for answer in answers:
                if answer.is_success:  # fitted into what the log had left
                    service.client.cancel(answer.json()["id"])
            service.wait_for_end(search_id)
            assert outcome(service, search_id) == known.outcome
            assert_told_once(service, search_id)
            service.end_in_good_order()


@pytest.mark.ray
@pytest.mark.crash
def test_no_room_for_the_logs_changes_nothing(tmp_path: Path, known: Known, ray_cluster: Cluster) -> None:
    with under_test(tmp_path, extra=of_the_session(ray_cluster)) as service:
        service.migrate()
        service.start("api")
        search_id = submit(service, known)
        folder = tmp_path / "searches" / search_id
        folder.mkdir(parents=True)
        (folder / "runner.log").symlink_to("/dev/full")
        for name in ("api", "dispatch"):
            (service.logs / f"{name}.log").unlink(missing_ok=True)
            (service.logs / f"{name}.log").symlink_to("/dev/full")
        service.start("dispatch")
        service.wait_until(lambda: has_checkpoint(service, search_id), "a checkpoint is acknowledged")
        service.kill("api")
        service.start("api")
        service.wait_for_end(search_id)
        assert outcome(service, search_id) == known.outcome
        service.end_in_good_order()


def fill_at(stage: str, disk: SmallDisk, leave: int) -> Any:
    def told(kind: str, data: dict[str, Any]) -> None:
        if kind == "stage" and data["stage"] == stage:
            disk.fill(leave)

    return told


@pytest.mark.crash
@pytest.mark.parametrize("leave", [0, 60_000], ids=["for nothing", "for some of its files"])
def test_no_room_for_the_export_is_told_in_one_line_and_with_room_the_same_command_goes_on(
    tmp_path: Path, known: Known, request: pytest.FixtureRequest, leave: int
) -> None:
    with small_disk(tmp_path / "small", 8, request.node.nodeid) as disk:
        folder = tmp_path / "small" / "search"
        told = rf"^cannot use {folder}.*: no space left on device; make room there and run it again: it goes on"
        with pytest.raises(SearchFailed, match=told):
            run_local(known.wanted, folder, {}, fill_at("exporting", disk, leave), known.table)
        disk.make_room()
        result = run_local(known.wanted, folder, {}, lambda kind, data: None, known.table)
        assert result["derived"] == known.outcome.result["derived"]
        assert not [*folder.rglob("*.partial")]


@pytest.mark.crash
def test_no_room_for_the_export_of_a_served_search_and_then_room(
    tmp_path: Path, known: Known, request: pytest.FixtureRequest
) -> None:
    """As its runner does it, without Ray: the store is the database, and the reason is what it would write."""

    class Filling(Recorder):
        def stage(self, name: Any) -> None:
            super().stage(name)
            if name == "exporting" and self.attempt == 1:
                disk.fill()

    with small_disk(tmp_path / "searches", 8, request.node.nodeid) as disk, under_test(tmp_path) as service:
        service.migrate()
        service.start("api")
        search_id = submit(service, known)
        engine = make_engine(service.url)

        def attempt() -> None:
            with transaction(engine) as connection:
                claim = queue.claim_next(connection, "test", free_cpus=1, free_gpus=0, lease_s=1000)
                assert claim is not None
            recorder = Filling(engine, claim.lease, tmp_path, claim.attempt, threading.Event(), lambda: None)
            try:
                run_search(known.wanted, recorder, InlineTrials())
            finally:
                recorder.close()
                with transaction(engine) as connection:
                    queue.requeue(connection, claim.lease)

        with pytest.raises(OSError, match="No space left") as failed:
            attempt()
        reason = explain(failed.value, tmp_path / "searches" / search_id)
        assert re.fullmatch(
            rf"cannot use {tmp_path}/searches/{search_id}.*: no space left on device; make room there and resume the "
            "search: it goes on from its last checkpoint",
            reason,
        )
        disk.make_room()
        attempt()
        assert service.search(search_id).result is not None
        service.client.close()
        engine.dispose()


OUT_OF_MEMORY = """
import json, pathlib, resource, sys
from api.cli import main
from workers import inline  # torch is loaded before the limit is set, so that only the search can reach it
size = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 300 * 2**20, size + 300 * 2**20))
sys.argv = ["blockwright", "search", "--local", sys.argv[1], "--out", sys.argv[2]]
main()
"""


@pytest.mark.crash
def test_a_local_search_that_runs_out_of_memory_says_so_in_one_line(tmp_path: Path, known: Known) -> None:
    space = known.wanted.space.model_copy(update={"d_model": 2048, "n_heads": 2})
    request = known.wanted.model_copy(update={"space": space, "latency_table": None})
    (tmp_path / "request.json").write_text(request.model_dump_json())
    command = [sys.executable, "-c", OUT_OF_MEMORY, str(tmp_path / "request.json"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    # The second where the machine itself is too small, whatever the limit.
    assert re.search(r"memory ran out; a smaller batch_size, |GB are free; a smaller max_len, ", last)
    assert "Traceback" not in done.stderr


@pytest.mark.ray
@pytest.mark.crash
def test_a_trial_that_is_killed_again_and_again_fails_its_search_with_a_reason(tmp_path: Path, known: Known) -> None:
    """As the kernel does when memory runs out."""
    with under_test(tmp_path) as service:
        service.migrate()
        service.start("api", "dispatch")
        search_id = submit(service, known)

        def kill_all() -> bool:
            for pid in service.trial_pids():
                service.kill_pid(pid)
            return service.has_ended(search_id)

        service.wait_until(kill_all, "the search has given up")
        assert re.fullmatch(
            r"trial search-0-\d failed: its process was killed 3 times: .*The kernel does so when memory runs out; "
            r"a smaller batch_size, train_length, d_model or n_slots needs less",
            str(service.search(search_id).reason),
        )
        service.client.resume(search_id)
        service.wait_for_end(search_id)
        found: Outcome = outcome(service, search_id)
        assert found == known.outcome
        service.end_in_good_order()
