"""Which hyper-parameters to try next: Optuna's TPE, asked in fixed waves and told in order.

A wave is drawn from the told samples alone, by a sampler seeded with the request's seed and the wave's number. So a
restarted search, rebuilt from stored rows, draws what an undisturbed one would, whichever trial ended first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nas.config import Range, SearchRequest

WAVE = 4  # samples drawn before any of them is told; fixed, or the answer would depend on the size of the cluster


@dataclass(frozen=True)
class Told:
    """A finished sample: its values by JSON pointer, and its score (smaller is better); None where it failed."""

    values: dict[str, float]
    score: float | None


def next_wave(request: SearchRequest, told: Sequence[Told]) -> list[dict[str, float]]:
    """The values of the next samples, at most WAVE; without ranges, one sample that varies nothing.

    Args:
        request: its ranges, its number of samples and its seed.
        told: all samples before, in order.
    """
    n = min(WAVE, request.trials.n_samples - len(told))
    if n <= 0:
        return []
    if not request.ranges:
        return [{}]
    import optuna  # 1 s to import, and only wanted with ranges
    from optuna.distributions import FloatDistribution
    from optuna.trial import TrialState, create_trial

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions = {each.pointer: FloatDistribution(each.low, each.high, log=each.log) for each in request.ranges}
    seed = (request.trials.seed * 1000 + len(told) // WAVE) % 2**32  # numpy takes no larger one
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(study_name=f"seed-{request.trials.seed}", sampler=sampler, direction="minimize")
    for sample in told:
        state = TrialState.FAIL if sample.score is None else TrialState.COMPLETE
        study.add_trial(
            create_trial(state=state, value=sample.score, params=sample.values, distributions=distributions)
        )
    return [_values(study.ask(distributions).params, request.ranges) for _ in range(n)]


def _values(drawn: dict[str, float], ranges: Sequence[Range]) -> dict[str, float]:
    return {each.pointer: drawn[each.pointer] for each in ranges}
