"""What trials report: one row per (trial, step), typed columns for the curves and JSON for softmax(alpha).

L slots, K candidates. Values that are not finite are stored as NULL, and a warning event says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection

from db.lease import Lease
from db.paging import Page

# Equal whenever a step is executed again on the same device; `tokens_per_s` is a rate and may differ.
DETERMINISTIC = (
    "train_loss",
    "val_loss",
    "val_loss_soft",
    "val_loss_argmax",
    "tau",
    "expected_ms",
    "entropy",
    "probabilities",
    "null_gaps",
    "updates",
)


class Record(Protocol):
    """What a step record must carry: `nas.steps.StepRecord` does. See there for units."""

    @property
    def step(self) -> int: ...
    @property
    def train_loss(self) -> float | None: ...
    @property
    def val_loss(self) -> float | None: ...
    @property
    def val_loss_soft(self) -> float | None: ...
    @property
    def val_loss_argmax(self) -> float | None: ...
    @property
    def tau(self) -> float | None: ...
    @property
    def expected_ms(self) -> float | None: ...
    @property
    def entropy(self) -> float | None: ...
    @property
    def tokens_per_s(self) -> float | None: ...
    @property
    def probabilities(self) -> list[list[float]] | None: ...
    @property
    def null_gaps(self) -> list[float] | None: ...
    @property
    def updates(self) -> list[list[int]] | None: ...


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
        raise NotImplementedError


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
    train_loss: float | None
    val_loss: float | None
    val_loss_soft: float | None
    val_loss_argmax: float | None
    tau: float | None
    expected_ms: float | None
    entropy: float | None
    tokens_per_s: float | None
    created_at: datetime


@dataclass(frozen=True)
class Matrices:
    """The JSON columns of a row: probabilities (L, K), null_gaps (L,), updates (L, K); a cell that was not finite is None."""

    trial_id: str
    step: int
    probabilities: list[list[float | None]] | None
    null_gaps: list[float | None] | None
    updates: list[list[int | None]] | None


def insert(connection: Connection, lease: Lease, new: Sequence[NewReport]) -> Inserted:
    """Write a batch, of any trials of the search; a step that is there already stays as it is.

    Events: one `reports` {trial, first_step, last_step} for each run of new steps of a trial, and warnings. Repeated
    steps have no second event. `trials.step` follows.

    Raises:
        LeaseLost
        NotFound: a trial that is not of this search.
    """
    raise NotImplementedError


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
    raise NotImplementedError


def between(connection: Connection, trial_id: str, first_step: int, last_step: int) -> list[tuple[Report, Matrices]]:
    """The rows of a `reports` event, in order of steps."""
    raise NotImplementedError


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
    """softmax(alpha) as reported, ordered by trial and step; rows without a matrix (retraining) are left out. As `of_search`."""
    raise NotImplementedError


def newest(connection: Connection, trial_id: str) -> tuple[Report, Matrices] | None:
    """The last reported step of a trial: what architectures are derived from."""
    raise NotImplementedError
