"""Student's t: how sure a mean is of a few values that stand for others, in most places one of each seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

LEVEL = 0.95  # of all intervals; a difference is found where its interval lies on one side of 0


def critical(freedom: float) -> float:
    """The quantile that half the width of a 95% interval has in standard errors."""
    from scipy.special import stdtrit  # whoever only reads results has no use for SciPy

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the 95% interval of a mean.

    Args:
        values: (S,) finite and independent.

    Raises:
        OverflowError: their squares are beyond all numbers.

    Returns:
        In their unit; None of fewer than two, which say nothing of another one.
    """
    if len(values) < 2:
        return None
    return critical(len(values) - 1) * stdev(values) / math.sqrt(len(values))
