"""Which path a weight step runs: strictly fair ones, alpha's own, and those that let starved candidates catch up.

Paths of alpha alone make the rich richer: what leads is trained more, and leads more (measured: 590 updates of one
candidate against 120 of another). Fair paths train every allowed candidate of a slot the same number of times, and
before anything is ranked the starved ones catch up. Guo et al. 2020 (arXiv:1904.00420) for uniform paths; strict
fairness is FairNAS's (Chu et al. 2021, arXiv:1907.01845). L slots, K candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from nas.gumbel import gumbel


class Paths:
    """Draws paths, one candidate of each slot, of those that are allowed there.

    Args:
        allowed: (L, K), at least one true in each row.
        generator: the only source of randomness; whoever saves the trial saves it.
    """

    def __init__(self, allowed: Sequence[Sequence[bool]], generator: Generator) -> None:
        self.allowed = torch.tensor(allowed)
        self.generator = generator
        self._rounds: list[list[int]] = [[] for _ in allowed]  # what is left of each slot's present order

    def fair(self) -> list[int]:
        """The next of each slot's round: every allowed candidate once, in an order drawn anew for each round."""
        for slot, left in enumerate(self._rounds):
            if not left:
                candidates = self.allowed[slot].nonzero()[:, 0]
                left += candidates[torch.randperm(len(candidates), generator=self.generator)].tolist()
        return [left.pop() for left in self._rounds]

    def own(self, logits: Tensor) -> list[int]:
        """Drawn from softmax(logits), slot by slot.

        Args:
            logits: (L, K), -inf where a candidate is not allowed.
        """
        noise = gumbel(torch.rand(logits.shape, generator=self.generator))
        drawn: list[int] = (logits.detach() + noise).argmax(dim=-1).tolist()
        return drawn

    def catch_up(self, updates: Tensor) -> list[int]:
        """The allowed candidate with the fewest updates in each slot, ties at random.

        Args:
            updates: (L, K) whole numbers.
        """
        ties = torch.rand(updates.shape, generator=self.generator, dtype=torch.float64)  # below 1: breaks ties alone
        fewest: list[int] = (updates + ties).masked_fill(~self.allowed, torch.inf).argmin(dim=-1).tolist()
        return fewest

    def state(self) -> dict[str, Any]:
        return {"rounds": self._rounds}

    def restore(self, state: dict[str, Any]) -> None:
        self._rounds = [list(left) for left in state["rounds"]]
