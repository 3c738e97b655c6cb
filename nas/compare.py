"""Whether one model predicts better than another: paired differences with an interval. numpy only.

Both models are scored on the same windows after training with the same seeds, so that windows and seeds are paired.
Windows of a text follow each other and are not independent: whole blocks of neighbours are redrawn (circular block
bootstrap, Politis & Romano 1992). Labelled documents and drawn examples stand alone, in no order that means anything:
there each is redrawn by itself. Seeds are redrawn as well, so that a verdict rests on more than one lucky training.
Nats / ln 2 are bits, of whatever unit the task's quality is told in. S seeds, N windows or examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas.errors import InvalidInput

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
    """

    mean_bits: float
    low: float
    high: float
    verdict: Verdict
    first_bits: float
    second_bits: float
    n_seeds: int
    n_windows: int


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
    means = _resampled_means(difference, neighbours, n_resamples, np.random.default_rng(seed))
    low, high = (float(end) for end in np.quantile(means, [0.025, 0.975]))
    verdict: Verdict = "better" if high < 0 else "worse" if low > 0 else "cannot tell"
    return QualityDifference(
        mean_bits=float(difference.mean()),
        low=low,
        high=high,
        verdict=verdict,
        first_bits=float(losses[0].mean()),
        second_bits=float(losses[1].mean()),
        n_seeds=n_seeds,
        n_windows=n_windows,
    )


def _resampled_means(
    difference: NDArray[np.float64], neighbours: bool, n_resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Means over redrawn seeds and redrawn circular blocks of windows: (S, N) -> (n_resamples,)."""
    n_seeds, n_windows = difference.shape
    block = max(1, round(n_windows ** (1 / 3))) if neighbours else 1  # the usual growth for the variance of a mean
    n_blocks = -(-n_windows // block)
    sums = np.cumsum(np.pad(difference, ((0, 0), (1, 0))), axis=1)  # sums[:, i]: of the first i windows
    circular = np.concatenate([sums, sums[:, -1:] + sums[:, 1:block]], axis=1)
    block_means = (circular[:, block : block + n_windows] - circular[:, :n_windows]) / block  # by first window
    starts = generator.integers(0, n_windows, size=(n_resamples, n_blocks))
    by_seed = block_means[:, starts].mean(axis=2)  # (S, n_resamples)
    seeds = generator.integers(0, n_seeds, size=(n_resamples, n_seeds))
    means: NDArray[np.float64] = by_seed[seeds, np.arange(n_resamples)[:, None]].mean(axis=1)
    return means
