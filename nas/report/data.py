"""What a report is made of: everything that a search has left, whoever kept it. L slots, K candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from nas.report import read

Item = TypeVar("Item")
Matrix = Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class Step:
    """The state of a trial after `step` weight updates; losses in nats per token. See `nas.steps.StepRecord`."""

    step: int
    train_loss: float | None = None
    val_loss: float | None = None
    val_loss_soft: float | None = None
    val_loss_argmax: float | None = None
    tau: float | None = None
    expected_ms: float | None = None
    probabilities: Matrix = ()  # (L, K), of some steps alone; () otherwise
    z: Matrix = ()  # (L, K) of each alpha's gradient; () where it was not told


@dataclass(frozen=True)
class Evidence:
    """What a search trial ends with, or has come to.

    Args:
        step: weight updates done.
        probabilities: softmax(alpha), (L, K).
        null_gaps: (L,) gap of log-probabilities that chance alone reaches; () of versions that told none.
        z: (L, K) of each alpha's gradient; () where it was not told.
        path: (L,) candidate of each slot that the parsimony pass holds; () without one.
        effect_nats: (L, K) rise of held-out loss with each candidate tried; () where none was.
        effect_se: (L, K) its standard error.
    """

    step: int
    probabilities: Matrix
    null_gaps: Sequence[float | None] = ()
    z: Matrix = ()
    path: Sequence[int] = ()
    effect_nats: Matrix = ()
    effect_se: Matrix = ()

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Evidence:
        """Of a step record, or of an entry of `probabilities` in result.json; what does not fit (L, K) is left out."""
        probabilities = read.matrix(found.get("probabilities"))
        shape = [len(row) for row in probabilities]

        def fitting(name: str) -> Matrix:
            value = read.matrix(found.get(name))
            return value if [len(row) for row in value] == shape else ()

        gaps, path = read.numbers(found.get("null_gaps")), read.wholes(found.get("path"))
        on_path = len(path) == len(shape) and all(0 <= own < width for own, width in zip(path, shape, strict=True))
        return cls(
            step=read.whole(found.get("step")) or 0,
            probabilities=probabilities,
            null_gaps=gaps if len(gaps) == len(shape) else (),
            z=fitting("z"),
            path=path if on_path else (),
            effect_nats=fitting("effect_nats"),
            effect_se=fitting("effect_se"),
        )


@dataclass(frozen=True)
class Trial:
    """One supernet search or one retraining.

    Args:
        architecture: id of what is retrained; None of a search, and where it is not known.
        steps: some of what it reported, first and last among it.
        evidence: of a search trial its newest report; None of a retraining.
    """

    id: str
    kind: str
    sample: int
    seed: int
    state: str
    n_steps: int | None = None
    reason: str | None = None
    architecture: str | None = None
    steps: tuple[Step, ...] = ()
    evidence: Evidence | None = None

    @property
    def name(self) -> str:
        return f"{self.kind} {self.sample}, seed {self.seed}"


@dataclass(frozen=True)
class KeptArchitecture:
    """A derived architecture or a baseline, as it was stored."""

    id: str
    role: str
    string: str
    trial: str | None = None
    slots: tuple[str, ...] = ()
    undecided: tuple[int, ...] = ()
    predicted_ms: float | None = None
    is_result: bool = False


@dataclass(frozen=True)
class KeptRule:
    """A rule as it was stored."""

    id: str
    statement: str
    verdict: str
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptTable:
    """A latency table; `body` is its JSON."""

    id: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class ReportData:
    """Everything behind a report.

    Args:
        search_id: its own.
        name: as the request has it.
        state: queued, running, succeeded, failed or cancelled.
        origin: where the figures can be read again: of a service by its addresses, of a folder in its files.
        request: with every default written out.
        result: what result.json holds; None before the end.
        stage: of a running search.
        reason: why it has failed.
        created_at: when it was submitted, RFC 3339; None of a folder.
        trials: in the order they were planned.
        tables: of each serve mode, the budget's first.
        warnings: told during the search, oldest first.
    """

    search_id: str
    name: str
    state: str
    origin: Literal["service", "folder"]
    request: Mapping[str, Any]
    result: Mapping[str, Any] | None = None
    stage: str | None = None
    reason: str | None = None
    created_at: str | None = None
    trials: tuple[Trial, ...] = ()
    architectures: tuple[KeptArchitecture, ...] = ()
    rules: tuple[KeptRule, ...] = ()
    tables: tuple[KeptTable, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def found(self) -> Mapping[str, Any]:
        """The result; empty before the end."""
        return self.result or {}


def evenly(found: Sequence[Item], most: int) -> tuple[Item, ...]:
    """At most `most` >= 2 of the items, the first and the last among them, equally far apart."""
    if len(found) <= most:
        return tuple(found)
    last = len(found) - 1
    return tuple(found[round(place * last / (most - 1))] for place in range(most))
