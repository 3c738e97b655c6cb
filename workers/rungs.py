"""Which samples end early: successive halving at fixed shares of their steps (ASHA, Li et al. 2020, arXiv:1810.05934).

Its rule of promotion, without its clock: a wave of samples comes to a rung, all seeds of each, before any of them is
judged, and a sample is judged against all of its own and earlier waves that came there. So the answer does not depend
on which trial ends first, and a restarted search, which reads the same records, drops the same samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from nas.steps import StepRecord

SHARES = (1 / 3, 2 / 3)  # of a sample's weight updates
LEAST = 2  # samples that go on at a rung, where as many came: a winner is told with what it won by


@dataclass(frozen=True)
class Standing:
    """Where a sample is at a rung, over all of its seeds.

    Args:
        loss: mean validation loss, nats per token.
        excess: what its expected cost is over the budget's first bound; 0 within it, and without one.
        step: weight updates done there.
    """

    loss: float
    excess: float
    step: int

    def is_behind(self, other: Standing) -> bool:
        """Of two where neither has both the lower loss and no more cost over the bound, neither is behind."""
        return other.loss < self.loss and other.excess <= self.excess


def until(rung: int, n_steps: int) -> int | None:
    """The weight update behind whose next report a trial waits for its rung; None where it runs to its end.

    Args:
        rung: from 0; len(SHARES) is the end.
        n_steps: of the trial, before its parsimony pass.
    """
    return math.ceil(SHARES[rung] * n_steps) if rung < len(SHARES) else None


def judged_loss(record: StepRecord) -> float:
    """Of paths drawn from alpha, in nats per token: alpha's leading path is anybody's before alpha has moved."""
    loss = record.val_loss_soft if record.val_loss_sampled is None else record.val_loss_sampled
    assert loss is not None  # each record of a search has it
    return loss


def dropped(wave: Mapping[int, Standing], all_there: Mapping[int, Standing]) -> dict[int, str]:
    """The samples of a wave that end at a rung, with their reasons: those behind at least half of all that came there.

    Args:
        wave: by number of the sample, those that are judged now.
        all_there: of this and earlier waves, those dropped there included.
    """
    behind = {
        number: sum(mine.is_behind(other) for at, other in all_there.items() if at != number)
        for number, mine in wave.items()
    }
    allowed = max(LEAST, math.ceil(len(all_there) / 2))
    return {
        number: f"pruned at step {wave[number].step}: behind {n} of {len(all_there) - 1} other samples"
        for number, n in behind.items()
        if n >= allowed
    }
