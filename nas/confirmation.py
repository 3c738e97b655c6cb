"""Whether a rule holds once it is trained: its layout against others of the same cost, on seeds that nobody has used.

The rule's layout and the others hold the same blocks, so they cost the same; they differ in order alone. It confirms a
placement if it is better than random placements, and no worse than the interleaved parent beyond a margin. Intervals
are Student's, over paired seeds: a percentile bootstrap over few seeds is much too narrow. Ours. S seeds, R placements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from nas.config.retrain import FEWEST
from nas.errors import InvalidInput
from nas.student import critical

MARGIN = 0.02  # bits per unit that a rule's layout may be worse than the parent and still do for it


@dataclass(frozen=True)
class Difference:
    """The rule's layout minus another, bits per unit of the task; fewer are better.

    Args:
        mean: of all pairs.
        low: lower end of its 95% interval.
        high: upper end.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Confirmation:
    """What retraining the rule's layout said.

    Args:
        layout: its string, a letter a slot.
        slots: its labels; () in one stored before they were kept.
        unit: of all differences, such as bits per byte.
        seeds: fresh ones.
        n_random: random placements of the same blocks; 0 where there are too few to hold a placement against.
        random: against them; None of none.
        parent: against the interleaved parent, which holds other blocks; None: the space has none.
        margin: that it may be worse than the parent.
    """

    layout: str
    unit: str
    seeds: tuple[int, ...]
    n_random: int
    random: Difference | None
    parent: Difference | None
    margin: float = MARGIN
    slots: tuple[str, ...] = ()

    @property
    def placement(self) -> Literal["better", "worse", "cannot tell"]:
        """Of the rule's layout against random placements of the same blocks."""
        if self.random is None:
            return "cannot tell"
        return "better" if self.random.high < 0 else "worse" if self.random.low > 0 else "cannot tell"

    @property
    def against_parent(self) -> Literal["no worse", "worse", "cannot tell"] | None:
        """Of the rule's layout against the parent, by the margin."""
        if self.parent is None:
            return None
        if self.parent.high <= self.margin:
            return "no worse"
        return "worse" if self.parent.low > self.margin else "cannot tell"

    def to_json(self) -> dict[str, Any]:
        told = {"placement": self.placement, "against_parent": self.against_parent}
        return {**asdict(self), "seeds": list(self.seeds), "slots": list(self.slots), **told}


def confirm(
    rule: ArrayLike,
    random: ArrayLike | None,
    parent: ArrayLike | None,
    *,
    layout: str,
    unit: str,
    seeds: Sequence[int],
    slots: Sequence[str] = (),
) -> Confirmation:
    """Compare test losses, paired by seed.

    Args:
        rule: mean test loss of the rule's layout, bits per unit, (S,).
        random: of each random placement, the same seeds, (R, S); None: there are too few to tell anything.
        parent: of the interleaved parent, (S,).
        layout: the rule's, as a string.
        unit: such as bits per byte.
        seeds: (S,).
        slots: labels of the rule's layout.

    Raises:
        InvalidInput: too few seeds or placements, shapes that do not pair up, or a loss that is not a number.
    """
    first = np.asarray(rule, np.float64)
    others = None if random is None else np.atleast_2d(np.asarray(random, np.float64))
    third = None if parent is None else np.asarray(parent, np.float64)
    given = [each for each in (first, others, third) if each is not None]
    if any(each.shape[-1:] != (len(seeds),) for each in given):
        raise InvalidInput(f"losses of {len(seeds)} seeds must be ({len(seeds)},) each and do not pair up")
    n_random = FEWEST if others is None else len(others)
    if min(n_random, len(seeds)) < FEWEST:
        raise InvalidInput(
            f"a confirmation has {len(seeds)} seeds and {n_random} random placements; it needs {FEWEST} of each at "
            "least"
        )
    if not all(np.isfinite(each).all() for each in given):
        raise InvalidInput("a test loss is not a number; one of the trainings has diverged")
    return Confirmation(
        layout=layout,
        unit=unit,
        seeds=tuple(seeds),
        n_random=0 if others is None else len(others),
        random=None if others is None else _against_many(first - others),
        parent=None if third is None else _against_one(first - third),
        slots=tuple(slots),
    )


def _against_one(differences: ArrayLike) -> Difference:
    """Of paired seeds, (S,)."""
    values = np.asarray(differences)
    return _interval(float(values.mean()), float(values.var(ddof=1)) / len(values), len(values) - 1)


def _against_many(differences: ArrayLike) -> Difference:
    """Of seeds and placements, (R, S): both are samples, and the smaller of the two gives the degrees of freedom.

    The variance of a mean over two crossed samples is at most the sum of those of its row and of its column means.
    """
    values = np.asarray(differences)
    n_random, n_seeds = values.shape
    variance = values.mean(axis=0).var(ddof=1) / n_seeds + values.mean(axis=1).var(ddof=1) / n_random
    return _interval(float(values.mean()), float(variance), min(n_random, n_seeds) - 1)


def _interval(mean: float, variance: float, freedom: int) -> Difference:
    half = critical(freedom) * sqrt(variance)
    return Difference(mean, mean - half, mean + half)
