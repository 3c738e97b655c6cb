"""One search from its request to its export, the same whether a server, Ray and a database are there or not.

Its verbs are the modules of `workers.stages`; each takes what the one before returned, and may be run again after a
restart: finished trials are taken from the store, so only what was lost is redone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from nas import metrics
from nas.config.request import SearchRequest
from nas.config.task import Task
from nas.cost import LatencyTable
from nas.measure import PairedLatency
from workers.budget import timed_again
from workers.folder import write_json
from workers.software import software
from workers.stages.compare import compare, compare_layouts, describe_layouts, what_to_take
from workers.stages.derive import derive_all
from workers.stages.estimate import measured
from workers.stages.export import export
from workers.stages.lengths import at_lengths
from workers.stages.measure import measure
from workers.stages.passed_on import Comparison, Derived, Inputs, Retrained, Searched
from workers.stages.report import report
from workers.stages.retrain import retrain
from workers.stages.rules import LAYOUT, confirm_statements, infer_statements, keep_rules
from workers.stages.search import search
from workers.stages.winner import describe_samples
from workers.stopwatch import Stopwatch
from workers.store import Stage, Store
from workers.trainable import file_sha256
from workers.trials import TrialRunner


def run_search(request: SearchRequest, store: Store, trials: TrialRunner) -> dict[str, Any]:
    """Run a search to its end, or take one up where it was left; returns what result.json holds.

    Raises:
        BlockwrightError: the search has failed, with a line that a person can act on.
        StopRequested: it was asked to stop; what was acknowledged stays.
    """
    known = store.finished()
    if known is not None:
        return known
    stopwatch = Stopwatch(store.folder)

    @contextmanager
    def stage(name: Stage) -> Iterator[None]:
        store.stage(name)
        with stopwatch.stage(name):
            yield

    with stage("measuring"):
        inputs = measure(request, store, trials)
    with stage("searching"):
        searched = search(inputs, store, trials)
        took = measured(inputs, searched, store)
    with stage("deriving"):
        derived = derive_all(inputs, searched, store, trials)
        statements = infer_statements(inputs, derived)
        rule = keep_rules(inputs, derived, statements, store)
    with stage("retraining"):
        trained = retrain(inputs, searched, derived, store, trials)
        winner, parent = trained.derived, trained.parent
        comparison = compare(inputs, trained, store, trials)
        _tell_if_timed_apart(inputs, winner, comparison, store)
        others = [name for name in trained.layouts if name not in ("derived", "teacher")]
        comparisons = compare_layouts(
            inputs, "derived", others, trained.layouts, store, trials, untimed=trained.runners_up
        )
        advice = what_to_take(inputs, trained, comparisons)
        said = confirm_statements(inputs, searched, statements, trained, store, trials)
        against = [name for name in said.layouts if name != LAYOUT]
        placements = [name for name in against if name.startswith(f"{LAYOUT} random")]  # of the same blocks
        comparisons += compare_layouts(inputs, LAYOUT, against, said.layouts, store, trials, untimed=placements)
    with stage("exporting"):
        exported = export(inputs, winner, comparison, store)
    seconds = {**stopwatch.seconds, "total": stopwatch.total}
    result = {
        **_describe(inputs, searched, derived, store),
        "derived": winner.derived.entry,
        "parent": parent.derived.entry if parent else None,
        **describe_samples(inputs, searched),
        "rule": rule,
        "rules": said.statements,
        **_compared(comparison, inputs.request.task),
        "retrained": describe_layouts(inputs, {**trained.layouts, **said.layouts}),
        "advice": advice,
        "comparisons": comparisons,
        "power": [*trained.power, *said.power],
        "metrics": metrics.report(
            inputs.request.task, inputs.data.corpus, winner.outcomes, parent.outcomes if parent else ()
        ),
        "lengths": at_lengths(inputs.request.task, winner, parent),
        "positions": {"derived": winner.positions, "parent": parent.positions if parent else None},
        "export": exported,
        "cut_short": _cut_short(searched, [*trained.layouts.values(), *said.layouts.values()]),
        "estimate": {**inputs.estimate, "measured": took},
        "seconds": seconds,
    }
    report(result, store)  # before the result, which says that nothing is left to do
    path = store.folder / "result.json"
    write_json(path, result)
    store.result(result, path, file_sha256(path))
    return result


def _tell_if_timed_apart(inputs: Inputs, winner: Retrained, comparison: Comparison | None, store: Store) -> None:
    if comparison is not None:
        bounds = winner.derived.entry["bounds"]
        told = timed_again(inputs.request.budget.latency, bounds, comparison.latency, comparison.against)
        if told is not None:
            store.warn(told)


def _describe(inputs: Inputs, searched: Searched, derived: list[Derived], store: Store) -> dict[str, Any]:
    request = inputs.request
    method = request.method_with(searched.values)  # where a drawn number of steps is a whole one
    return {
        "search": {
            "id": store.search_id,
            "name": request.name,
            "dataset": request.task.dataset,
            "dataset_fingerprint": request.task.dataset_fingerprint,
            "latency_table": inputs.table.id,
            "latency_tables": [_table(table) for table in inputs.tables],
            "device": inputs.table.device,
            "software": software(),
            "objective": request.task.objective,
            "tokenizer": request.task.tokenizer.model_dump(),
            "train_length": request.task.train_length,
            "serve": [serve.model_dump() for serve in request.task.serve],
            "candidates": [candidate.model_dump() for candidate in request.space.candidates],
            "slot_ms": dict(zip(request.space.labels, inputs.table.slot_ms(request.space), strict=True)),
            "sample": searched.sample,
            "values": {pointer: getattr(method, pointer.removeprefix("/method/")) for pointer in searched.values},
        },
        "probabilities": [
            {
                "sample": searched.sample,
                "seed": seed,
                "step": record.step,
                "labels": request.space.labels,
                "probabilities": record.probabilities,
                "null_gaps": record.null_gaps,
                "z": record.z,
                "path": record.path,
                "effect_nats": record.effect_nats,
                "effect_se": record.effect_se,
                "finalists": record.finalists,
                "finalist_nats": record.finalist_nats,
            }
            for seed, record in sorted(searched.last.items())
        ],
        "architectures": [each.entry for each in derived],
    }


def _cut_short(searched: Searched, trained: Sequence[Retrained]) -> list[str]:
    """Of every trial that a figure is of, once: equal networks share their trials."""
    lines = [line for each in trained for line in each.cut_short]
    return list(dict.fromkeys([*searched.cut_short, *lines]))


def _table(table: LatencyTable) -> dict[str, Any]:
    """A table without its entries: how well it predicts whole networks."""
    shown = table.model_dump(include={"serve", "offset_ms", "scale", "error_median", "error_p95", "n_networks"})
    return {"id": table.id, **shown}


def _compared(comparison: Comparison | None, task: Task) -> dict[str, Any]:
    if comparison is None:
        return {"quality": None, "latency": None, "latencies": []}
    quality = comparison.quality
    return {
        "quality": {
            "unit": task.quality_unit,
            "derived_bits_per_byte": quality.first_bits,
            "parent_bits_per_byte": quality.second_bits,
            "difference": quality.mean_bits,
            "low": quality.low,
            "high": quality.high,
            "verdict": quality.verdict,
            "n_windows": quality.n_windows,
            "n_seeds": quality.n_seeds,
        },
        "latency": _timed(comparison.latency),
        "latencies": [
            {"serve": serve.model_dump(), **_timed(latency)}
            for serve, latency in zip(task.serve, comparison.latencies, strict=True)
        ],
    }


def _timed(latency: PairedLatency) -> dict[str, Any]:
    return {
        "ratio": latency.ratio,
        "low": latency.low,
        "high": latency.high,
        "repeatability": latency.repeatability,
        "derived_ms": latency.ms["derived"],
        "parent_ms": latency.ms["parent"],
    }
