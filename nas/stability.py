"""When the search phase has converged: PAR's threshold of 75% of blocks, made exact (par-search.md section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

CHECKS_PER_PHASE = 10
_SHARE = 0.75  # of slots with a choice whose leader is that of the check before
_IN_A_ROW = 3
_DISORDER = 0.5  # mean entropy as a share of that of equal probabilities


class Stability:
    """Counts checks in a row at which the leaders stood.

    Args:
        free: (L,) whether a slot has a choice; one that has none always stands, and tells nothing.
    """

    def __init__(self, free: Sequence[bool]) -> None:
        self.free = list(free)
        self.leaders: list[int] | None = None  # of the last check
        self.in_a_row = 0

    def check(self, leaders: Sequence[int], disorder: float) -> bool:
        """Whether alpha has converged.

        Args:
            leaders: (L,) most probable candidates.
            disorder: mean entropy as a share of that of equal probabilities, over slots with a choice.
        """
        if self.leaders is not None:
            each = zip(self.leaders, leaders, self.free, strict=True)
            same = [old == new for old, new, free in each if free]
            self.in_a_row = self.in_a_row + 1 if sum(same) >= _SHARE * len(same) else 0
        self.leaders = list(leaders)
        return self.in_a_row >= _IN_A_ROW and disorder < _DISORDER

    def state(self) -> dict[str, Any]:
        return {"leaders": self.leaders, "in_a_row": self.in_a_row}

    def restore(self, state: dict[str, Any]) -> None:
        self.leaders, self.in_a_row = state["leaders"], state["in_a_row"]
