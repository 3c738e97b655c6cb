"""Whether one model predicts better than another: paired differences with an interval.

Both models are scored on the same windows after training with the same seeds, so that windows and seeds are paired.
Windows of a text follow each other and are not independent: whole blocks of neighbours are redrawn (circular block
bootstrap, Politis & Romano 1992). Labelled documents and drawn examples stand alone, in no order that means anything:
there each is redrawn by itself.

Seeds are few, and redrawing few of anything makes intervals too narrow. So from two seeds on the interval is a sum of
two: Student's t on the seeds' own mean differences, and what redrawn windows, which all seeds share, add to it; their
half-widths are added as squares (ours). Simulated, true mean within the interval, of 600: by whether seeds, both or
windows make the noise, 2 seeds 96, 99 and 97%, 3 seeds 95, 97 and 94%, 6 seeds 94, 95 and 94%; seeds and windows
redrawn together had 58, 88 and 90%, then 72, 89 and 92%, then 85, 92 and 91%; and t on the seeds alone 17% of 6 seeds
where windows make the noise. The interval of one seed is of its windows, and says nothing of other seeds.
Nats / ln 2 are bits, of whatever unit the task's quality is told in. S seeds, N windows or examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas.errors import InvalidInput
from nas.power import detectable
from nas.student import LEVEL, critical, half_width

Verdict = Literal["better", "worse", "cannot tell"]


@dataclass(frozen=True)
class QualityDifference:
    """Test quality of one architecture against another; fewer bits per unit are better.

    Args:
        mean_bits: mean of first minus second; negative where the first is better.
        low: lower end of the 95% interval of that mean.
        high: upper end.
        verdict: of the first: "better" or "worse" where the whole interval is on one side of 0.
        first_bits: mean of the first architecture.
        second_bits: mean of the second.
        n_seeds: paired trainings.
        n_windows: test windows or examples of each.
        detectable: the smallest true difference that such a comparison finds 8 times in 10 (nas.power), by the spread
            of these seeds and windows; None of one seed, and of equal losses, as of one network beside itself.
    """

    mean_bits: float
    low: float
    high: float
    verdict: Verdict
    first_bits: float
    second_bits: float
    n_seeds: int
    n_windows: int
    detectable: float | None = None


def compare_quality(
    first: ArrayLike, second: ArrayLike, *, neighbours: bool = True, n_resamples: int = 4000, seed: int = 0
) -> QualityDifference:
    """Compare per-window losses of two architectures, paired by seed and window.

    Args:
        first: nats per unit of each window, (S, N), or (N,) for one seed; windows in the order of the text.
        second: of the other architecture, the same seeds and windows.
        neighbours: windows that stand side by side may go together, as those of a text do; False where each stands
            alone, and blocks would only make the interval rougher.
        n_resamples: bootstrap draws.
        seed: of the draws; the same input gives the same interval.

    Raises:
        InvalidInput: the two do not pair up, there are fewer than 2 windows, or a loss is not a number.
    """
    losses = [np.atleast_2d(np.asarray(nats, dtype=np.float64)) / np.log(2) for nats in (first, second)]
    if losses[0].shape != losses[1].shape or losses[0].ndim != 2:
        raise InvalidInput(f"losses of shapes {losses[0].shape} and {losses[1].shape} do not pair up")
    n_seeds, n_windows = losses[0].shape
    if n_windows < 2:
        raise InvalidInput(f"a comparison needs at least 2 test windows; there are {n_windows}")
    if not all(np.isfinite(each).all() for each in losses):
        raise InvalidInput("a test loss is not a number; one of the trainings has diverged")
    difference = losses[0] - losses[1]
    block = max(1, round(n_windows ** (1 / 3))) if neighbours else 1  # the usual growth for the variance of a mean
    means = _resampled_means(difference.mean(axis=0), block, n_resamples, np.random.default_rng(seed))
    mean, least = float(difference.mean()), None
    if n_seeds == 1:
        low, high = (float(end) for end in np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    else:
        of_seeds, of_windows = difference.mean(axis=1), float(means.std())
        freedom = max(1.0, n_windows / block - 1)
        half = math.hypot(half_width(of_seeds.tolist()) or 0.0, critical(freedom) * of_windows)
        low, high = mean - half, mean + half
        least = detectable(float(of_seeds.std(ddof=1)), n_seeds, se_beside=of_windows) if difference.any() else None
    verdict: Verdict = "better" if high < 0 else "worse" if low > 0 else "cannot tell"
    return QualityDifference(
        mean_bits=mean,
        low=low,
        high=high,
        verdict=verdict,
        first_bits=float(losses[0].mean()),
        second_bits=float(losses[1].mean()),
        n_seeds=n_seeds,
        n_windows=n_windows,
        detectable=least,
    )


def _resampled_means(
    difference: NDArray[np.float64], block: int, n_resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Means over redrawn circular blocks of windows: (N,) -> (n_resamples,)."""
    n_windows = len(difference)
    n_blocks = -(-n_windows // block)
    sums = np.cumsum(np.pad(difference, (1, 0)))  # sums[i]: of the first i windows
    circular = np.concatenate([sums, sums[-1] + sums[1:block]])
    block_means = (circular[block : block + n_windows] - circular[:n_windows]) / block  # by first window
    starts = generator.integers(0, n_windows, size=(n_resamples, n_blocks))
    means: NDArray[np.float64] = block_means[starts].mean(axis=1)
    return means
