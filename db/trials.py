"""Trials of a search: (kind, sample, seed), each one supernet search or one retraining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from db import clock, events
from db.errors import NotFound
from db.ids import new_id
from db.lease import Lease, fence
from db.models import trials

RESTING = ("succeeded", "failed", "cancelled", "lost", "pre-empted")  # the other states: queued, running


@dataclass(frozen=True)
class Trial:
    """One supernet search or one retraining.

    Args:
        kind: search, or retrain.
        sample: which hyper-parameter sample, or of a retraining which architecture; from 0.
        seed: its own seed.
        params: the sample's values by JSON pointer.
        architecture_id: what is retrained; None for a search.
        step: newest reported step.
        n_steps: weight updates it will do.
        attempt: the search's attempt that it last started in; 0 before.
        device: fingerprint of the device it last started on.
        result: a small JSON object the runner keeps with it, such as {"val_loss": ...}.
    """

    id: str
    search_id: str
    kind: str
    sample: int
    seed: int
    state: str
    reason: str | None
    params: dict[str, Any]
    architecture_id: str | None
    step: int
    n_steps: int
    attempt: int
    device: str | None
    result: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True)
class NewTrial:
    """See `Trial`."""

    kind: str
    sample: int
    seed: int
    n_steps: int
    params: Mapping[str, Any]
    architecture_id: str | None = None


def ensure(connection: Connection, lease: Lease, wanted: Sequence[NewTrial]) -> list[Trial]:
    """The trials of these (kind, sample, seed), in the order asked for: existing ones as they are, new ones queued.

    A restarted runner asks again and gets the same ids. Event `trial` for each new one.

    Raises:
        LeaseLost
        ValueError: a trial is there already for another architecture or with other params.
    """
    fence(connection, lease)
    known = {(trial.kind, trial.sample, trial.seed): trial for trial in of_search(connection, lease.search_id)}
    ids = []
    entries: list[events.Entry] = []
    for new in wanted:
        trial = known.get((new.kind, new.sample, new.seed))
        if trial is not None:
            if (trial.architecture_id, trial.params) != (new.architecture_id, new.params):
                raise ValueError(
                    f"trial {new.kind} {new.sample} of seed {new.seed} is there for architecture"
                    f" {trial.architecture_id} and params {trial.params}, not {new.architecture_id} and {new.params}"
                )
            ids.append(trial.id)
            continue
        ids.append(new_id())
        connection.execute(
            insert(trials).values(
                id=ids[-1],
                search_id=lease.search_id,
                kind=new.kind,
                sample=new.sample,
                seed=new.seed,
                state="queued",
                architecture_id=new.architecture_id,
                step=0,
                n_steps=new.n_steps,
                attempt=0,
                created_at=clock.now(),
                params=dict(new.params),
            )
        )
        entries.append(_entry(ids[-1], new, "queued", None))
    events.append(connection, lease, entries)
    found = {trial.id: trial for trial in of_search(connection, lease.search_id)}
    return [found[trial_id] for trial_id in ids]


def _entry(trial_id: str, trial: Trial | NewTrial, state: str, reason: str | None) -> events.Entry:
    data = {"trial": trial_id, "kind": trial.kind, "sample": trial.sample, "seed": trial.seed}
    return "trial", {**data, "state": state, "reason": reason}


def start(connection: Connection, lease: Lease, trial_id: str, *, attempt: int, device: str | None = None) -> None:
    """Mark it running in this attempt of the search. Event `trial`.

    Raises:
        LeaseLost
        NotFound: the search has no such trial.
    """
    trial = own(connection, lease, trial_id)
    events.append(connection, lease, [_entry(trial_id, trial, "running", None)])
    connection.execute(
        update(trials)
        .where(trials.c.id == trial_id)
        .values(
            state="running",
            reason=None,
            attempt=attempt,
            device=device,
            started_at=clock.now() if trial.started_at is None else trials.c.started_at,
            finished_at=None,
        )
    )


def own(connection: Connection, lease: Lease, trial_id: str) -> Trial:
    """The trial, if it is of the lease's search.

    Raises:
        LeaseLost
        NotFound: the search has no such trial.
    """
    fence(connection, lease)
    trial = get(connection, trial_id)
    if trial.search_id != lease.search_id:
        raise NotFound(f"search {lease.search_id} has no trial {trial_id!r}")
    return trial


def finish(
    connection: Connection,
    lease: Lease,
    trial_id: str,
    state: str,
    *,
    reason: str | None = None,
    result: Mapping[str, Any] | None = None,
) -> None:
    """Any state but queued and running. Event `trial` {trial, kind, sample, seed, state, reason}.

    Raises:
        LeaseLost
        NotFound: the search has no such trial.
        ValueError: not a state in which a trial rests, or failed without a reason.
    """
    if state not in RESTING:
        raise ValueError(f"a trial cannot finish as {state!r}; known: {', '.join(RESTING)}")
    if state == "failed" and not reason:
        raise ValueError("a failed trial needs a reason that a person can act on")
    trial = own(connection, lease, trial_id)
    events.append(connection, lease, [_entry(trial_id, trial, state, reason)])
    connection.execute(
        update(trials)
        .where(trials.c.id == trial_id)
        .values(state=state, reason=reason, finished_at=clock.now(), result=None if result is None else dict(result))
    )


def of_search(connection: Connection, search_id: str, *, kind: str | None = None) -> list[Trial]:
    """In the order kind search before retrain, sample, seed; [] for an unknown search."""
    statement = (
        select(trials)
        .where(trials.c.search_id == search_id)
        .order_by(trials.c.kind.desc(), trials.c.sample, trials.c.seed)  # "search" sorts behind "retrain"
    )
    if kind is not None:
        statement = statement.where(trials.c.kind == kind)
    return [_trial(row) for row in connection.execute(statement)]


def _trial(row: Row[Any]) -> Trial:
    return Trial(
        id=row.id,
        search_id=row.search_id,
        kind=row.kind,
        sample=row.sample,
        seed=row.seed,
        state=row.state,
        reason=row.reason,
        params=row.params,
        architecture_id=row.architecture_id,
        step=row.step,
        n_steps=row.n_steps,
        attempt=row.attempt,
        device=row.device,
        result=row.result,
        created_at=clock.moment(row.created_at),
        started_at=clock.moment(row.started_at),
        finished_at=clock.moment(row.finished_at),
    )


def get(connection: Connection, trial_id: str) -> Trial:
    """Raises: NotFound: no such trial."""
    row = connection.execute(select(trials).where(trials.c.id == trial_id)).one_or_none()
    if row is None:
        raise NotFound(f"no trial {trial_id!r}")
    return _trial(row)
