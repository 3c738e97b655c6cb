from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, select

from db import checkpoints, events, models, queue, reports, searches, trials
from db.engine import make_engine, reading, transaction
from db.errors import LeaseLost, NotFound
from db.lease import Runner
from tests.db.engines import only
from tests.db.rows import claim, counts, get, queued, report, started, trial_states, types


def test_claim_takes_the_oldest_that_fits(engine: Engine) -> None:
    big, old, new = queued(engine, cpus=4.0), queued(engine, request={"old": True}), queued(engine, gpus=1.0)
    with transaction(engine) as connection:
        first = queue.claim_next(connection, "here:1", free_cpus=2, free_gpus=0)
        assert first is not None
        assert (first.lease.search_id, first.attempt, first.previous) == (old, 1, None)
        assert (first.request, first.cpus, first.gpus) == ({"old": True}, 1.0, 0.0)
        assert queue.claim_next(connection, "here:1", free_cpus=2, free_gpus=0.5) is None
        second = queue.claim_next(connection, "here:1", free_cpus=4, free_gpus=1)
        assert second is not None
        assert second.lease.search_id == big
        third = queue.claim_next(connection, "here:1", free_cpus=1, free_gpus=1)
        assert third is not None
        assert third.lease.search_id == new
        assert queue.claim_next(connection, "here:1", free_cpus=9, free_gpus=9) is None
        search = searches.get(connection, old)
    assert (search.state, search.attempt) == ("running", 1)
    assert search.started_at is not None
    assert types(engine, old) == ["queued", "started"]


def test_contended_claims_take_each_search_once(engine: Engine) -> None:
    ids = {queued(engine) for _ in range(24)}

    def take(owner: str) -> list[str]:
        taken = []
        while True:
            with transaction(engine) as connection:
                found = queue.claim_next(connection, owner, free_cpus=1, free_gpus=0)
            if found is None:
                return taken
            taken.append(found.lease.search_id)

    with ThreadPoolExecutor(4) as pool:
        taken = [search_id for part in pool.map(take, "abcd") for search_id in part]
    assert len(taken) == 24
    assert set(taken) == ids


def test_running_searches_can_be_adopted(engine: Engine) -> None:
    search_id = queued(engine, gpus=0.5)
    lease = claim(engine).lease
    runner = Runner("here", 42, 1700000000.25)
    with transaction(engine) as connection:
        (before,) = queue.running(connection)
        assert (before.runner, before.owner, before.attempt) == (None, "here:1", 1)
        queue.set_runner(connection, lease, runner)
        searches.cancel(connection, search_id)
        (after,) = queue.running(connection)
    assert (after.lease, after.runner, after.cancelling, after.cpus, after.gpus) == (lease, runner, True, 1.0, 0.5)
    assert 0 < after.expires_in_s <= 60


def test_heartbeat_renews_the_lease_and_tells_of_a_cancel(engine: Engine) -> None:
    run = started(engine, lease_s=-1)
    with transaction(engine) as connection:
        assert queue.heartbeat(connection, run.lease) is False
    with transaction(engine) as connection:
        assert queue.reclaim_expired(connection) == ()
        searches.cancel(connection, run.search_id)
        assert queue.heartbeat(connection, run.lease, lease_s=5) is True
        (adopted,) = queue.running(connection)
    assert 0 < adopted.expires_in_s <= 5


def test_requeue_in_good_order_counts_as_no_attempt(engine: Engine) -> None:
    search_id = queued(engine)
    for attempt in range(1, 6):
        found = claim(engine)
        assert found.attempt == attempt
        with transaction(engine) as connection:
            (trial,) = trials.ensure(connection, found.lease, [trials.NewTrial("search", 0, 0, 100, {})])
            trials.start(connection, found.lease, trial.id, attempt=attempt)
            assert queue.requeue(connection, found.lease) == "queued"
        assert trial_states(engine, search_id) == ["pre-empted"]
    assert get(engine, search_id).state == "queued"
    assert types(engine, search_id)[-2:] == ["trial", "requeued"]


def test_requeue_of_a_cancelled_search_ends_it(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        searches.cancel(connection, run.search_id)
        assert queue.requeue(connection, run.lease) == "cancelled"
    assert trial_states(engine, run.search_id) == ["cancelled"]


def test_reclaim_returns_whom_to_end(engine: Engine) -> None:
    run = started(engine, lease_s=-1)
    runner = Runner("here", 42, 1700000000.25)
    with transaction(engine) as connection:
        queue.set_runner(connection, run.lease, runner)
    with transaction(engine) as connection:
        assert queue.reclaim_expired(connection) == (queue.Reclaimed(run.search_id, "queued", None, runner),)
        assert queue.reclaim_expired(connection) == ()
    assert trial_states(engine, run.search_id) == ["lost"]
    assert types(engine, run.search_id)[-2:] == ["trial", "requeued"]
    with reading(engine) as connection:
        last = events.after(connection, run.search_id)[-1]
    assert last.data == {"reason": "the runner (pid 42 on here) was not heard of any more"}
    # kept for the next claim too, in case the dispatcher that reclaimed it dies before it could end the process
    assert claim(engine).previous == runner


def test_reclaim_leaves_live_leases(engine: Engine) -> None:
    started(engine, lease_s=60)
    with transaction(engine) as connection:
        assert queue.reclaim_expired(connection) == ()


def test_dead_runner_is_reclaimed_before_its_lease_ends(engine: Engine) -> None:
    run = started(engine, lease_s=60)
    with transaction(engine) as connection:
        found = queue.reclaim(connection, run.lease, "the runner exited with status 1")
    assert found == queue.Reclaimed(run.search_id, "queued", None, None)


def test_reclaim_ends_a_search_that_was_being_cancelled(engine: Engine) -> None:
    run = started(engine, lease_s=-1)
    with transaction(engine) as connection:
        searches.cancel(connection, run.search_id)
        (found,) = queue.reclaim_expired(connection)
    assert found.state == "cancelled"
    assert get(engine, run.search_id).state == "cancelled"
    assert trial_states(engine, run.search_id) == ["lost"]


def test_third_attempt_without_a_checkpoint_fails(engine: Engine) -> None:
    search_id = queued(engine)
    for state in ("queued", "queued", "failed"):
        claim(engine, lease_s=-1)
        with transaction(engine) as connection:
            (found,) = queue.reclaim_expired(connection)
        assert found.state == state
    reason = (
        "3 attempts in a row ended without a new checkpoint; "
        "the last one: the runner (never started) was not heard of any more"
    )
    assert found.reason == reason
    assert get(engine, search_id).reason == reason
    assert types(engine, search_id)[-1] == "failed"
    with transaction(engine) as connection:
        assert searches.resume(connection, search_id).state == "queued"
    claim(engine, lease_s=-1)
    with transaction(engine) as connection:
        assert queue.reclaim_expired(connection)[0].state == "queued"  # the count began anew


def test_new_checkpoint_ends_the_count_of_attempts(engine: Engine) -> None:
    run = started(engine, lease_s=-1)
    for step in range(6):
        with transaction(engine) as connection:
            (lease,) = (found.lease for found in queue.running(connection))
            checkpoints.acknowledge(
                connection,
                lease,
                [report(run.trial_id, step // 3)],
                trial_id=run.trial_id,
                step=step // 3,  # news only at every third attempt
                path="a",
                sha256="s",
                attempt=step + 1,
            )
            (found,) = queue.reclaim_expired(connection)
        assert found.state == "queued"
        claim(engine, lease_s=-1)
    with transaction(engine) as connection:
        (found,) = queue.reclaim_expired(connection)
    assert found.state == "failed"


def most_at_once(engine: Engine) -> float:
    """The most CPUs that running searches held together, by the times that the database wrote into their events."""
    with reading(engine) as connection:
        cpus = {row.id: row.cpus for row in connection.execute(select(models.searches.c.id, models.searches.c.cpus))}
        changes = [
            (event.created_at, event.type == "started", search_id)
            for search_id in cpus
            for event in events.after(connection, search_id)
            if event.type in ("started", "requeued", *searches.TERMINAL)
        ]
    held = most = 0.0
    for _, is_start, search_id in sorted(changes):  # an end comes before a start of the same moment
        held += cpus[search_id] if is_start else -cpus[search_id]
        most = max(most, held)
    assert held == 0
    return most


def test_claimers_together_take_each_search_once_and_never_more_than_there_is(engine: Engine) -> None:
    ids = {queued(engine, cpus=[1.0, 2.0, 0.5][place % 3]) for place in range(30)}
    taken: list[str] = []

    def take(owner: str) -> None:
        while len(taken) < len(ids):
            with transaction(engine) as connection:
                found = queue.claim_within(connection, owner, cpus=3, gpus=0)
            if found is None:
                continue
            taken.append(found.lease.search_id)
            with reading(engine) as connection:
                assert sum(each.cpus for each in queue.running(connection)) <= 3
            with transaction(engine) as connection:
                searches.finish(connection, found.lease, "succeeded")

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(take, owner) for owner in "abcd"]:
            done.result()
    assert sorted(taken) == sorted(ids)
    assert most_at_once(engine) <= 3


def test_what_fits_nowhere_is_taken_once_nothing_runs(engine: Engine) -> None:
    small, big = queued(engine), queued(engine, cpus=64.0)
    with transaction(engine) as connection:
        first = queue.claim_within(connection, "here:1", cpus=2, gpus=0)
        assert first is not None
        assert first.lease.search_id == small
        assert queue.claim_within(connection, "here:2", cpus=2, gpus=0) is None
        searches.finish(connection, first.lease, "succeeded")
        second = queue.claim_within(connection, "here:2", cpus=2, gpus=0)
    assert second is not None
    assert second.lease.search_id == big


@only("postgresql", "a writing transaction is the only one on SQLite")
def test_a_claim_does_not_wait_for_a_search_that_somebody_else_is_changing(url: str, engine: Engine) -> None:
    first, second = queued(engine), queued(engine)
    impatient = make_engine(url, busy_timeout_s=0.01)
    impatient.connect().close()  # also its patience to connect is short
    with transaction(engine) as cancelling:
        searches.cancel(cancelling, first)
        with transaction(impatient) as connection:
            claimed = queue.claim_next(connection, "here:1", free_cpus=1, free_gpus=0)
        assert claimed is not None
        assert claimed.lease.search_id == second
        with transaction(impatient) as connection:
            assert queue.claim_next(connection, "here:1", free_cpus=1, free_gpus=0) is None
    impatient.dispose()
    assert (get(engine, first).state, get(engine, second).state) == ("cancelled", "running")


@only("postgresql", "a writing transaction is the only one on SQLite")
def test_an_expired_lease_that_somebody_is_changing_is_left_for_the_next_look(url: str, engine: Engine) -> None:
    run = started(engine, lease_s=-1)
    impatient = make_engine(url, busy_timeout_s=0.01)
    impatient.connect().close()  # also its patience to connect is short
    with transaction(engine) as connection:
        queue.heartbeat(connection, run.lease)
        with transaction(impatient) as other:
            assert queue.reclaim_expired(other) == ()
    with transaction(impatient) as other:
        assert queue.reclaim_expired(other) == ()  # the heartbeat came first
    impatient.dispose()


def test_two_reclaim_an_expired_lease_once(engine: Engine) -> None:
    run = started(engine, lease_s=-1)

    def reclaim(_: int) -> int:
        with transaction(engine) as connection:
            return len(queue.reclaim_expired(connection))

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(reclaim, range(4))) == [0, 0, 0, 1]
    assert types(engine, run.search_id).count("requeued") == 1


def test_a_lease_counts_from_the_statement_and_not_from_the_begin(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        queue.heartbeat(connection, run.lease, lease_s=1000)
        (before,) = queue.running(connection)
        while queue.running(connection)[0].expires_in_s == before.expires_in_s:
            pass  # the database's clock goes on within the transaction
        queue.heartbeat(connection, run.lease, lease_s=1000)
        (after,) = queue.running(connection)
    assert after.expires_in_s > before.expires_in_s - 1000


def test_only_one_adopts_what_a_dead_dispatcher_left(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        (left,) = queue.running(connection)

    def adopt(owner: str) -> bool:
        with transaction(engine) as connection:
            return queue.adopt(connection, left, owner)

    with ThreadPoolExecutor(4) as pool:
        taken = [*pool.map(adopt, "abcd")]
    assert sorted(taken) == [False, False, False, True]
    with transaction(engine) as connection:
        (adopted,) = queue.running(connection)
        assert adopted.owner == "abcd"[taken.index(True)]
        assert adopted.lease == run.lease  # the runner goes on
        searches.finish(connection, run.lease, "succeeded")
        assert not queue.adopt(connection, adopted, "e")


@contextmanager
def in_a_thread(target: object) -> Iterator[None]:
    """Run it beside, to its end; what it raises is raised here."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(target)  # type: ignore[call-overload]
        yield
        done.result()


def test_a_search_deleted_under_its_writer_leaves_no_row(engine: Engine) -> None:
    """A runner paused past its lease goes on writing while its search is taken away, cancelled and deleted."""
    run = started(engine, lease_s=-1)
    wrote = threading.Event()

    def write() -> None:
        until = time.monotonic() + 60
        for step in itertools.count():
            try:
                with transaction(engine) as connection:
                    reports.insert(connection, run.lease, [report(run.trial_id, step)])
            except LeaseLost:
                return
            if step == 3:
                wrote.set()
            if time.monotonic() > until:
                break
            time.sleep(0.001)  # SQLite's lock is not fair: a writer without a pause keeps all others waiting
        raise AssertionError("nobody stopped the writer")

    with in_a_thread(write):
        assert wrote.wait(60)
        taken: tuple[queue.Reclaimed, ...] = ()
        while not taken:  # one look passes over a row that is being written
            with transaction(engine) as connection:
                taken = queue.reclaim_expired(connection)
        assert [each.state for each in taken] == ["queued"]
        with transaction(engine) as connection:
            searches.cancel(connection, run.search_id)
        with transaction(engine) as connection:
            searches.delete(connection, run.search_id)
    assert not any(counts(engine).values())
    with transaction(engine) as connection, pytest.raises(NotFound):
        searches.cancel(connection, run.search_id)
