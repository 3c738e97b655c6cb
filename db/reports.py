"""What trials report: one row per (trial, step), typed columns for the curves and JSON for softmax(alpha).

L slots, K candidates. Values that are not finite are stored as NULL, and a warning event says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Column, Connection, Row, Select, func, null, or_, select, tuple_, update

from db import clock, events, paging
from db.engine import insert_into
from db.errors import NotFound
from db.lease import Lease, fence
from db.models import reports, trials
from db.paging import Page
from db.stored import text

_SCALARS = (
    "train_loss",
    "val_loss",
    "val_loss_soft",
    "val_loss_argmax",
    "val_loss_sampled",
    "tau",
    "expected_ms",
    "entropy",
    "identity_share",
    "alpha_velocity",
    "dual",
    "tokens_per_s",
)
_WORDS = ("phase", "warning", "not_learnt", "cut_short")
_MATRICES = (
    "probabilities",
    "null_gaps",
    "updates",
    "z",
    "path",
    "effect_nats",
    "effect_se",
    "finalists",
    "finalist_nats",
)

# Equal whenever a step is executed again on the same device. `tokens_per_s` is a rate, and max_minutes may end a trial
# at another step, which then says so.
_BY_THE_CLOCK = ("tokens_per_s", "warning", "not_learnt", "cut_short")
DETERMINISTIC = tuple(name for name in (*_WORDS, *_SCALARS, *_MATRICES) if name not in _BY_THE_CLOCK)


class Record(Protocol):
    """What a step record must carry: `nas.steps.StepRecord` does. See there for units."""

    @property
    def step(self) -> int: ...
    @property
    def phase(self) -> str | None: ...
    @property
    def train_loss(self) -> float | None: ...
    @property
    def val_loss(self) -> float | None: ...
    @property
    def val_loss_soft(self) -> float | None: ...
    @property
    def val_loss_argmax(self) -> float | None: ...
    @property
    def val_loss_sampled(self) -> float | None: ...
    @property
    def tau(self) -> float | None: ...
    @property
    def expected_ms(self) -> float | None: ...
    @property
    def entropy(self) -> float | None: ...
    @property
    def identity_share(self) -> float | None: ...
    @property
    def alpha_velocity(self) -> float | None: ...
    @property
    def dual(self) -> float | None: ...
    @property
    def tokens_per_s(self) -> float | None: ...
    @property
    def probabilities(self) -> list[list[float]] | None: ...
    @property
    def null_gaps(self) -> list[float] | None: ...
    @property
    def updates(self) -> list[list[int]] | None: ...
    @property
    def z(self) -> list[list[float]] | None: ...
    @property
    def path(self) -> list[int] | None: ...
    @property
    def effect_nats(self) -> list[list[float | None]] | None: ...
    @property
    def effect_se(self) -> list[list[float | None]] | None: ...
    @property
    def finalists(self) -> list[list[int]] | None: ...
    @property
    def finalist_nats(self) -> list[float] | None: ...
    @property
    def warning(self) -> str | None: ...
    @property
    def not_learnt(self) -> str | None: ...
    @property
    def cut_short(self) -> str | None: ...


@dataclass(frozen=True)
class NewReport:
    """`device`: fingerprint of the device that executed the step (short text), to judge a difference by."""

    trial_id: str
    record: Record
    device: str | None = None


@dataclass(frozen=True)
class Conflict:
    """A step executed again with another outcome. `differing`: column -> (stored, repeated). The stored row stays.

    On the same device the trial must fail; on another one a warning event says so.
    """

    trial_id: str
    step: int
    differing: dict[str, tuple[Any, Any]]
    same_device: bool

    def __str__(self) -> str:
        """One line for a reason or a warning."""
        if "phase" in self.differing and self.differing["phase"][0] is None:
            return (
                f"step {self.step} was reported by an older version of Blockwright, whose steps this one cannot "
                "repeat; submit the search again"
            )
        parts = [
            name if name in _MATRICES else f"{name} was {stored}, now {repeated}"
            for name, (stored, repeated) in self.differing.items()
        ]
        device = "the same device" if self.same_device else "another device"
        return f"step {self.step} executed again on {device} gave another outcome: {'; '.join(parts)}"


@dataclass(frozen=True)
class Inserted:
    """`n_new` rows were new; repeated ones that agree count nowhere."""

    n_new: int
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True)
class Report:
    """The typed columns of a row: what curves are drawn from."""

    trial_id: str
    step: int
    phase: str | None
    train_loss: float | None
    val_loss: float | None
    val_loss_soft: float | None
    val_loss_argmax: float | None
    val_loss_sampled: float | None
    tau: float | None
    expected_ms: float | None
    entropy: float | None
    identity_share: float | None
    alpha_velocity: float | None
    dual: float | None
    tokens_per_s: float | None
    warning: str | None
    not_learnt: str | None
    cut_short: str | None
    created_at: datetime


@dataclass(frozen=True)
class Matrices:
    """The JSON columns of a row: null_gaps and path (L,), finalists (F, L), their nats (F,), the others (L, K); None
    where not finite, or not tried."""

    trial_id: str
    step: int
    probabilities: list[list[float | None]] | None
    null_gaps: list[float | None] | None
    updates: list[list[int | None]] | None
    z: list[list[float | None]] | None
    path: list[int] | None
    effect_nats: list[list[float | None]] | None
    effect_se: list[list[float | None]] | None
    finalists: list[list[int]] | None
    finalist_nats: list[float | None] | None


def insert(connection: Connection, lease: Lease, new: Sequence[NewReport]) -> Inserted:
    """Write a batch, of any trials of the search; a step that is there already stays as it is.

    Events: one `reports` {trial, first_step, last_step} for each run of new steps of a trial, and warnings: the
    record's own, and of values that are not finite. Repeated steps have no second event. `trials.step` follows.

    Raises:
        LeaseLost
        NotFound: a trial that is not of this search.
    """
    fence(connection, lease)
    trial_ids = {report.trial_id for report in new}
    own = select(trials.c.id).where(trials.c.search_id == lease.search_id, trials.c.id.in_(trial_ids))
    for trial_id in trial_ids - set(connection.scalars(own)):
        raise NotFound(f"search {lease.search_id} has no trial {trial_id!r}")

    seen = _stored(connection, new)  # behind the fence nobody else adds rows
    fresh: list[dict[str, Any]] = []
    entries: list[events.Entry] = []
    conflicts = []
    for report in new:
        row, lost = _row(report)
        place = (report.trial_id, report.record.step)
        if place in seen:
            differing = {
                name: (seen[place][name], row[name]) for name in DETERMINISTIC if seen[place][name] != row[name]
            }
            if differing:
                conflicts.append(Conflict(*place, differing, seen[place]["device"] == report.device))
            continue
        seen[place] = row
        fresh.append(row)
        entries += [_warning(report, line) for line in (row["warning"] or "").splitlines()]
        entries += [_not_finite(report, name, n) for name, n in lost.items() if n]
    if fresh:
        connection.execute(
            insert_into(connection, reports)
            .values(created_at=clock.now())
            .on_conflict_do_nothing(index_elements=["trial_id", "step"]),
            fresh,
        )
    for trial_id in trial_ids:
        steps = [row["step"] for row in fresh if row["trial_id"] == trial_id]
        if steps:
            connection.execute(
                update(trials).where(trials.c.id == trial_id, trials.c.step < max(steps)).values(step=max(steps))
            )
    events.append(connection, lease, [*_runs(new, fresh), *entries])
    return Inserted(len(fresh), tuple(conflicts))


def _stored(connection: Connection, new: Sequence[NewReport]) -> dict[tuple[str, int], Mapping[str, Any]]:
    """The rows that are there already for these steps."""
    found: dict[tuple[str, int], Mapping[str, Any]] = {}
    for trial_id in {report.trial_id for report in new}:
        steps = [report.record.step for report in new if report.trial_id == trial_id]
        chosen = (reports.c.trial_id == trial_id, reports.c.step.between(min(steps), max(steps)))
        for row in connection.execute(select(reports).where(*chosen)):
            found[row.trial_id, row.step] = dict(row._mapping)
    return found


def _row(report: NewReport) -> tuple[dict[str, Any], dict[str, int]]:
    """The columns of a report, and how many values of each were not finite."""
    record = report.record
    row: dict[str, Any] = {"trial_id": report.trial_id, "step": record.step, "device": report.device}
    for name in _WORDS:
        words = getattr(record, name)
        row[name] = None if words is None else text(words)  # as it will be read, to be compared with
    lost = {}
    for name in (*_SCALARS, *_MATRICES):
        row[name], lost[name] = _finite(getattr(record, name))
    return row, lost


def _finite(value: Any) -> tuple[Any, int]:
    """The value with None for each number that is not finite, and how many there were: JSON has no NaN."""
    if value is None or isinstance(value, int):
        return value, 0
    if isinstance(value, Sequence):
        cells = [_finite(cell) for cell in value]
        return [cell for cell, _ in cells], sum(n for _, n in cells)
    number = float(value)
    return (number, 0) if math.isfinite(number) else (None, 1)


def _not_finite(report: NewReport, name: str, n: int) -> events.Entry:
    values = "value" if n == 1 else "values"
    return _warning(report, f"{n} {values} of {name} at step {report.record.step} not finite; stored as null")


def _warning(report: NewReport, message: str) -> events.Entry:
    return "warning", {"message": message, "trial": report.trial_id, "step": report.record.step}


def _runs(new: Sequence[NewReport], fresh: Sequence[Mapping[str, Any]]) -> list[events.Entry]:
    """One `reports` event per run of new steps: a range never covers a step that an earlier event told of."""
    told = {(row["trial_id"], row["step"]) for row in fresh}
    entries: list[events.Entry] = []
    for trial_id in dict.fromkeys(report.trial_id for report in new):
        steps = sorted({report.record.step for report in new if report.trial_id == trial_id})
        run: list[int] = []
        for step in [*steps, None]:
            if step is not None and (trial_id, step) in told:
                run.append(step)
            elif run:
                entries.append(("reports", {"trial": trial_id, "first_step": run[0], "last_step": run[-1]}))
                run = []
    return entries


def of_search(
    connection: Connection,
    search_id: str,
    *,
    trial_id: str | None = None,
    first_step: int = 0,
    last_step: int | None = None,
    stride: int = 1,
    limit: int = 1000,
    cursor: str | None = None,
) -> Page[Report]:
    """Curves, ordered by trial and step.

    Args:
        stride: only steps that it divides, and each trial's newest.

    Raises:
        InvalidCursor
    """
    limit = paging.clamp(limit)
    columns = [reports.c[name] for name in ("trial_id", "step", *_SCALARS, *_WORDS, "created_at")]
    statement = _curve(columns, search_id, trial_id, first_step, last_step, stride, cursor).limit(limit + 1)
    found = [_report(row) for row in connection.execute(statement)]
    return paging.page(found, limit, lambda report: [report.trial_id, report.step])


def _curve(
    columns: Sequence[Column[Any]],
    search_id: str,
    trial_id: str | None,
    first_step: int,
    last_step: int | None,
    stride: int,
    cursor: str | None,
) -> Select[Any]:
    statement = (
        select(*columns)
        .join(trials, trials.c.id == reports.c.trial_id)
        .where(trials.c.search_id == search_id, reports.c.step >= first_step)
        .order_by(reports.c.trial_id, reports.c.step)
    )
    if trial_id is not None:
        statement = statement.where(reports.c.trial_id == trial_id)
    if last_step is not None:
        statement = statement.where(reports.c.step <= last_step)
    if stride > 1:
        statement = statement.where(or_(reports.c.step % stride == 0, reports.c.step == trials.c.step))
    if cursor is not None:
        place = paging.decode(cursor, [str, int])
        statement = statement.where(tuple_(reports.c.trial_id, reports.c.step) > tuple_(*place))
    return statement


def _report(row: Row[Any]) -> Report:
    columns = {name: getattr(row, name) for name in (*_SCALARS, *_WORDS)}
    return Report(trial_id=row.trial_id, step=row.step, **columns, created_at=clock.moment(row.created_at))


def _matrices(row: Row[Any]) -> Matrices:
    return Matrices(row.trial_id, row.step, **{name: getattr(row, name) for name in _MATRICES})


def between(connection: Connection, trial_id: str, first_step: int, last_step: int) -> list[tuple[Report, Matrices]]:
    """The rows of a `reports` event, in order of steps."""
    statement = (
        select(reports)
        .where(reports.c.trial_id == trial_id, reports.c.step.between(first_step, last_step))
        .order_by(reports.c.step)
    )
    return [(_report(row), _matrices(row)) for row in connection.execute(statement)]


def probabilities(
    connection: Connection,
    search_id: str,
    *,
    trial_id: str | None = None,
    first_step: int = 0,
    last_step: int | None = None,
    stride: int = 1,
    limit: int = 1000,
    cursor: str | None = None,
) -> Page[Matrices]:
    """softmax(alpha) and what stands beside it, as reported, by trial and step, with the arguments of `of_search`.

    Rows without a matrix (retraining) are left out.
    """
    limit = paging.clamp(limit)
    columns = [reports.c[name] for name in ("trial_id", "step", *_MATRICES)]
    statement = (
        _curve(columns, search_id, trial_id, first_step, last_step, stride, cursor)
        .where(reports.c.probabilities.is_not(null()))
        .limit(limit + 1)
    )
    found = [_matrices(row) for row in connection.execute(statement)]
    return paging.page(found, limit, lambda matrices: [matrices.trial_id, matrices.step])


def newest(connection: Connection, trial_id: str) -> tuple[Report, Matrices] | None:
    """The last reported step of a trial: what architectures are derived from."""
    row = connection.execute(
        select(reports).where(reports.c.trial_id == trial_id).order_by(reports.c.step.desc()).limit(1)
    ).one_or_none()
    return None if row is None else (_report(row), _matrices(row))


def tokens_per_s(connection: Connection, search_id: str, kind: str) -> float | None:
    """Training tokens per second over all reports of a search's trials of this kind; None where none has told.

    Reports lie equally many weight updates apart, so the rate over all of them is the harmonic mean.
    """
    statement = (
        select(func.count(), func.sum(1.0 / reports.c.tokens_per_s))
        .join(trials, trials.c.id == reports.c.trial_id)
        .where(trials.c.search_id == search_id, trials.c.kind == kind, reports.c.tokens_per_s > 0)
    )
    n, seconds = connection.execute(statement).one()
    return n / float(seconds) if n else None
