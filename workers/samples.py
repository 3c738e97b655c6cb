"""Which hyper-parameters to try next: Optuna's TPE, asked in fixed waves and told in order.

A wave is drawn from the told samples alone, by a sampler seeded with the request's seed and the wave's number. So a
restarted search, rebuilt from stored rows, draws what an undisturbed one would, whichever trial ended first. With a
budget there are two objectives, validation loss and the cost that the first bound names (multi-objective TPE, Ozaki et
al. 2022, doi:10.1613/jair.1.13188, as Optuna has it).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nas.config.budget import Budget
from nas.config.request import Range, SearchRequest

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

WAVE = 4  # samples drawn before any of them is told; fixed, or the answer would depend on the size of the cluster
_DRAWN_BLINDLY = 2 * WAVE  # samples before TPE has its say; Optuna's own default is ten


@dataclass(frozen=True)
class Told:
    """A sample that has ended. S seeds.

    Args:
        values: by JSON pointer.
        state: succeeded; pruned, where it was behind others; or failed, where a seed of it did.
        losses: (S,) validation losses where it ended, nats per token, seeds in order; empty of a failed one.
        cost: mean over the seeds, in the unit of the budget's first bound; None without a budget, or of a failed one.
        rung: how many comparisons of unfinished samples it has passed or, pruned, come to.
        reason: why it was pruned or failed.
    """

    values: dict[str, float]
    state: Literal["succeeded", "pruned", "failed"]
    losses: tuple[float, ...] = ()
    cost: float | None = None
    rung: int = 0
    reason: str | None = None

    @property
    def loss(self) -> float:
        """Mean over the seeds; of a sample that has not failed."""
        return sum(self.losses) / len(self.losses)


def next_wave(request: SearchRequest, told: Sequence[Told]) -> list[dict[str, float]]:
    """The values of the next samples, at most WAVE; without ranges, one sample that varies nothing.

    Args:
        request: its ranges, its budget, its number of samples and its seed.
        told: all samples before, in order.
    """
    n = min(WAVE, request.trials.n_samples - len(told))
    if n <= 0:
        return []
    if not request.ranges:
        return [{}]
    import optuna  # 1 s to import, and only wanted with ranges

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions = {each.pointer: _distribution(each, request) for each in request.ranges}
    seed = (request.trials.seed * 1000 + len(told) // WAVE) % 2**32  # numpy takes no larger one
    study = optuna.create_study(
        study_name=f"seed-{request.trials.seed}",
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=_DRAWN_BLINDLY),
        directions=["minimize"] * (1 if request.budget == Budget() else 2),
    )
    for sample in told:
        study.add_trial(_as_optuna_has_it(sample, distributions))
    return [_values(study.ask(distributions).params, request.ranges) for _ in range(n)]


def _distribution(varied: Range, request: SearchRequest) -> BaseDistribution:
    from optuna.distributions import FloatDistribution, IntDistribution

    if varied.whole(request.method):
        return IntDistribution(math.ceil(varied.low), math.floor(varied.high), log=varied.log)
    return FloatDistribution(varied.low, varied.high, log=varied.log)


def _as_optuna_has_it(sample: Told, distributions: dict[str, BaseDistribution]) -> FrozenTrial:
    """A pruned sample is worse to TPE than any that ended, whatever its loss; a failed one tells it nothing."""
    from optuna.trial import TrialState, create_trial

    named = {"params": sample.values, "distributions": distributions}
    if sample.state == "failed":
        return create_trial(state=TrialState.FAIL, **named)
    if sample.state == "pruned":  # of two objectives Optuna knows no values on the way
        on_the_way = {sample.rung: sample.loss} if sample.cost is None else {}
        return create_trial(state=TrialState.PRUNED, intermediate_values=on_the_way, **named)
    values = [sample.loss] if sample.cost is None else [sample.loss, sample.cost]
    return create_trial(values=values, **named)


def _values(drawn: dict[str, float], ranges: Sequence[Range]) -> dict[str, float]:
    return {each.pointer: drawn[each.pointer] for each in ranges}
