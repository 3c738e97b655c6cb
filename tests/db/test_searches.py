from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, select, text, update
from sqlalchemy.exc import IntegrityError

from db import checkpoints, models, queue, reports, searches, trials
from db.engine import reading, transaction
from db.errors import IdempotencyConflict, InvalidCursor, NotFound, WrongState
from tests.db.engines import full_scans, only, plan
from tests.db.rows import LABELS, claim, counts, create, get, queued, report, started, trial_states, types


def test_new_search_is_queued_with_its_event(engine: Engine) -> None:
    search = get(engine, queued(engine, request={"name": "tiny", "lr": 1e-3}, cpus=2.0, gpus=0.5))
    assert (search.state, search.stage, search.cancelling, search.attempt, search.last_event) == (
        "queued",
        None,
        False,
        0,
        1,
    )
    assert (search.request, search.labels, search.dataset) == ({"name": "tiny", "lr": 1e-3}, LABELS, "python-docs")
    assert (search.cpus, search.gpus) == (2.0, 0.5)
    assert search.started_at is None
    assert search.progress == searches.Progress(0, 100, 0.0, None)
    assert types(engine, search.id) == ["queued"]


def test_same_key_and_request_give_the_first_search(engine: Engine) -> None:
    with transaction(engine) as connection:
        create(connection)
    fields: dict[str, Any] = {
        "request": {},
        "name": "n",
        "labels": LABELS,
        "dataset": "d",
        "cpus": 1,
        "gpus": 0,
        "n_steps": 1,
    }

    def submit(place: int) -> searches.Created:
        with transaction(engine) as connection:
            return searches.create(connection, **fields, idempotency_key="k", request_hash="h")

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(submit, range(8)))
    assert len({each.search.id for each in made}) == 1
    assert sum(each.is_new for each in made) == 1
    assert counts(engine)["searches"] == 2
    with (
        transaction(engine) as connection,
        pytest.raises(IdempotencyConflict, match="idempotency key 'k' was used for another request"),
    ):
        searches.create(connection, **fields, idempotency_key="k", request_hash="other")
    with transaction(engine) as connection, pytest.raises(ValueError, match="needs the hash of its request"):
        searches.create(connection, **fields, idempotency_key="k2")


def create_with_key(connection: Connection) -> searches.Created:
    request: dict[str, Any] = {"request": {}, "name": "n", "labels": LABELS, "dataset": "d"}
    return searches.create(connection, **request, cpus=1, gpus=0, n_steps=1, idempotency_key="k", request_hash="h")


def test_key_of_a_search_that_was_not_committed_is_free(engine: Engine) -> None:
    def undone() -> None:
        with transaction(engine) as connection:
            create(connection, idempotency_key="k", request_hash="h")
            raise KeyError

    with pytest.raises(KeyError):
        undone()
    with transaction(engine) as connection:
        create(connection, idempotency_key="k", request_hash="other")


@pytest.mark.parametrize("is_undone", [False, True], ids=["committed", "undone"])
def test_the_second_request_with_a_key_waits_for_the_first(engine: Engine, is_undone: bool) -> None:
    def submit() -> searches.Created:
        with transaction(engine) as connection:
            return create_with_key(connection)

    with ThreadPoolExecutor(1) as pool:
        try:
            with transaction(engine) as connection:
                first = create_with_key(connection)
                waiting = pool.submit(submit)
                with pytest.raises(TimeoutError):
                    waiting.result(timeout=0.2)
                if is_undone:
                    raise KeyError
        except KeyError:
            pass
        second = waiting.result()
    assert second.is_new is is_undone
    assert (second.search.id == first.search.id) is not is_undone
    assert counts(engine)["searches"] == 1


@only("postgresql", "a writing transaction is the only one on SQLite")
def test_a_key_that_is_freed_between_two_statements_is_taken(engine: Engine) -> None:
    with transaction(engine) as connection:
        first = create_with_key(connection).search.id
        searches.cancel(connection, first)
    deleted: list[str] = []

    def delete_first(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if "INSERT INTO idempotency_keys" in statement and not deleted:
            deleted.append(first)
            with transaction(engine) as other:
                searches.delete(other, first)

    event.listen(engine, "after_cursor_execute", delete_first)
    with transaction(engine) as connection:
        created = create_with_key(connection)
    event.remove(engine, "after_cursor_execute", delete_first)
    assert created.is_new
    assert deleted == [first]
    assert counts(engine)["searches"] == counts(engine)["idempotency_keys"] == 1


def test_unknown_search_is_not_found(engine: Engine) -> None:
    with transaction(engine) as connection:
        for function in (searches.get, searches.cancel, searches.resume, searches.delete):
            with pytest.raises(NotFound, match="no search 'nobody'"):
                function(connection, "nobody")


def test_list_pages_newest_first(engine: Engine) -> None:
    ids = [queued(engine, dataset=f"d{place % 2}") for place in range(5)]
    with transaction(engine) as connection:
        searches.cancel(connection, ids[1])
    with reading(engine) as connection:
        seen: list[str] = []
        cursor = None
        for n_items in (2, 2, 1):
            page = searches.list(connection, limit=2, cursor=cursor)
            assert len(page.items) == n_items
            seen += [search.id for search in page.items]
            cursor = page.next_cursor
        assert cursor is None
        assert seen == ids[::-1]
        assert [search.id for search in searches.list(connection, state="cancelled").items] == [ids[1]]
        found = searches.list(connection, state="queued", dataset="d0", limit=3)
        assert [search.id for search in found.items] == [ids[4], ids[2], ids[0]]
        assert found.next_cursor is None
        with pytest.raises(InvalidCursor, match="invalid cursor 'abc'"):
            searches.list(connection, cursor="abc")


def test_stage_is_told_once(engine: Engine) -> None:
    run = started(engine)
    for stage in ("searching", "searching", "deriving"):
        with transaction(engine) as connection:
            searches.set_stage(connection, run.lease, stage)
    assert get(engine, run.search_id).stage == "deriving"
    assert types(engine, run.search_id).count("stage") == 2
    with (
        transaction(engine) as connection,
        pytest.raises(ValueError, match="unknown stage 'resting'; known: measuring"),
    ):
        searches.set_stage(connection, run.lease, "resting")


def test_finished_search_keeps_its_result(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        searches.set_stage(connection, run.lease, "exporting")
        searches.set_result(connection, run.lease, {"derived": "AF"})
        searches.finish(connection, run.lease, "succeeded")
    search = get(engine, run.search_id)
    assert (search.state, search.stage, search.result) == ("succeeded", None, {"derived": "AF"})
    assert search.finished_at is not None
    assert search.progress.share == 1.0
    assert types(engine, run.search_id)[-3:] == ["result", "trial", "succeeded"]
    assert trial_states(engine, run.search_id) == ["cancelled"]


def test_failure_needs_a_reason(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        with pytest.raises(ValueError, match="needs a reason"):
            searches.finish(connection, run.lease, "failed")
        with pytest.raises(ValueError, match="cannot finish as 'queued'; known: succeeded, failed, cancelled"):
            searches.finish(connection, run.lease, "queued")  # type: ignore[arg-type]
        searches.set_stage(connection, run.lease, "retraining")
        searches.finish(connection, run.lease, "failed", reason="the text is too short")
    search = get(engine, run.search_id)
    assert (search.state, search.stage, search.reason) == ("failed", "retraining", "the text is too short")


def test_cancel_of_a_queued_search_is_immediate(engine: Engine) -> None:
    search_id = queued(engine)
    with transaction(engine) as connection:
        assert searches.cancel(connection, search_id).state == "cancelled"
        again = searches.cancel(connection, search_id)
    assert again.finished_at is not None
    assert types(engine, search_id) == ["queued", "cancelled"]
    with transaction(engine) as connection:
        assert queue.claim_next(connection, "here:1", free_cpus=9, free_gpus=9) is None


def test_cancel_of_a_running_search_is_persisted_first(engine: Engine) -> None:
    run = started(engine)
    for _ in range(2):
        with transaction(engine) as connection:
            search = searches.cancel(connection, run.search_id)
        assert (search.state, search.cancelling) == ("running", True)
    with transaction(engine) as connection:
        searches.finish(connection, run.lease, "cancelled")
    search = get(engine, run.search_id)
    assert (search.state, search.cancelling) == ("cancelled", False)
    assert types(engine, run.search_id)[-3:] == ["cancelling", "trial", "cancelled"]


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_resume_queues_again(engine: Engine, state: Any) -> None:
    run = started(engine)
    later = queued(engine)
    with transaction(engine) as connection:
        searches.finish(connection, run.lease, state, reason="interrupted")
        search = searches.resume(connection, run.search_id)
        searches.resume(connection, run.search_id)
    assert (search.state, search.reason, search.finished_at, search.stage) == ("queued", None, None, None)
    assert types(engine, run.search_id)[-1] == "queued"
    assert claim(engine).lease.search_id == later  # it waits behind those that waited longer
    again = claim(engine)
    assert (again.lease.search_id, again.attempt) == (run.search_id, 2)


@pytest.mark.parametrize(
    ("state", "change", "message"),
    [
        ("succeeded", searches.cancel, "has succeeded; only a queued or running search can be cancelled"),
        ("failed", searches.cancel, "has failed; only a queued or running search can be cancelled"),
        ("succeeded", searches.resume, "has succeeded; only a failed or cancelled search can be resumed"),
        ("cancelling", searches.resume, "is being cancelled; resume it once it is cancelled"),
        ("running", searches.delete, "is running; cancel it before you delete it"),
        ("queued", searches.delete, "is queued; cancel it before you delete it"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_wrong_transition_is_refused(engine: Engine, state: Any, change: Any, message: str) -> None:
    if state == "queued":
        search_id = queued(engine)
    else:
        run = started(engine)
        search_id = run.search_id
        with transaction(engine) as connection:
            if state == "cancelling":
                searches.cancel(connection, search_id)
            elif state != "running":
                searches.finish(connection, run.lease, state, reason="x")
    before = get(engine, search_id)
    with transaction(engine) as connection, pytest.raises(WrongState, match=f"^search {search_id} {message}$"):
        change(connection, search_id)
    after = get(engine, search_id)
    assert (after.state, after.last_event, after.reason) == (before.state, before.last_event, before.reason)


def test_delete_takes_all_rows_along(engine: Engine) -> None:
    with transaction(engine) as connection:
        create(connection, idempotency_key="k", request_hash="h")
        searches.cancel(connection, searches.list(connection).items[0].id)
    run = started(engine)
    with transaction(engine) as connection:
        new = [report(run.trial_id, 0)]
        checkpoints.acknowledge(
            connection, run.lease, new, trial_id=run.trial_id, step=0, path="a", sha256="s", attempt=1
        )
        searches.finish(connection, run.lease, "succeeded")
        for search in searches.list(connection).items:
            searches.delete(connection, search.id)
    assert set(counts(engine).values()) == {0}


def test_progress_sums_the_trials(engine: Engine) -> None:
    search_id = queued(engine, n_steps=400)
    lease = claim(engine).lease
    with transaction(engine) as connection:
        wanted = [trials.NewTrial("search", 0, seed, 100, {}) for seed in range(2)]
        first, second = trials.ensure(connection, lease, wanted)
        reports.insert(connection, lease, [report(first.id, 60), report(second.id, 40)])
        # a hundred seconds ago
        connection.execute(update(models.searches).values(claimed_at=models.searches.c.claimed_at - 100))
    progress = get(engine, search_id).progress
    assert (progress.step, progress.n_steps, progress.share) == (100, 400, 0.25)
    assert progress.eta_s is not None
    assert 300 <= progress.eta_s < 3000  # one step a second or somewhat less: the machine may be slow
    with transaction(engine) as connection:
        queue.requeue(connection, lease)
    assert get(engine, search_id).progress == searches.Progress(100, 400, 0.25, None)
    lease = claim(engine).lease
    assert get(engine, search_id).progress.eta_s is None  # this attempt has done nothing yet
    with transaction(engine) as connection:
        trials.ensure(connection, lease, [trials.NewTrial("retrain", 0, 0, 300, {})])
    assert get(engine, search_id).progress.n_steps == 500  # the trials know better than the plan


def test_inputs_are_written_into_the_request(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        connection.execute(
            models.latency_tables.insert().values(id="table", key="k", created_at=0.0, body={"entries": {}})
        )
        searches.set_inputs(
            connection, run.lease, request={"latency_table": "table"}, latency_table_id="table", slot_ms=[3.0, 2.0, 0.0]
        )
    search = get(engine, run.search_id)
    assert (search.request, search.latency_table_id) == ({"latency_table": "table"}, "table")
    assert types(engine, run.search_id)[-1] == "latency_table"
    with reading(engine) as connection:
        assert connection.scalars(select(models.searches.c.slot_ms)).all() == [[3.0, 2.0, 0.0]]


def test_one_search_costs_one_indexed_statement(engine: Engine) -> None:
    search_id = queued(engine)
    statements: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        statements.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    with transaction(engine) as connection:
        searches.get(connection, search_id)
        searches.list(connection, state="queued")
        queue.claim_next(connection, "here:1", free_cpus=1, free_gpus=1)
    event.remove(engine, "before_cursor_execute", note)
    ours = [(sql, parameters) for sql, parameters in statements if not sql.startswith(("BEGIN", "INSERT"))]
    assert len(ours) == 4  # get, list, claim, and the claim's event number
    for sql, parameters in ours:
        assert not full_scans(plan(engine, sql, parameters)), sql


def test_states_are_closed_in_the_database(engine: Engine) -> None:
    queued(engine)
    for change, broken in (("state = 'asleep'", "state_is_known"), ("state = 'failed'", "failure_has_a_reason")):
        with pytest.raises(IntegrityError, match=f"ck_searches_{broken}"), transaction(engine) as connection:
            connection.execute(text(f"UPDATE searches SET {change}"))
    with reading(engine) as connection:
        assert connection.scalars(select(models.searches.c.state)).all() == ["queued"]


def test_a_trial_that_ended_sooner_or_was_given_up_counts_as_done_but_not_as_speed(engine: Engine) -> None:
    search_id = queued(engine, n_steps=400)
    lease = claim(engine).lease
    with transaction(engine) as connection:
        wanted = [trials.NewTrial("search", 0, seed, 100, {}) for seed in range(4)]
        ended, given_up, waiting, failed = trials.ensure(connection, lease, wanted)
        for trial in (ended, given_up, waiting, failed):
            reports.insert(connection, lease, [report(trial.id, 25)])
        connection.execute(update(models.searches).values(claimed_at=models.searches.c.claimed_at - 100))
    before = get(engine, search_id).progress
    with transaction(engine) as connection:
        trials.finish(connection, lease, ended.id, "succeeded")
        trials.finish(connection, lease, given_up.id, "cancelled", reason="pruned at step 25: behind 3 of 3")
        trials.finish(connection, lease, failed.id, "failed", reason="diverged")
    after = get(engine, search_id).progress
    assert (before.step, after.step, after.n_steps) == (100, 250, 400)
    assert before.eta_s is not None
    assert after.eta_s is not None
    assert after.eta_s == pytest.approx(before.eta_s / 2, rel=0.5)  # half is left, at the same speed; clocks go on
    with transaction(engine) as connection:
        searches.finish(connection, lease, "cancelled")
    assert get(engine, search_id).progress.step == 250  # a trial that the search's end cut off has not done its part
