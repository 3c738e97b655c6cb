"""Search: samples x seeds in waves, which samples end early, and which one is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nas import guards
from nas.budgets import ROUNDING, BoundedCost, bounds
from nas.errors import SearchFailed
from nas.steps import StepRecord
from workers import rungs
from workers.rungs import SHARES, Standing
from workers.samples import Told, next_wave
from workers.stages.passed_on import Inputs, Searched
from workers.stages.running import cut_short, go_on, seeds_of
from workers.store import Planned, Store, TrialKey
from workers.trials import TrialRunner


def search(inputs: Inputs, store: Store, trials: TrialRunner) -> Searched:
    """Run samples x seeds, wave by wave, and take the best sample: see `best`.

    Raises:
        SearchFailed: no sample came to its end with all of its seeds.
    """
    request = inputs.request
    told: list[Told] = []
    stood: list[dict[int, Standing]] = [{} for _ in SHARES]  # by rung, then by sample
    while wave := next_wave(request, told):
        told += _run_wave(inputs, dict(enumerate(wave, start=len(told))), stood, store, trials)
    chosen = best(told, bounded(inputs))
    last = {seed: store.records(TrialKey("search", chosen, seed))[-1] for seed in _seeds(inputs)}
    cut = [line for seed, record in last.items() for line in cut_short(TrialKey("search", chosen, seed), record)]
    return Searched(chosen, told[chosen].values, last, told, cut)


def best(told: Sequence[Told], bound: BoundedCost | None) -> int:
    """Of the samples that meet the bound the one with the least loss; where none does, the one nearest to it.

    Raises:
        SearchFailed: none has come to its end.
    """
    ended = [number for number, sample in enumerate(told) if sample.state == "succeeded"]
    if not ended:
        raise SearchFailed(next(sample.reason for sample in reversed(told) if sample.state == "failed") or "")
    return min(ended, key=lambda number: (excess(told[number].cost, bound), told[number].loss, number))


def bounded(inputs: Inputs) -> BoundedCost | None:
    """The budget's first bound, which samples are judged by beside their loss."""
    return next(iter(bounds(inputs.request, inputs.table)), None)


def excess(cost: float | None, bound: BoundedCost | None) -> float:
    """What a cost is over a bound, in its unit; 0 within it, and without one."""
    if bound is None or cost is None or cost <= bound.target * (1 + ROUNDING):
        return 0.0
    return cost - bound.target


def _run_wave(
    inputs: Inputs,
    wave: Mapping[int, dict[str, float]],
    stood: Sequence[dict[int, Standing]],
    store: Store,
    trials: TrialRunner,
) -> list[Told]:
    """Run samples, by their numbers, from rung to rung; returns what came of each, in order.

    Args:
        stood: of earlier waves; this one is put in.
    """
    request, bound, seeds = inputs.request, bounded(inputs), _seeds(inputs)
    methods = {number: request.method_with(values) for number, values in wave.items()}
    keys = {number: [TrialKey("search", number, seed) for seed in seeds] for number in wave}
    planned = [Planned(key, methods[number].most_steps, wave[number]) for number in wave for key in keys[number]]
    store.plan(planned)
    prunes = request.trials.pruner == "asha" and request.trials.n_samples > rungs.LEAST
    told: dict[int, Told] = {}
    for rung in range(len(SHARES) + 1) if prunes else [len(SHARES)]:
        until = {number: rungs.until(rung, methods[number].n_steps) for number in wave}
        going = [each for each in planned if each.key.sample not in told]
        failures = go_on(inputs, going, {}, until, store, trials)
        there: dict[int, list[StepRecord]] = {}
        for number in sorted({each.key.sample for each in going}):
            reasons = [f"trial {key} failed: {failures[str(key)]}" for key in keys[number] if str(key) in failures]
            if reasons:
                _give_up(keys[number], failures, f"another seed of its sample failed: {reasons[0]}", store)
                told[number] = Told(wave[number], "failed", rung=rung, reason=reasons[0])
            else:
                there[number] = [_at(store.records(key), until[number]) for key in keys[number]]
        if rung == len(SHARES):
            told |= {number: _ended(wave[number], records, bound) for number, records in there.items()}
            break
        standing = {number: _standing(records, bound) for number, records in there.items()}
        stood[rung].update(standing)
        for number, reason in rungs.dropped(standing, stood[rung]).items():
            _give_up(keys[number], {}, reason, store)
            losses = tuple(rungs.judged_loss(record) for record in there[number])
            told[number] = Told(wave[number], "pruned", losses, _mean_cost(there[number], bound), rung + 1, reason)
    return [told[number] for number in wave]


def _give_up(keys: Sequence[TrialKey], failures: Mapping[str, str], reason: str, store: Store) -> None:
    """End what waits of a sample; a trial that has failed, or whose time had run out, has told its own end."""
    for key in keys:
        newest = store.newest(key)
        if str(key) not in failures and not (newest is not None and newest.last):
            store.prune(key, reason)


def _at(records: Sequence[StepRecord], until: int | None) -> StepRecord:
    """The first record from a weight update on; the last one where the trial has none, or runs to its end."""
    return next((record for record in records if until is not None and record.step >= until), records[-1])


def _standing(records: Sequence[StepRecord], bound: BoundedCost | None) -> Standing:
    """Of a sample at a rung, from a record of each seed."""
    loss = sum(rungs.judged_loss(record) for record in records) / len(records)
    return Standing(loss, excess(_mean_cost(records, bound), bound), max(record.step for record in records))


def _ended(values: dict[str, float], records: Sequence[StepRecord], bound: BoundedCost | None) -> Told:
    """Of a sample that came to its end, from the last record of each seed.

    The loss is that of the path which the parsimony pass holds, and without the pass of alpha's leading one.
    """
    losses = []
    for record in records:
        loss = record.path_loss
        if loss is None:
            reason = "alpha was never updated; give the search more steps, or a smaller warmup_share"
            if cut := guards.cut_short(record):
                reason = f"alpha was never updated: {cut}; raise it"
            return Told(values, "failed", rung=len(SHARES), reason=reason)
        losses.append(loss)
    return Told(values, "succeeded", tuple(losses), _mean_cost(records, bound), len(SHARES))


def _mean_cost(records: Sequence[StepRecord], bound: BoundedCost | None) -> float | None:
    """Over the seeds: of the path that the parsimony pass holds, and before it what alpha's probabilities expect."""
    if bound is None:
        return None
    costs = []
    for record in records:
        assert record.probabilities is not None
        costs.append(bound.expected(record.probabilities) if record.path is None else bound.of(record.path))
    return sum(costs) / len(costs)


def _seeds(inputs: Inputs) -> list[int]:
    return seeds_of(inputs.request, inputs.request.trials.n_seeds)
