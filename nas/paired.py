"""How sure a mean of paired differences is, of losses on the same held-out windows: one estimate for all who compare.

N windows.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def standard_error(difference: Tensor, *, neighbours: bool) -> float:
    """Of the mean of paired differences, by what a circular block bootstrap would converge to (Politis & Romano 1992).

    Args:
        difference: (N,) in the order of the text.
        neighbours: windows that stand side by side may go together, as those of a text do; False where each stands
            alone.

    Returns:
        In the unit of the differences; 0 where all are equal.
    """
    values = difference.double()
    n = len(values)
    block = max(1, round(n ** (1 / 3))) if neighbours else 1
    means = torch.cat([values, values[: block - 1]]).unfold(0, block, 1).mean(dim=1)  # (N,) by first window
    return math.sqrt(float((means - values.mean()).square().mean()) * block / n)
