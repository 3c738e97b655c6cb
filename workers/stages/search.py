"""Search: samples x seeds, and which sample is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nas.errors import SearchFailed
from workers.samples import Told, next_wave
from workers.stages.passed_on import Inputs, Searched
from workers.stages.running import run, seeds_of, warn_if_short
from workers.store import Planned, Store, TrialKey
from workers.trials import TrialRunner


def search(inputs: Inputs, store: Store, trials: TrialRunner) -> Searched:
    """Run samples x seeds, wave by wave; the best sample is the one with the least mean validation loss over its seeds.

    Raises:
        SearchFailed: a seed failed and there is no other sample.
    """
    request = inputs.request
    seeds = seeds_of(request, request.trials.n_seeds)
    told: list[Told] = []
    reason = ""
    while wave := next_wave(request, told):
        numbered = [*enumerate(wave, start=len(told))]
        planned = [
            Planned(TrialKey("search", number, seed), request.method_with(values).n_steps, values)
            for number, values in numbered
            for seed in seeds
        ]
        failures = run(inputs, planned, {}, store, trials)
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
        warn_if_short(TrialKey("search", best, seed), record.step, method.n_steps, method.max_minutes, store)
    return Searched(best, told[best].values, last)


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
