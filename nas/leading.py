"""Who leads: the one rule by which the page's strips, the lists and the command line name a slot's block.

L slots, K candidates. Standard library only: every process that shows a search uses it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Matrix = Sequence[Sequence[float | None]]


def leading(probabilities: Matrix, null_gaps: Sequence[float | None] | None) -> tuple[list[int], list[int]]:
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


def of_path(
    path: Sequence[int], by_chance: Sequence[int], effect_nats: Matrix | None, effect_se: Matrix | None
) -> list[int]:
    """The undecided slots of the path that a parsimony pass holds: another candidate does as well within its error.

    The same rule as `nas.derive` has.

    Args:
        path: (L,) candidate of each slot.
        by_chance: slots that alpha leaves undecided; that counts where nothing was compared.
        effect_nats: (L, K) rise of the loss with each candidate that was tried; None: none was.
        effect_se: (L, K) its standard error.
    """
    undecided = []
    for slot, own in enumerate(path):
        nats = effect_nats[slot] if effect_nats else ()
        errors = effect_se[slot] if effect_se else ()
        tried = [
            rise - error
            for index, (rise, error) in enumerate(zip(nats, errors, strict=True))
            if index != own and rise is not None and error is not None
        ]
        if any(least <= 0 for least in tried) or (not tried and slot in by_chance):
            undecided.append(slot)
    return undecided
