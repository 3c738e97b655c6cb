"""How far losses by shared weights can be trusted: do they order architectures as training each of them apart does?

Kendall's tau-b (Kendall 1945, "The treatment of ties in ranking problems"): concordant less discordant pairs, over the
root of the product of the pairs that either side tells apart. A tau over all pairs is flattered by easy ones: a stack
that can mix tokens against one that cannot, a dear one against a cheap one. A search chooses among neighbours in cost,
and among good ones. So tau is also told over pairs of nearly the same cost, pooled, and over the best fifth; and as
regret: what is lost by training the five of the least shared loss and keeping the best of them.

Intervals are percentile bootstraps over architectures, 95%: pairs share architectures, so they cannot be redrawn by
themselves. Two copies of one tie on both sides and count for nothing. Simulated (normal scores, tau 0.3 and 0.7, with
ties and within bands, 12 to 85 architectures, 400 draws each) such an interval holds the true tau in 94 to 99.5%; a
jackknife with t quantiles, in 93.5 to 98.5%, is no better, and does not serve regret. They tell what another sample of
architectures would have given, not what another supernet would. Ours. n architectures, R resamples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas.errors import InvalidInput

BAND, TOP, N_BEST = 0.05, 0.2, 5
LEAST_PAIRS = 6  # those of four architectures; fewer order nothing
_LEAST_REDRAWN = 8  # architectures below which a bootstrap has too few different draws to be an interval
_RESAMPLES = 2000
_FINE = 1e-12  # of products of floats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Agreement:
    """Tau over some pairs.

    Args:
        tau: between -1 and 1; None where it cannot be told.
        low: lower end of the 95% interval; None below 8 architectures.
        high: upper end.
        n: architectures that are in a pair.
        n_pairs: pairs compared, ties included.
        reason: why there is no tau.
    """

    tau: float | None
    low: float | None
    high: float | None
    n: int
    n_pairs: int
    reason: str | None = None


@dataclass(frozen=True)
class Regret:
    """What choosing by score loses, in the unit of the losses.

    Args:
        loss: the best true loss among the chosen, less the best of all; 0 where that is among them.
        low: lower end of the 95% interval; None below 8 architectures.
        high: upper end.
        standard_errors: `loss` in standard errors of the difference of these two; None where losses have none, or where
            the best is among the chosen.
        by_chance: the mean of choosing as many at random.
        n: architectures.
        n_chosen: how many of them are chosen.
        chosen: number of the best of the chosen.
        best: number of the best of all.
        reason: why there is no regret.
    """

    loss: float | None
    low: float | None
    high: float | None
    standard_errors: float | None
    by_chance: float | None
    n: int
    n_chosen: int
    chosen: int | None = None
    best: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Trust:
    """Agreement over all pairs, over those within a cost band, among the best by true loss, and regret."""

    overall: Agreement
    within_bands: Agreement
    top: Agreement
    regret: Regret


def trust(
    scores: ArrayLike, losses: ArrayLike, costs: ArrayLike, *, errors: ArrayLike | float | None = None, seed: int = 0
) -> Trust:
    """All four.

    Args:
        scores: (n,) losses by shared weights, or of whatever else is to be judged.
        losses: (n,) of the same architectures, each trained apart; the truth.
        costs: (n,) milliseconds, or another cost, above 0.
        errors: (n,) or one for all, standard error of each of `losses`; None: not known.
        seed: of the resamples.

    Raises:
        InvalidInput: the three are not as many finite numbers, or a cost or an error is out of range.
    """
    return Trust(
        overall=agreement(scores, losses, seed=seed),
        within_bands=within_bands(scores, losses, costs, seed=seed),
        top=among_best(scores, losses, seed=seed),
        regret=regret(scores, losses, errors=errors, seed=seed),
    )


def agreement(scores: ArrayLike, losses: ArrayLike, *, seed: int = 0) -> Agreement:
    """Tau-b over all pairs.

    Args:
        scores: (n,).
        losses: (n,).
        seed: of the resamples.

    Raises:
        InvalidInput: they are not as many finite numbers.
    """
    found, truth = _checked(scores, losses)
    return _agreement(found, truth, np.ones((len(found), len(found)), dtype=bool), seed)


def within_bands(
    scores: ArrayLike, losses: ArrayLike, costs: ArrayLike, *, band: float = BAND, seed: int = 0
) -> Agreement:
    """Tau-b over the pairs whose costs differ by at most a share of the lower one, all of them pooled.

    Args:
        scores: (n,).
        losses: (n,).
        costs: (n,) above 0.
        band: that share.
        seed: of the resamples.

    Raises:
        InvalidInput: they are not as many finite numbers, a cost is not above 0, or the band is negative.
    """
    found, truth = _checked(scores, losses)
    spent = _numbers("costs", costs, len(found))
    if (spent <= 0).any():
        raise InvalidInput(f"costs has {spent.min():g}; each must be above 0")
    if not band >= 0:
        raise InvalidInput(f"band is {band}; it must be 0 or more, 0.05 for 5%")
    low, high = np.minimum.outer(spent, spent), np.maximum.outer(spent, spent)
    return _agreement(found, truth, high <= low * (1 + band) + _FINE * low, seed)


def among_best(scores: ArrayLike, losses: ArrayLike, *, share: float = TOP, seed: int = 0) -> Agreement:
    """Tau-b among the best by true loss: a share of all, rounded up, and whoever ties with the last of them.

    Args:
        scores: (n,).
        losses: (n,).
        share: of the architectures.
        seed: of the resamples.

    Raises:
        InvalidInput: they are not as many finite numbers, or the share is not in (0, 1].
    """
    found, truth = _checked(scores, losses)
    if not 0 < share <= 1:
        raise InvalidInput(f"share is {share}; it must be above 0 and at most 1")
    if not len(truth):
        return _agreement(found, truth, np.ones((0, 0), dtype=bool), seed)
    kept = truth <= np.sort(truth)[math.ceil(share * len(truth)) - 1]
    return agreement(found[kept], truth[kept], seed=seed)


def regret(
    scores: ArrayLike,
    losses: ArrayLike,
    *,
    errors: ArrayLike | float | None = None,
    n_chosen: int = N_BEST,
    seed: int = 0,
) -> Regret:
    """What is lost by keeping the best of those with the least scores.

    Where scores tie the worse one is chosen, so that a score that tells nothing is not rewarded.

    Args:
        scores: (n,).
        losses: (n,).
        errors: (n,) or one for all, standard error of each of `losses`; None: not known.
        n_chosen: how many are chosen; with as few architectures there is nothing to lose, and no answer.
        seed: of the resamples.

    Raises:
        InvalidInput: they are not as many finite numbers, an error is negative, or none is to be chosen.
    """
    found, truth = _checked(scores, losses)
    n = len(found)
    spread = None if errors is None else _numbers("errors", np.full(n, errors) if np.ndim(errors) == 0 else errors, n)
    if spread is not None and (spread < 0).any():
        raise InvalidInput(f"errors has {spread.min():g}; a standard error is not negative")
    if n_chosen < 1:
        raise InvalidInput(f"n_chosen is {n_chosen}; it must be at least 1")
    if n <= n_chosen:
        reason = f"{n} architectures; with at most {n_chosen} of them all are chosen"
        return Regret(None, None, None, None, None, n, n_chosen, reason=reason)
    order = np.lexsort((-truth, found))
    chosen = int(min(order[:n_chosen], key=lambda number: truth[number]))
    best = int(truth.argmin())
    lost = float(truth[chosen] - truth[best])
    in_errors = None
    if spread is not None and lost > 0 and (error := math.hypot(spread[chosen], spread[best])) > 0:
        in_errors = lost / error
    low, high = _regret_interval(order, truth, n_chosen, seed) if n >= _LEAST_REDRAWN else (None, None)
    return Regret(lost, low, high, in_errors, _by_chance(truth, n_chosen), n, n_chosen, chosen, best)


def _checked(scores: ArrayLike, losses: ArrayLike) -> tuple[Floats, Floats]:
    found = _numbers("scores", scores, None)
    return found, _numbers("losses", losses, len(found))


def _numbers(name: str, given: ArrayLike, n: int | None) -> Floats:
    """Raises: InvalidInput: they are no finite numbers in a row, or not n of them."""
    found = np.asarray(given, dtype=np.float64)
    if found.ndim != 1:
        raise InvalidInput(f"{name} has {found.ndim} axes; it must have one, of architectures")
    if n is not None and len(found) != n:
        raise InvalidInput(f"{name} has {len(found)} numbers for {n} scores; give one for each")
    if not np.isfinite(found).all():
        first = int(np.flatnonzero(~np.isfinite(found))[0])
        raise InvalidInput(f"{name} has {found[first]} at {first}; leave out what diverged or was not measured")
    return found


def _agreement(scores: Floats, losses: Floats, compared: Bools, seed: int) -> Agreement:
    """Tau-b over the pairs marked in (n, n), symmetric; its diagonal does not matter."""
    compared = compared & ~np.eye(len(scores), dtype=bool)
    n, n_pairs = int(compared.any(axis=1).sum()), int(compared.sum()) // 2
    if n_pairs < LEAST_PAIRS:
        return Agreement(None, None, None, n, n_pairs, f"{n_pairs} pairs; at least {LEAST_PAIRS} are needed")
    ours, true = _signs(scores) * compared, _signs(losses) * compared
    for told, name in ((ours, "scores"), (true, "losses")):
        if not told.any():
            return Agreement(None, None, None, n, n_pairs, f"all {name} that are compared are equal")
    products = ours * true, ours * ours, true * true
    tau = float(_tau(products, np.ones((1, len(scores))))[0])
    if n < _LEAST_REDRAWN:
        return Agreement(tau, None, None, n, n_pairs)
    # By how often each was drawn, (R, n); resamples in which nothing is told apart have no tau.
    drawn = np.random.default_rng(seed).multinomial(len(scores), np.full(len(scores), 1 / len(scores)), _RESAMPLES)
    again = _tau(products, drawn.astype(np.float64))
    low, high = np.quantile(again[np.isfinite(again)], [0.025, 0.975])
    return Agreement(tau, float(low), float(high), n, n_pairs)


def _signs(values: Floats) -> Floats:
    """(n, n) of 1 where the first of a pair is larger, -1 where it is smaller, 0 where they tie."""
    return np.sign(np.subtract.outer(values, values))


def _tau(products: Sequence[Floats], weights: Floats) -> Floats:
    """(R,) of pairs that count by the product of their weights, (R, n); NaN where nothing is told apart."""
    both, ours, true = (((weights @ each) * weights).sum(axis=1) for each in products)
    with np.errstate(invalid="ignore"):
        found: Floats = both / np.sqrt(ours * true)
    return found


def _regret_interval(order: NDArray[np.intp], truth: Floats, n_chosen: int, seed: int) -> tuple[float, float]:
    """Of resamples, in which an architecture that was drawn twice can be chosen once."""
    n = len(truth)
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), _RESAMPLES)[:, order] > 0  # (R, n), by score
    losses = np.where(drawn, truth[order], np.inf)
    best = losses.min(axis=1)
    chosen = np.where(drawn.cumsum(axis=1) <= n_chosen, losses, np.inf).min(axis=1)
    low, high = np.quantile(chosen - best, [0.025, 0.975])
    return float(low), float(high)


def _by_chance(truth: Floats, n_chosen: int) -> float:
    """Mean regret of a random choice: the j-th best is the best of it in C(n - j, k - 1) of C(n, k) choices."""
    n, ordered = len(truth), np.sort(truth)
    ways = [math.comb(n - 1 - j, n_chosen - 1) / math.comb(n, n_chosen) for j in range(n)]
    return float(np.dot(ways, ordered) - ordered[0])
