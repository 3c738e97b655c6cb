"""What each verb of a search hands to the next. L slots, K candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas.architecture import Architecture
from nas.compare import QualityDifference
from nas.config import SearchRequest, Task
from nas.cost import LatencyTable
from nas.measure import PairedLatency
from nas.metrics import Outcome
from nas.retrain import RetrainResult
from nas.steps import StepRecord
from workers.data import Prepared
from workers.samples import Told
from workers.store import Saved


@dataclass(frozen=True)
class Inputs:
    """What the trials get: the request with the data's sizes and the table filled in, the table, and the data.

    Args:
        request: complete.
        table: latency of each candidate at the first serve mode.
        data: the encoded data.
        tables: of every serve mode, in the request's order.
        estimate: memory_bytes, seconds and prune_seconds of a search trial, or why there is none as `reason`.
    """

    request: SearchRequest
    table: LatencyTable
    data: Prepared
    tables: Sequence[LatencyTable]
    estimate: Mapping[str, Any]


@dataclass(frozen=True)
class Searched:
    """The finished searches of the best sample.

    Args:
        sample: its number.
        values: its hyper-parameters by JSON pointer.
        last: the last record of each seed.
        told: what came of every sample, in order.
        cut_short: a line for each seed that max_minutes ended.
    """

    sample: int
    values: Mapping[str, float]
    last: Mapping[int, StepRecord]
    told: Sequence[Told] = ()
    cut_short: Sequence[str] = ()


@dataclass(frozen=True)
class Derived:
    """One architecture with where it comes from, as result.json lists it.

    Args:
        id: in the store.
        role: argmax, budget, parent or present.
        seed: of the search it was derived from; None for a baseline.
    """

    id: str
    role: str
    architecture: Architecture
    entry: dict[str, Any]
    seed: int | None


@dataclass(frozen=True)
class Retrained:
    """One architecture after its retraining, a result and a checkpoint per seed.

    Args:
        lr: that it was trained with.
        trials: their ids in the store, seeds in order.
        cut_short: a line for each seed that max_minutes ended.
    """

    derived: Derived
    results: Mapping[int, RetrainResult]
    checkpoints: Mapping[int, Saved]
    lr: float
    trials: Sequence[str]
    cut_short: Sequence[str] = ()

    @property
    def val_loss(self) -> float:
        return float(np.mean([result.val_loss for result in self.results.values()]))

    @property
    def in_order(self) -> list[RetrainResult]:
        """Of each seed, seeds in order."""
        return [result for _, result in sorted(self.results.items())]

    def test_nats(self, task: Task) -> NDArray[np.float64]:
        """(S, N) nats per unit of the task's quality, seeds in order."""
        return np.array([result.test_nats for result in self.in_order]) / task.units_per_token

    @property
    def outcomes(self) -> list[Outcome]:
        """What metrics are of, seeds in order."""
        return [Outcome(float(np.mean(each.test_nats)), each.confusion) for each in self.in_order]

    @property
    def positions(self) -> list[float | None]:
        """(T,) mean test nats per token of each position over the seeds; None where none is scored."""
        rows = zip(*(each.test_positions for each in self.in_order), strict=True)
        return [None if None in row else float(np.mean(row)) for row in rows]

    @property
    def best(self) -> Saved:
        """The checkpoint of the seed that validates best."""
        return self.checkpoints[min(self.results, key=lambda seed: (self.results[seed].val_loss, seed))]


@dataclass(frozen=True)
class Trained:
    """All that a search has retrained.

    Args:
        layouts: by name: `derived`, the one that validates best, then `derived 2` and so on, then the baselines, and
            `teacher` where there was one.
        parent: what the derived one is held against first; None without one.
        power: what the comparisons could show, as it was told before they ran (`workers.stages.power`).
    """

    layouts: Mapping[str, Retrained]
    parent: Retrained | None
    power: Sequence[Mapping[str, Any]]

    @property
    def derived(self) -> Retrained:
        return self.layouts["derived"]

    @property
    def runners_up(self) -> list[str]:
        """Names of the derived ones that validate less well."""
        return [name for name in self.layouts if name.startswith("derived ")]


@dataclass(frozen=True)
class Comparison:
    """Derived against parent: quality on test, latency in turns in one process.

    Args:
        quality: at the length of training.
        latencies: of each serve mode, in the request's order.
        against: what the derived one is held against, in words.
    """

    quality: QualityDifference
    latencies: list[PairedLatency]
    against: str

    @property
    def latency(self) -> PairedLatency:
        """At the first serve mode, which the budget holds for."""
        return self.latencies[0]
