"""The verbs of a search: measure, search, derive, retrain, compare, export. Each takes what the one before returned.

Each may be run again after a restart: finished trials are taken from the store, so only what was lost is redone.
L slots, K candidates.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas import metrics, rules
from nas.architecture import Architecture, interleaved
from nas.compare import QualityDifference, compare_quality
from nas.config import SearchRequest, ServeMode, Task
from nas.cost import LatencyTable, entry_key
from nas.derive import check_budget, derive_by_table
from nas.errors import InvalidInput, SearchFailed
from nas.export.bundle import write_bundle
from nas.export.check import check_export
from nas.measure import PairedLatency, compare_latency, device_description, measure_table
from nas.metrics import Outcome
from nas.pressure import target_ms
from nas.retrain import RetrainResult, build, load_network, read_result
from nas.steps import StepRecord
from workers import memory
from workers.budget import derive_within
from workers.data import Prepared, prepare
from workers.folder import write_json
from workers.samples import Told, next_wave
from workers.store import Planned, Saved, Store, TrialKey
from workers.trainable import TrialSpec
from workers.trials import TrialRunner

_LATENCY_ROUNDS = 200  # of the comparison that is reported
_CORRECTION_ROUNDS = 64  # of each look at a derived architecture, before it is retrained


@dataclass(frozen=True)
class Inputs:
    """What the trials get: the request with the data's sizes and the table filled in, the table, and the data.

    Args:
        request: complete.
        table: latency of each candidate.
        data: the encoded data.
    """

    request: SearchRequest
    table: LatencyTable
    data: Prepared


@dataclass(frozen=True)
class Searched:
    """The finished searches of the best sample.

    Args:
        sample: its number.
        values: its hyper-parameters by JSON pointer.
        last: the last record of each seed.
    """

    sample: int
    values: Mapping[str, float]
    last: Mapping[int, StepRecord]


@dataclass(frozen=True)
class Derived:
    """One architecture with where it comes from, as result.json lists it.

    Args:
        id: in the store.
        role: argmax, budget or parent.
        seed: of the search it was derived from; None for a parent.
    """

    id: str
    role: str
    architecture: Architecture
    entry: dict[str, Any]
    seed: int | None


@dataclass(frozen=True)
class Retrained:
    """One architecture after its retraining, a result and a checkpoint per seed."""

    derived: Derived
    results: Mapping[int, RetrainResult]
    checkpoints: Mapping[int, Saved]

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


# -- measure ----------------------------------------------------------------------------------------------------------


def measure(request: SearchRequest, store: Store, trials: TrialRunner) -> Inputs:
    """Encode the data, take or measure the latency table, and pin both to the search; refuse what cannot end well.

    Raises:
        DataError: the data are too short, or not those that the request names.
        Infeasible: no architecture meets the budget.
        InvalidInput: unknown dataset, a table that is unknown or of another serve mode, or more resources than there
            are.
    """
    trials.check(request.resources)
    prepared = prepare(request, store)
    request = prepared.request
    device = trials.call(request.resources, device_description, request.resources.cpus)
    key = table_key(request, device)
    if request.latency_table is not None:
        table = store.table_by_id(request.latency_table)
        if table.serve != request.task.serve[0]:
            raise InvalidInput(
                f"latency table {table.id} holds for {_words(table.serve)}; the request serves "
                f"{_words(request.task.serve[0])} first"
            )
    else:
        table = store.table(key) or trials.call(request.resources, _measured, request)
    check_budget(request, table, target_ms(request, table))
    request = request.model_copy(update={"latency_table": table.id})
    store.inputs(request, table, key)
    return Inputs(request, table, prepared)


def _words(serve: ServeMode) -> str:
    memory = f" behind {serve.memory_length} in memory" if serve.memory_length else ""
    return f"{serve.mode} of {serve.batch} x {serve.query_length} tokens{memory}"


def table_key(request: SearchRequest, device: Mapping[str, str]) -> str:
    """What a table was measured for: device with software and threads, and the entries at their shapes."""
    serve = request.task.serve[0]
    entries = sorted(entry_key(candidate, request.space, serve) for candidate in request.space.candidates)
    # The fit's offset and scale are of networks of this depth, with these embeddings and this head.
    around = dataclasses.asdict(request.space.backbone)
    parts = [sorted(device.items()), entries, request.space.n_slots, around, request.task.vocab_size]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


# -- search -----------------------------------------------------------------------------------------------------------


def search(inputs: Inputs, store: Store, trials: TrialRunner) -> Searched:
    """Run samples x seeds, wave by wave; the best sample is the one with the least mean validation loss over its seeds.

    Raises:
        SearchFailed: a seed failed and there is no other sample.
    """
    request = inputs.request
    seeds = _seeds(request, request.trials.n_seeds)
    told: list[Told] = []
    reason = ""
    while wave := next_wave(request, told):
        numbered = [*enumerate(wave, start=len(told))]
        planned = [
            Planned(TrialKey("search", number, seed), request.method_with(values).n_steps, values)
            for number, values in numbered
            for seed in seeds
        ]
        failures = _run(inputs, planned, {}, store, trials)
        for number, values in numbered:
            try:
                score = _score([TrialKey("search", number, seed) for seed in seeds], failures, store)
                told.append(Told(values, score))
            except SearchFailed as error:
                reason = str(error)
                told.append(Told(values, None))
    scored = [(sample.score, number) for number, sample in enumerate(told) if sample.score is not None]
    if not scored:
        raise SearchFailed(reason)
    _, best = min(scored)
    last = {seed: store.records(TrialKey("search", best, seed))[-1] for seed in seeds}
    method = request.method_with(told[best].values)
    for seed, record in last.items():
        _warn_if_short(TrialKey("search", best, seed), record.step, method.n_steps, method.max_minutes, store)
    return Searched(best, told[best].values, last)


def _warn_if_short(key: TrialKey, step: int, n_steps: int, max_minutes: float, store: Store) -> None:
    if step < n_steps:
        store.warn(f"trial {key} ended after {step} of {n_steps} weight updates: max_minutes is {max_minutes:g}")


def _score(keys: Sequence[TrialKey], failures: Mapping[str, str], store: Store) -> float:
    """Mean over the seeds of the last validation loss of the most probable path, nats per token.

    Raises:
        SearchFailed: a seed failed, or its alpha was never updated.
    """
    losses = []
    for key in keys:
        if str(key) in failures:
            raise SearchFailed(f"trial {key} failed: {failures[str(key)]}")
        loss = store.records(key)[-1].val_loss_argmax
        if loss is None:
            raise SearchFailed("alpha was never updated; give the search more steps, or a smaller warmup_share")
        losses.append(loss)
    return float(np.mean(losses))


def _run(
    inputs: Inputs,
    planned: Sequence[Planned],
    architectures: Mapping[int, Architecture],
    store: Store,
    trials: TrialRunner,
) -> dict[str, str]:
    """Run what has not ended yet, each from its newest checkpoint; returns why trials failed, by `str(key)`."""
    store.plan(planned)
    specs = []
    for each in planned:
        newest = store.newest(each.key)
        store.tidy(each.key)
        if newest is not None and newest.last:
            continue
        folder = store.folder / "trials" / str(each.key) / f"attempt-{store.attempt}"
        # Made here and not by the trial: one that outlives its search must not bring back a folder that was deleted.
        folder.mkdir(parents=True, exist_ok=True)
        architecture = architectures.get(each.key.sample)
        specs.append(
            TrialSpec(
                key=each.key,
                request=inputs.request.resolve(each.values, each.key.seed).model_dump(mode="json"),
                table=inputs.table.model_dump(mode="json") if architecture is None else None,
                architecture=architecture.to_json() if architecture is not None else None,
                data=None if inputs.data.folder is None else str(inputs.data.folder),
                folder=str(folder),
                resume=str(newest.path) if newest is not None else None,
            )
        )
    failures = trials.run(specs, store) if specs else {}
    for spec in specs:
        store.tidy(spec.key)
    return failures


def _seeds(request: SearchRequest, n: int) -> list[int]:
    return [request.trials.seed + number for number in range(n)]


# -- derive -----------------------------------------------------------------------------------------------------------


def derive_all(inputs: Inputs, searched: Searched, store: Store, trials: TrialRunner) -> list[Derived]:
    """Two architectures per seed, by argmax and within the budget, and the parent; seed by seed, never on averages.

    A seed in which nothing moved beyond chance has no architecture; a warning says so.

    Raises:
        SearchFailed: no seed moved.
    """
    request, table = inputs.request, inputs.table
    derived = []
    reasons = []
    for seed, record in sorted(searched.last.items()):
        key = TrialKey("search", searched.sample, seed)
        try:
            best = derive_by_table(request, table, record, None)
            within = _within_budget(inputs, record, key, store, trials)
        except SearchFailed as error:
            reasons.append(f"seed {seed}: {error}")
            continue
        derived.append(_keep("argmax", best, inputs, store, key))
        derived.append(_keep("budget", within, inputs, store, key))
    if not derived:
        raise SearchFailed(reasons[0])
    for reason in reasons:
        store.warn(reason)
    if request.retrain.baselines:
        derived.append(_keep("parent", interleaved(request.space), inputs, store, None))
    return derived


def _within_budget(
    inputs: Inputs, record: StepRecord, key: TrialKey, store: Store, trials: TrialRunner
) -> Architecture:
    """As `derive_within`; remembered in the folder, since a second timing could end elsewhere."""
    path = store.folder / f"derived-{key}.json"
    if path.exists():
        return Architecture.from_json(json.loads(path.read_text()))

    def time_beside(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        request = inputs.request
        return trials.call(
            request.resources, time_in_turns, request.model_dump(mode="json"), labels, others, _CORRECTION_ROUNDS
        )

    architecture, missed = derive_within(inputs.request, inputs.table, record, time_beside)
    for line in missed:
        store.warn(f"seed {key.seed}: {line}")
    write_json(path, architecture.to_json())
    return architecture


def _keep(role: str, architecture: Architecture, inputs: Inputs, store: Store, key: TrialKey | None) -> Derived:
    entry: dict[str, Any] = {
        "role": role,
        "string": str(architecture),
        "slots": list(architecture.labels),
        "undecided": list(architecture.undecided),
        "sample": key.sample if key else None,
        "seed": key.seed if key else None,
        "predicted_ms": inputs.table.predict_ms(architecture, inputs.request.space),
    }
    found = store.architecture(entry, architecture.to_json(inputs.request.space.shape()), key)
    return Derived(found, role, architecture, entry, key.seed if key else None)


def infer_rule(derived: Sequence[Derived], store: Store) -> dict[str, Any]:
    """The rule line over the seeds' architectures, with its evidence."""
    found = rules.describe([each.architecture for each in derived if each.role == "budget"])
    statement: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(found)))  # lists, as a reader of JSON gets
    store.rule(statement)
    return statement


# -- retrain ----------------------------------------------------------------------------------------------------------


def retrain(
    inputs: Inputs, searched: Searched, derived: Sequence[Derived], store: Store, trials: TrialRunner
) -> tuple[Retrained, Retrained | None]:
    """Train every distinct derived architecture and the parent afresh, by one recipe and with the same seeds.

    Returns:
        The derived one that validates best, and the parent (None where the request asks for no baseline).

    Raises:
        SearchFailed: a retraining failed.
    """
    request = inputs.request
    distinct: list[Derived] = []
    for each in derived:
        # Equal networks are trained once; a parent that was also derived stands for both.
        if each.role != "argmax" and each.architecture.hash not in [known.architecture.hash for known in distinct]:
            distinct.append(each)
    seeds = _seeds(request, request.retrain.n_seeds)
    planned = [
        Planned(TrialKey("retrain", number, seed), request.retrain.n_steps, searched.values, each.id)
        for number, each in enumerate(distinct)
        for seed in seeds
    ]
    architectures = {number: each.architecture for number, each in enumerate(distinct)}
    failures = _run(inputs, planned, architectures, store, trials)
    if failures:
        key, why = next(iter(failures.items()))
        raise SearchFailed(f"trial {key} failed: {why}")
    max_minutes = request.method_with(searched.values).max_minutes
    trained: dict[str, Retrained] = {}
    for number, each in enumerate(distinct):
        checkpoints = {seed: _finished(store, TrialKey("retrain", number, seed)) for seed in seeds}
        results = {seed: read_result(saved.path) for seed, saved in checkpoints.items()}
        for seed, result in results.items():
            _warn_if_short(TrialKey("retrain", number, seed), result.step, request.retrain.n_steps, max_minutes, store)
        trained[each.architecture.hash] = Retrained(each, results, checkpoints)
    candidates = [trained[each.architecture.hash] for each in derived if each.role == "budget"]
    winner = min(candidates, key=lambda each: (each.val_loss, each.derived.seed))
    store.chosen(winner.derived.id)
    parents = [each for each in derived if each.role == "parent"]
    if not parents:
        return winner, None
    return winner, dataclasses.replace(trained[parents[0].architecture.hash], derived=parents[0])


def _finished(store: Store, key: TrialKey) -> Saved:
    saved = store.newest(key)
    if saved is None or not saved.last:
        raise SearchFailed(
            f"the last checkpoint of trial {key} is missing or damaged; resume the search to train it again"
        )
    return saved


# -- compare ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Derived against parent: quality on test, latency in turns in one process."""

    quality: QualityDifference
    latency: PairedLatency


def compare(
    inputs: Inputs, derived: Retrained, parent: Retrained | None, store: Store, trials: TrialRunner
) -> Comparison | None:
    """Paired differences of the derived architecture against the parent; None without a parent.

    The timing is remembered in the folder: after a restart the export would have other bytes with other figures.
    """
    if parent is None:
        return None
    request = inputs.request
    nats = [each.test_nats(request.task) for each in (derived, parent)]
    quality = compare_quality(*nats, neighbours=not request.task.classifies)
    labels = [[*each.derived.architecture.labels] for each in (derived, parent)]
    path = store.folder / "latency.json"
    remembered = json.loads(path.read_text()) if path.exists() else None
    if remembered is not None and remembered["labels"] == labels:
        return Comparison(quality, PairedLatency(**remembered["latency"]))
    latency = trials.call(
        request.resources, time_in_turns, request.model_dump(mode="json"), labels[0], labels[1], _LATENCY_ROUNDS
    )
    write_json(path, {"labels": labels, "latency": dataclasses.asdict(latency)})
    return Comparison(quality, latency)


def time_in_turns(
    request: Mapping[str, Any], derived: Sequence[str], parent: Sequence[str], rounds: int
) -> PairedLatency:
    """Time both networks round-robin in this process. Weights do not matter to the time, so they are fresh ones."""
    parsed = SearchRequest.model_validate(request)
    networks = {
        "derived": build(parsed.network_config(derived, parsed.task.vocab_size)),
        "parent": build(parsed.network_config(parent, parsed.task.vocab_size)),
    }
    threads = max(1, int(parsed.resources.cpus))
    return compare_latency(networks, parsed.task.serve[0], rounds, threads=threads)


# -- export -----------------------------------------------------------------------------------------------------------


def export(inputs: Inputs, winner: Retrained, comparison: Comparison | None, store: Store) -> dict[str, Any]:
    """Write the folder and the zip that run without Blockwright, and run them so.

    Raises:
        ExportFailed: the exported model does not run alone, or gives other logits.
    """
    request = inputs.request
    architecture = winner.derived.architecture
    config = request.network_config(architecture.labels, request.task.vocab_size)
    network = load_network(winner.best.path, config)
    bundle = write_bundle(
        store.folder / "export",
        state=network.state_dict(),
        config=config,
        architecture=architecture.to_json(request.space.shape()),
        request=request.model_dump(mode="json"),
        figures=_figures(winner, comparison, inputs),
        tokenizer=inputs.data.tokenizer,
        eos_id=inputs.data.eos_id,
        labels=inputs.data.labels,
    )
    checked = check_export(bundle.zip, network)
    store.artifact("export", bundle.zip, bundle.sha256, "application/zip")
    return {
        "file": bundle.zip.name,
        "sha256": bundle.sha256,
        "logits_max_abs_difference": checked.logits_max_abs_difference,
        "sample": checked.sample,
    }


def _figures(winner: Retrained, comparison: Comparison | None, inputs: Inputs) -> dict[str, Any]:
    task = inputs.request.task
    unit = task.quality_unit
    bits = float(np.mean(winner.test_nats(task))) / float(np.log(2))
    figures: dict[str, Any] = {f"test {unit}, mean of the seeds": bits}
    for each in metrics.report(task, inputs.data.corpus, winner.outcomes):
        if each["name"] != unit:
            figures[f"test {each['name']}, mean of the seeds"] = each["derived"]
        if each.get("majority") is not None:
            figures[f"{each['name']} of always answering the most frequent class"] = each["majority"]
    if comparison is not None:
        quality, latency = comparison.quality, comparison.latency
        seeds = "1 seed" if quality.n_seeds == 1 else f"{quality.n_seeds} seeds"
        figures |= {
            "against the interleaved parent": f"{quality.verdict}: {quality.mean_bits:+.4f} {unit}, "
            f"95% interval {quality.low:+.4f} to {quality.high:+.4f}, {seeds}",
            "latency against the parent": f"{latency.ratio:.3f}, repeatable to {latency.repeatability:.3f}",
        }
    return figures


def _measured(request: SearchRequest) -> LatencyTable:
    """The latency table, where a trial would run: on its machine, and only if its supernet has room there."""
    memory.check_room(request.space, "cuda" if request.resources.gpus > 0 else "cpu")
    threads = max(1, int(request.resources.cpus))
    return measure_table(request.space, request.task.serve[0], vocab_size=request.task.vocab_size, threads=threads)
