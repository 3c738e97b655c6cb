"""Running planned trials from what is there of them, and what is left when they have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas import guards
from nas.architecture import Architecture
from nas.config import SearchRequest
from nas.errors import SearchFailed
from nas.steps import StepRecord
from workers.stages.passed_on import Inputs
from workers.store import Planned, Saved, Store, TrialKey
from workers.trainable import TrialSpec
from workers.trials import TrialRunner


@dataclass(frozen=True)
class Beginning:
    """What retrainings of a seed begin with beside their data; see `TrialSpec`."""

    supernet: str | None = None
    teacher: Mapping[str, Any] | None = None


def run(
    inputs: Inputs,
    planned: Sequence[Planned],
    architectures: Mapping[int, Architecture],
    store: Store,
    trials: TrialRunner,
    beginnings: Mapping[int, Beginning],
) -> dict[str, str]:
    """Run retrainings that have not ended yet, each from its newest checkpoint; returns why trials failed.

    Args:
        inputs: of the search.
        planned: all of them.
        architectures: by the number of the retraining.
        store: where they are kept.
        trials: runs them.
        beginnings: by seed.

    Returns:
        Reasons by `str(key)`.
    """
    store.plan(planned)
    return go_on(inputs, planned, architectures, {}, store, trials, beginnings)


def go_on(
    inputs: Inputs,
    planned: Sequence[Planned],
    architectures: Mapping[int, Architecture],
    until: Mapping[int, int | None],
    store: Store,
    trials: TrialRunner,
    beginnings: Mapping[int, Beginning] | None = None,
) -> dict[str, str]:
    """As `run`, of trials that the store knows.

    Args:
        until: by sample, the weight update from which on its trials wait at their next report; None: they end.
    """
    specs = []
    for each in planned:
        newest = store.newest(each.key)
        store.tidy(each.key)
        stop = until.get(each.key.sample)
        if newest is not None and (newest.last or (stop is not None and newest.step >= stop)):
            continue
        folder = store.folder / "trials" / str(each.key) / f"attempt-{store.attempt}"
        # Made here and not by the trial: one that outlives its search must not bring back a folder that was deleted.
        folder.mkdir(parents=True, exist_ok=True)
        architecture = architectures.get(each.key.sample)
        beginning = (beginnings or {}).get(each.key.seed, Beginning())
        specs.append(
            TrialSpec(
                key=each.key,
                request=inputs.request.resolve(each.values, each.key.seed).model_dump(mode="json"),
                table=inputs.table.model_dump(mode="json") if architecture is None else None,
                architecture=architecture.to_json() if architecture is not None else None,
                data=None if inputs.data.folder is None else str(inputs.data.folder),
                folder=str(folder),
                resume=str(newest.path) if newest is not None else None,
                until=stop,
                supernet=beginning.supernet,
                teacher=beginning.teacher,
            )
        )
    failures = trials.run(specs, store) if specs else {}
    for spec in specs:
        store.tidy(spec.key)
    return failures


def seeds_of(request: SearchRequest, n: int) -> list[int]:
    return [request.trials.seed + number for number in range(n)]


def cut_short(key: TrialKey, last: StepRecord) -> list[str]:
    """A line for a trial that its wall time ended, which has warned of it itself."""
    reason = guards.cut_short(last)
    return [] if reason is None else [f"trial {key}: {reason}"]


def finished(store: Store, key: TrialKey) -> Saved:
    saved = store.newest(key)
    if saved is None or not saved.last:
        raise SearchFailed(
            f"the last checkpoint of trial {key} is missing or damaged; resume the search to train it again"
        )
    return saved
