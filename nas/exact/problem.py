"""The integer program behind every derivation, as numbers: one candidate a slot, additive rows, and a small automaton.

A skipped slot holds no block, so architectures that differ only in where slots are skipped are one network. A network
is therefore a word: the codes of its blocks from first to last, skipped slots left out. L slots, K candidates, R rows,
S states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SKIPPED = 0  # the code of a slot that holds no block


@dataclass(frozen=True)
class Problem:
    """Maximise the sum of scores, then minimise the sum of costs, over one candidate per slot.

    Args:
        scores: of each candidate in each slot, (L, K) nats; -inf where it may not stand.
        costs: second criterion, what each candidate adds in any slot, (K,).
        codes: equal for candidates that are the same block with the same options, (K,); SKIPPED: no block.
        rows: what each candidate adds to each bounded sum, (R, K).
        limits: what each sum may be at most, (R,).
        slack: by how much rounding may carry a sum above its limit, (R,).
        steps: (S, K) the state behind a candidate, from each state; -1: it may not stand there. State 0 is the first.
    """

    scores: Floats
    costs: Floats
    codes: tuple[int, ...]
    rows: Floats
    limits: Floats
    slack: Floats
    steps: NDArray[np.int64]

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(L, K): whether a candidate may stand in a slot, as far as the slot alone can tell."""
        return np.isfinite(self.scores)

    def holds(self, choices: Sequence[int]) -> bool:
        """Whether these candidates, (L,), are allowed where they stand and meet every row and the automaton."""
        chosen = np.asarray(choices)
        if not self.usable[np.arange(len(chosen)), chosen].all():
            return False
        if (self.rows[:, chosen].sum(axis=1) > self.limits + self.slack).any():
            return False
        state = 0
        for choice in choices:
            state = int(self.steps[state, choice])
            if state < 0:
                return False
        return True

    def score(self, choices: Sequence[int]) -> float:
        """Sum of scores of one candidate per slot, nats."""
        return float(self.scores[np.arange(len(choices)), np.asarray(choices)].sum())

    def cost(self, choices: Sequence[int]) -> float:
        """Sum of the second criterion."""
        return float(self.costs[np.asarray(choices)].sum())

    def word(self, choices: Sequence[int]) -> tuple[int, ...]:
        """The network: codes of the blocks, skipped slots left out."""
        return tuple(self.codes[choice] for choice in choices if self.codes[choice] != SKIPPED)

    def with_row(self, row: Sequence[float] | Floats, limit: float, slack: float) -> Problem:
        """The problem with one more bounded sum."""
        return replace(
            self,
            rows=np.vstack([self.rows, np.asarray(row, np.float64)[None]]),
            limits=np.append(self.limits, limit),
            slack=np.append(self.slack, slack),
        )


def free_steps(n_candidates: int) -> NDArray[np.int64]:
    """The automaton that forbids nothing: one state."""
    return np.zeros((1, n_candidates), np.int64)


def apart_steps(codes: Sequence[int], mixers: Sequence[bool]) -> NDArray[np.int64]:
    """No mixer next to a mixer, with nothing but skipped slots between: two states, the last block was one or not."""
    steps = np.zeros((2, len(codes)), np.int64)
    for candidate, (code, mixes) in enumerate(zip(codes, mixers, strict=True)):
        steps[:, candidate] = [0, 1] if code == SKIPPED else [1, -1] if mixes else [0, 0]
    return steps
