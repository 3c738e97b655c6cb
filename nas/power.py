"""What a comparison of paired seeds can show at all: the smallest difference that it finds 8 times in 10.

Two trainings of a seed see the same data in the same order, so their losses are compared pair by pair: a two-sided t
test on the S differences. Its power at a difference of d standard deviations is that of the noncentral t distribution
with S - 1 degrees of freedom and noncentrality d sqrt(S) (Cohen 1988, "Statistical Power Analysis", chapter 2). No
torch here, and scipy only where it is computed with. S seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import stdev

import numpy as np

from nas.student import LEVEL, critical

POWER = 0.8  # how often a difference of the size that is told is found
_NODES = 200  # of the quadrature; 100 give the same six digits


def detectable(sd: float, n_seeds: int, *, se_beside: float = 0.0) -> float | None:
    """The smallest true difference that `n_seeds` paired trainings find in POWER of all cases.

    Args:
        sd: standard deviation of a seed's paired difference, in any unit.
        n_seeds: S.
        se_beside: standard error of what all seeds share, such as the test windows; more seeds do not lower it.

    Returns:
        In the unit of `sd`; None of one seed, which shows nothing of another one, whatever the difference.
    """
    if n_seeds < 2:
        return None
    from scipy.stats import norm

    beside = se_beside * float(norm.ppf((1 + LEVEL) / 2) + norm.ppf(POWER))
    return math.hypot(sd * in_sds(n_seeds), beside)


def in_sds(n_seeds: int) -> float:
    """As `detectable`, in standard deviations of a paired difference, of at least 2 seeds."""
    from scipy.optimize import brentq
    from scipy.stats import chi2, norm

    freedom = n_seeds - 1
    far = critical(freedom)
    # The noncentral t as what it is, a normal over a chi: scipy's own is not a number where 2 or 3 seeds need it.
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    chi = np.sqrt(chi2.ppf((nodes + 1) / 2, freedom) / freedom)

    def power(noncentrality: float) -> float:
        found = norm.sf(far * chi - noncentrality) + norm.cdf(-far * chi - noncentrality)
        return float(weights @ found) / 2

    root: float = brentq(lambda value: power(value) - POWER, 0.0, 4 * far)
    return root / math.sqrt(n_seeds)


def spread_of_differences(losses: Sequence[Sequence[float]]) -> float | None:
    """Standard deviation of a seed's paired difference between two of several networks, pooled over all pairs.

    Args:
        losses: (N, S) of N networks, the same seeds of each.

    Returns:
        In the unit of the losses; None of fewer than 2 networks or 2 seeds.
    """
    pairs = [[a - b for a, b in zip(one, other, strict=True)] for one, other in combinations(losses, 2)]
    if not pairs or len(pairs[0]) < 2:
        return None
    return math.sqrt(sum(stdev(each) ** 2 for each in pairs) / len(pairs))


@dataclass(frozen=True)
class Foreseen:
    """What a comparison can show, told before it runs.

    Args:
        n_seeds: paired trainings of each network.
        unit: of the figures.
        sd: of a seed's paired difference, as far as it was seen before; None: nothing was seen.
        source: what the sd is from, in words.
        detectable: as `detectable`; None of one seed, or without an sd.
    """

    n_seeds: int
    unit: str
    sd: float | None
    source: str
    detectable: float | None

    @property
    def sentence(self) -> str:
        """One line for people."""
        if self.n_seeds < 2:
            return (
                "one seed of each network cannot show that a difference holds for other seeds, whatever its size; "
                "its interval is of the test windows alone. Give retrain.n_seeds at least 2, better 5"
            )
        factor = in_sds(self.n_seeds)
        if self.sd is None or self.detectable is None:
            return (
                f"{self.n_seeds} paired seeds show a difference from {factor:.1f} standard deviations of a seed's "
                f"difference on, 8 times in 10; how large that is, nothing has told yet: {self.source}"
            )
        return (
            f"{self.n_seeds} paired seeds show a difference from {self.detectable:.2g} {self.unit} on, 8 times in 10 "
            f"({factor:.1f} standard deviations of a seed's difference, {self.sd:.2g} {self.unit} by {self.source})"
        )


def foresee(sd: float | None, n_seeds: int, unit: str, source: str) -> Foreseen:
    """See `Foreseen`."""
    return Foreseen(n_seeds, unit, sd, source, None if sd is None else detectable(sd, n_seeds))
