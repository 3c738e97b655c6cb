"""Compare: quality on test, paired by seed and window, and latency in turns, in each serve mode."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nas import catalog
from nas.advice import DERIVED, advise
from nas.budgets import counted
from nas.compare import QualityDifference, compare_quality
from nas.config.request import SearchRequest
from nas.config.task import Task
from nas.measure import PairedLatency, compare_latency
from nas.retrain import build
from nas.student import half_width
from workers.budget import INTERLEAVED, is_over
from workers.folder import write_json
from workers.stages.passed_on import Comparison, Inputs, Retrained, Trained
from workers.stages.power import bits_per_unit
from workers.store import Store
from workers.trainable import device_of
from workers.trials import TrialRunner

_LATENCY_ROUNDS = 200  # of the comparison that is reported
_FILE = "latency.json"  # in the search's folder


def compare(inputs: Inputs, trained: Trained, store: Store, trials: TrialRunner) -> Comparison | None:
    """Paired differences of the derived architecture against its parent; None without one.

    The timing is remembered in the folder: after a restart the export would have other bytes with other figures.
    """
    derived, parent = trained.derived, trained.parent
    if parent is None:
        return None
    modes = range(len(inputs.request.task.serve))
    latencies = _timed(inputs, derived, parent, modes, store, trials)
    against = "present model" if parent.derived.role == "present" else INTERLEAVED
    return Comparison(_quality(derived, parent, inputs.request.task), latencies, against)


def compare_layouts(
    inputs: Inputs,
    first: str,
    others: Iterable[str],
    layouts: Mapping[str, Retrained],
    store: Store,
    trials: TrialRunner,
    *,
    untimed: Collection[str] = (),
) -> list[dict[str, Any]]:
    """One layout against others, as result.json tells it: each difference with an interval of its own.

    Args:
        inputs: of the search.
        first: name of the layout in question.
        others: names of what it is held against.
        layouts: all of them, trained with the same seeds.
        store: where timings are remembered.
        trials: where they are made.
        untimed: names whose latency is not asked.

    Returns:
        Of each {"first", "second", "unit", "difference", "low", "high", "verdict", "n_seeds", "detectable",
        "latency"}; latency is {"ratio", "low", "high"} at the first serve mode, timed in turns; None: not timed.
    """
    task = inputs.request.task
    found = []
    for name in others:
        quality = _quality(layouts[first], layouts[name], task)
        modes = () if name in untimed else (0,)
        timed = _timed(inputs, layouts[first], layouts[name], modes, store, trials)
        found.append(
            {
                "first": first,
                "second": name,
                "unit": task.quality_unit,
                "difference": quality.mean_bits,
                "low": quality.low,
                "high": quality.high,
                "verdict": quality.verdict,
                "n_seeds": quality.n_seeds,
                "detectable": quality.detectable,
                "latency": next(({"ratio": each.ratio, "low": each.low, "high": each.high} for each in timed), None),
            }
        )
    return found


def what_to_take(inputs: Inputs, trained: Trained, comparisons: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Which layout to take, as result.json tells it (`nas.advice`); None where no other was trained.

    Its runners-up are left out: they lost on validation, and test is no second chance.

    Args:
        inputs: of the search.
        trained: all that was trained.
        comparisons: as `compare_layouts` gives them, of the derived one.
    """
    over = [
        name
        for name, each in trained.layouts.items()
        if is_over(inputs.request, inputs.table, each.derived.architecture)
    ]
    if any(bound["verdict"] == "over" for bound in trained.derived.derived.entry["bounds"]):
        over.append(DERIVED)  # timing has the last word, of it alone
    parent = next((name for name, each in trained.layouts.items() if each is trained.parent), None)
    found = advise([each for each in comparisons if each["second"] not in trained.runners_up], parent, over)
    return None if found is None else dataclasses.asdict(found)


def describe_layouts(inputs: Inputs, layouts: Mapping[str, Retrained]) -> list[dict[str, Any]]:
    """All that was retrained, as result.json tells it: quality by seed on validation and test, and what it costs.

    Losses are in the task's unit; low and high are the ends of the 95% t interval over seeds, None of one seed. What is
    counted is of the slots' blocks, at the first serve mode; cache_bytes is None where nothing is decoded, or a block
    does not tell.
    """
    return [_described(inputs, name, each) for name, each in layouts.items()]


def _described(inputs: Inputs, name: str, trained: Retrained) -> dict[str, Any]:
    request, own = inputs.request, trained.derived
    test = [bits_per_unit(float(sum(each.test_nats)) / len(each.test_nats), request.task) for each in trained.in_order]
    mean, half = sum(test) / len(test), half_width(test)
    return {
        "name": name,
        "role": own.role,
        "string": own.entry["string"],
        "slots": own.entry["slots"],
        "architecture": own.id,
        "trials": list(trained.trials),
        "lr": trained.lr,
        "seeds": sorted(trained.results),
        "val_loss": [bits_per_unit(each.val_loss, request.task) for each in trained.in_order],
        "test": test,
        "mean": mean,
        "low": None if half is None else mean - half,
        "high": None if half is None else mean + half,
        "predicted_ms": own.entry["predicted_ms"],
        **{cost: _counted(cost, own.architecture.labels, request) for cost in ("parameters", "flops", "cache_bytes")},
    }


def _counted(name: str, labels: Sequence[str], request: SearchRequest) -> int | None:
    silent = [each for each in request.space.candidates if catalog.block(each.block).cache_bytes is None]
    if name == "cache_bytes" and (silent or not request.decodes):
        return None
    costs = dict(zip(request.space.labels, counted(name, request), strict=True))
    return round(sum(costs[label] for label in labels))


def _quality(first: Retrained, second: Retrained, task: Task) -> QualityDifference:
    return compare_quality(first.test_nats(task), second.test_nats(task), neighbours=not task.classifies)


def _timed(
    inputs: Inputs, first: Retrained, second: Retrained, modes: Sequence[int], store: Store, trials: TrialRunner
) -> list[PairedLatency]:
    """Two networks timed in turns in each of some serve modes, once per search."""
    request = inputs.request
    own, other = ([*each.derived.architecture.labels] for each in (first, second))
    path = store.folder / _FILE
    found = []
    for mode in modes:
        remembered = _remembered(path)
        known = next((each for each in remembered if each["labels"] == [own, other] and each["mode"] == mode), None)
        if known is not None:
            found.append(PairedLatency(**known["latency"]))
            continue
        latency = trials.call(
            request.resources, time_in_turns, request.model_dump(mode="json"), own, other, _LATENCY_ROUNDS, mode
        )
        found.append(latency)
        told = {"labels": [own, other], "mode": mode, "latency": dataclasses.asdict(latency)}
        write_json(path, {"timed": [*remembered, told]})
    return found


def _remembered(path: Path) -> list[dict[str, Any]]:
    """What was timed before; nothing in a file of an older version, which held one pair."""
    if not path.exists():
        return []
    timed: list[dict[str, Any]] = json.loads(path.read_text()).get("timed", [])
    return timed


def time_in_turns(
    request: Mapping[str, Any], derived: Sequence[str], parent: Sequence[str], rounds: int, mode: int = 0
) -> PairedLatency:
    """Time both networks round-robin in this process, on a trial's device. Weights do not matter, so they are fresh.

    Args:
        request: as JSON.
        derived: labels of the network in question.
        parent: labels of its reference.
        rounds: timed ones.
        mode: number of the serve mode.
    """
    parsed = SearchRequest.model_validate(request)
    networks = {
        "derived": build(parsed.network_config(derived, parsed.task.vocab_size)),
        "parent": build(parsed.network_config(parent, parsed.task.vocab_size)),
    }
    threads = max(1, int(parsed.resources.cpus))
    where = device_of(parsed.resources)
    return compare_latency(networks, parsed.task.serve[mode], rounds, threads=threads, device=where)
