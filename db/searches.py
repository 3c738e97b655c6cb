"""Searches: creation, reading, and what users and runners change, each with its event in one transaction.

    queued -> running -> succeeded | failed | cancelled;  failed | cancelled -> queued by `resume`

A running search has a `stage`, and `cancelling` once somebody asked for its end. How a search gets a runner, and back
into the queue, is in `db.queue`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    func,
    insert,
    null,
    or_,
    select,
    update,
)
from sqlalchemy import delete as delete_from

from db import clock, events, paging
from db.engine import insert_into
from db.errors import IdempotencyConflict, NotFound, WrongState
from db.ids import new_id
from db.lease import Lease, fence
from db.models import idempotency_keys, searches, trials
from db.paging import Page

TERMINAL = ("succeeded", "failed", "cancelled")
STAGES = ("measuring", "searching", "deriving", "retraining", "diagnosing", "exporting")
_WAITING = ("queued", "lost", "pre-empted")  # trials that a next attempt would start


@dataclass(frozen=True)
class Progress:
    """Weight updates done and planned over all trials; `share` in [0, 1]; `eta_s` None while the speed is unknown.

    A trial that ended sooner than it might have, or was given up, counts as all that was planned for it.
    """

    step: int
    n_steps: int
    share: float
    eta_s: float | None


@dataclass(frozen=True)
class Search:
    """A search as its row and its trials tell it."""

    id: str
    name: str
    state: str
    stage: str | None
    cancelling: bool
    reason: str | None
    request: dict[str, Any]
    labels: tuple[str, ...]
    dataset: str
    cpus: float
    gpus: float
    attempt: int
    latency_table_id: str | None
    slot_ms: tuple[float, ...] | None
    last_event: int
    result: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: Progress


@dataclass(frozen=True)
class Created:
    """`is_new` is False when the idempotency key had made this search before."""

    search: Search
    is_new: bool


def create(
    connection: Connection,
    *,
    request: Mapping[str, Any],
    name: str,
    labels: Sequence[str],
    dataset: str,
    tokenizer: str | None = None,
    cpus: float,
    gpus: float,
    n_steps: int,
    idempotency_key: str | None = None,
    request_hash: str | None = None,
) -> Created:
    """A queued search, its first event and its idempotency key, in the caller's transaction.

    Args:
        request: with every default written out; plain JSON.
        labels: of the candidates, in the request's order.
        tokenizer: name of the uploaded tokenizer that it needs, if any.
        cpus, gpus: what one trial takes; the queue admits by it.
        n_steps: weight updates planned over all trials, for the progress; a guess is fine.
        idempotency_key: the client's; the same key with the same hash returns the first search.
        request_hash: sha256 of the body; required with a key.

    Raises:
        IdempotencyConflict: the key was used with another request_hash.
    """
    search_id = new_id()
    if idempotency_key is not None:
        if request_hash is None:
            raise ValueError("an idempotency key needs the hash of its request")
        first = _take_key(connection, idempotency_key, request_hash, search_id)
        if first is not None:
            return Created(get(connection, first), is_new=False)
    connection.execute(
        insert(searches).values(
            id=search_id,
            name=name,
            state="queued",
            cancelling=False,
            dataset=dataset,
            tokenizer=tokenizer,
            cpus=cpus,
            gpus=gpus,
            n_steps=n_steps,
            attempt=0,
            fruitless_attempts=0,
            last_event=0,
            lease_token=0,
            created_at=clock.now(),
            queued_at=clock.now(),
            claimed_step=0,
            labels=[*labels],
            request=dict(request),
        )
    )
    events.append_unfenced(connection, search_id, [("queued", {})])
    return Created(get(connection, search_id), is_new=True)


def _take_key(connection: Connection, key: str, request_hash: str, search_id: str) -> str | None:
    """The search that the key already stands for; None once it is ours."""
    first = None
    while first is None:
        taken = connection.scalar(
            insert_into(connection, idempotency_keys)
            .values(key=key, search_id=search_id, request_hash=request_hash, created_at=clock.now())
            .on_conflict_do_nothing(index_elements=["key"])
            .returning(idempotency_keys.c.key)
        )
        if taken is not None:
            return None
        # Locked, so that its search is not deleted before we have read it; if it was just now, the key is free again.
        known = select(idempotency_keys).where(idempotency_keys.c.key == key).with_for_update(read=True)
        first = connection.execute(known).one_or_none()
    if first.request_hash != request_hash:
        raise IdempotencyConflict(
            f"idempotency key {key!r} was used for another request (search {first.search_id}); take a new key"
        )
    found: str = first.search_id
    return found


def get(connection: Connection, search_id: str) -> Search:
    """One search, with its progress; one statement.

    Raises:
        NotFound: no such search.
    """
    row = connection.execute(_SELECT_ONE, {"search_id": search_id}).one_or_none()
    if row is None:
        raise NotFound(f"no search {search_id!r}")
    return _search(row)


def of_trials(column: ColumnElement[int]) -> ColumnElement[int]:
    """The column's sum over the trials of the search in the outer statement."""
    total = select(func.coalesce(func.sum(column), 0)).where(trials.c.search_id == searches.c.id)
    return total.correlate(searches).scalar_subquery()


# A trial that was cancelled for a reason was given up, and is not begun again; one that its search's end cut off is.
_IS_OVER = or_(trials.c.state == "succeeded", and_(trials.c.state == "cancelled", trials.c.reason.is_not(None)))
_DONE = case((or_(_IS_OVER, trials.c.step > trials.c.n_steps), trials.c.n_steps), else_=trials.c.step)

# Built once: putting the statement together costs more than running it.
_SELECT: Select[Any] = select(
    searches,
    of_trials(trials.c.step).label("trials_step"),
    of_trials(_DONE).label("trials_done"),
    of_trials(trials.c.n_steps).label("trials_n_steps"),
    clock.now().label("now"),
)
_SELECT_ONE = _SELECT.where(searches.c.id == bindparam("search_id"))
_SELECT_MANY = _SELECT.with_only_columns(
    *(null().label("result") if column.key == "result" else column for column in _SELECT.selected_columns)
)


def _search(row: Row[Any]) -> Search:
    return Search(
        id=row.id,
        name=row.name,
        state=row.state,
        stage=row.stage,
        cancelling=row.cancelling,
        reason=row.reason,
        request=row.request,
        labels=tuple(row.labels),
        dataset=row.dataset,
        cpus=row.cpus,
        gpus=row.gpus,
        attempt=row.attempt,
        latency_table_id=row.latency_table_id,
        slot_ms=None if row.slot_ms is None else tuple(row.slot_ms),
        last_event=row.last_event,
        result=row.result,
        created_at=clock.moment(row.created_at),
        started_at=clock.moment(row.started_at),
        finished_at=clock.moment(row.finished_at),
        progress=_progress(row),
    )


def _progress(row: Row[Any]) -> Progress:
    step = int(row.trials_done)
    n_steps = max(row.n_steps, int(row.trials_n_steps))
    if row.state == "succeeded":
        return Progress(step, n_steps, 1.0, 0.0)
    share = step / n_steps if n_steps else 0.0
    if row.state != "running":
        return Progress(step, n_steps, share, None)
    # The speed of this attempt: earlier ones ended at some time that nobody knows. By what was really done: the updates
    # that a trial was spared are no speed, or the time left would grow again behind it.
    steps_since, seconds = int(row.trials_step) - row.claimed_step, row.now - row.claimed_at
    eta_s = (n_steps - step) * seconds / steps_since if steps_since > 0 else None
    return Progress(step, n_steps, share, eta_s)


def list(
    connection: Connection,
    *,
    state: str | None = None,
    dataset: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[Search]:
    """Newest first, without their results, which are long.

    Raises:
        InvalidCursor: the cursor was not handed out by this function.
    """
    limit = paging.clamp(limit)
    statement = _SELECT_MANY.order_by(searches.c.id.desc()).limit(limit + 1)
    if state is not None:
        statement = statement.where(searches.c.state == state)
    if dataset is not None:
        statement = statement.where(searches.c.dataset == dataset)
    if cursor is not None:
        statement = statement.where(searches.c.id < paging.decode(cursor, [str])[0])
    found = [_search(row) for row in connection.execute(statement)]
    return paging.page(found, limit, lambda search: [search.id])


def cancel(connection: Connection, search_id: str) -> Search:
    """Ask for the end: a queued search is cancelled at once, a running one becomes `cancelling`. Idempotent.

    Raises:
        NotFound: no such search.
        WrongState: it has succeeded or failed.
    """
    row = _locked(connection, search_id)
    if row.state in ("succeeded", "failed"):
        raise WrongState(f"search {search_id} has {row.state}; only a queued or running search can be cancelled")
    if row.state == "queued":
        change(
            connection,
            search_id,
            state="cancelled",
            finished_at=clock.now(),
            lease_token=searches.c.lease_token + 1,
        )
        closed = _close_trials(connection, search_id, _WAITING, "cancelled")
        events.append_unfenced(connection, search_id, [*closed, ("cancelled", {})])
    elif row.state == "running" and not row.cancelling:
        change(connection, search_id, cancelling=True)
        events.append_unfenced(connection, search_id, [("cancelling", {})])
    return get(connection, search_id)


def _locked(connection: Connection, search_id: str) -> Row[Any]:
    """The row, which nobody else changes until the transaction ends (on SQLite it is the only writer anyway)."""
    row = connection.execute(select(searches).where(searches.c.id == search_id).with_for_update()).one_or_none()
    if row is None:
        raise NotFound(f"no search {search_id!r}")
    return row


def change(connection: Connection, search_id: str, **values: Any) -> None:
    """Change the row; callers hold the fence or the row's lock."""
    connection.execute(update(searches).where(searches.c.id == search_id).values(**values))


def _close_trials(
    connection: Connection, search_id: str, open_states: Sequence[str], state: str
) -> Sequence[events.Entry]:
    """Move trials in one of the open states to `state`; returns their events."""
    statement = (
        update(trials)
        .where(trials.c.search_id == search_id, trials.c.state.in_(open_states))
        .values(state=state, finished_at=clock.now())
        .returning(trials.c.id, trials.c.kind, trials.c.sample, trials.c.seed)
    )
    closed = sorted(connection.execute(statement), key=lambda row: (row.kind == "retrain", row.sample, row.seed))
    return [
        (
            "trial",
            {"trial": row.id, "kind": row.kind, "sample": row.sample, "seed": row.seed, "state": state, "reason": None},
        )
        for row in closed
    ]


def resume(connection: Connection, search_id: str) -> Search:
    """Queue a failed or cancelled search again; it goes on from its acknowledged checkpoints. Idempotent.

    Raises:
        NotFound: no such search.
        WrongState: it has succeeded, or is being cancelled.
    """
    row = _locked(connection, search_id)
    if row.state == "succeeded":
        raise WrongState(f"search {search_id} has succeeded; only a failed or cancelled search can be resumed")
    if row.cancelling:
        raise WrongState(f"search {search_id} is being cancelled; resume it once it is cancelled")
    if row.state in ("failed", "cancelled"):
        change(
            connection,
            search_id,
            state="queued",
            stage=None,
            reason=None,
            fruitless_attempts=0,
            queued_at=clock.now(),
            finished_at=None,
        )
        events.append_unfenced(connection, search_id, [("queued", {})])
    return get(connection, search_id)


def delete(connection: Connection, search_id: str) -> None:
    """Delete a finished search with all its rows; its files are the caller's.

    Raises:
        NotFound: no such search.
        WrongState: it is queued or running.
    """
    row = _locked(connection, search_id)
    if row.state not in TERMINAL:
        raise WrongState(f"search {search_id} is {row.state}; cancel it before you delete it")
    connection.execute(delete_from(searches).where(searches.c.id == search_id))


def set_stage(connection: Connection, lease: Lease, stage: str) -> None:
    """Event `stage`, unless the search is in this stage already.

    Raises:
        LeaseLost
        ValueError: not one of STAGES.
    """
    if stage not in STAGES:
        raise ValueError(f"unknown stage {stage!r}; known: {', '.join(STAGES)}")
    fence(connection, lease)
    if connection.scalar(select(searches.c.stage).where(searches.c.id == lease.search_id)) != stage:
        change(connection, lease.search_id, stage=stage)
        events.append(connection, lease, [("stage", {"stage": stage})])


def set_inputs(
    connection: Connection, lease: Lease, *, request: Mapping[str, Any], latency_table_id: str, slot_ms: Sequence[float]
) -> None:
    """Store the request with the data set's fingerprint and the table's id in it. Event `latency_table` {id}.

    Args:
        slot_ms: (K,) milliseconds that each label adds to a network by the table, for the view of cells.

    Raises:
        LeaseLost
    """
    events.append(connection, lease, [("latency_table", {"id": latency_table_id})])
    change(
        connection,
        lease.search_id,
        request=dict(request),
        latency_table_id=latency_table_id,
        slot_ms=[float(each) for each in slot_ms],
    )


def set_result(connection: Connection, lease: Lease, result: Mapping[str, Any]) -> None:
    """Store what result.json holds. Event `result`.

    Raises:
        LeaseLost
    """
    events.append(connection, lease, [("result", {})])
    change(connection, lease.search_id, result=dict(result))


def finish(
    connection: Connection,
    lease: Lease,
    state: Literal["succeeded", "failed", "cancelled"],
    *,
    reason: str | None = None,
) -> None:
    """End a running search and give the lease back; trials still open become `cancelled`.

    Args:
        reason: required for failed: one line that a person can act on.

    Raises:
        LeaseLost
        ValueError: failed without a reason, or not a terminal state.
    """
    if state not in TERMINAL:
        raise ValueError(f"a search cannot finish as {state!r}; known: {', '.join(TERMINAL)}")
    if state == "failed" and not reason:
        raise ValueError("a failed search needs a reason that a person can act on")
    release(connection, lease, state, reason, running_trials="cancelled")


def release(connection: Connection, lease: Lease, state: str, reason: str | None, *, running_trials: str) -> None:
    """Out of running: trials, events, the new state, and a new token, so that the old runner writes nothing more."""
    fence(connection, lease)
    closed = [*_close_trials(connection, lease.search_id, _WAITING, "cancelled")] if state in TERMINAL else []
    closed += _close_trials(connection, lease.search_id, ("running",), running_trials)
    kind = "requeued" if state == "queued" else state
    events.append(connection, lease, [*closed, (kind, {"reason": reason})])
    change(
        connection,
        lease.search_id,
        state=state,
        reason=reason if state in TERMINAL else None,
        cancelling=False,
        lease_token=searches.c.lease_token + 1,
        lease_owner=None,
        lease_expires_at=None,
        finished_at=clock.now() if state in TERMINAL else None,
        # a failed or cancelled search shows where it ended
        stage=None if state in ("queued", "succeeded") else searches.c.stage,
    )
