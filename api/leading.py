"""Who leads: the one rule by which the page's strips, the lists and the command line name a slot's block.

L slots, K candidates. Standard library only: every process that shows a search uses it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def leading(
    probabilities: Sequence[Sequence[float | None]], null_gaps: Sequence[float | None] | None
) -> tuple[list[int], list[int]]:
    """The most probable candidate of each slot, and the slots where it leads by no more than chance.

    Args:
        probabilities: softmax(alpha), (L, K); None where a value was not a number.
        null_gaps: (L,) gap of log-probabilities that chance alone reaches; None where it is unknown: gap 0.
    """
    leaders, undecided = [], []
    for slot, row in enumerate(probabilities):
        values = [-1.0 if value is None else value for value in row]
        order = sorted(range(len(values)), key=lambda index: -values[index])
        leaders.append(order[0])
        if len(values) > 1:
            first, second = values[order[0]], values[order[1]]
            gap = math.inf if second <= 0 < first else math.log(first / second) if first > 0 else 0.0
            if gap <= ((null_gaps[slot] if null_gaps else None) or 0.0):
                undecided.append(slot)
    return leaders, undecided
