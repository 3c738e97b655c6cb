"""Each slot's candidates ranked by held-out loss, before and after the starved ones have caught up.

A one-shot ranking may only reflect who was trained more. So behind the search phase alpha is frozen, candidates with
fewer updates catch up, and the leading path with one candidate swapped in is scored before and after, without any
training of its own. A slot whose winner changes by more than a standard error was ranked by training time: that is
told. Ours. L slots, K candidates, N windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nas.paired import standard_error


def swapped_losses(
    path: Sequence[int], allowed: Sequence[Sequence[bool]], losses: Callable[[Sequence[int]], Tensor]
) -> Tensor:
    """Losses of the path with one candidate swapped in, (L, K, N); infinite where it is not allowed.

    Args:
        path: (L,) the leading candidates.
        allowed: (L, K).
        losses: a path to the (N,) losses of held-out windows.
    """
    own = losses(path)
    found = torch.full((len(path), len(allowed[0]), len(own)), torch.inf)
    for slot, row in enumerate(allowed):
        for choice, may in enumerate(row):
            if may:
                edited = [*path[:slot], choice, *path[slot + 1 :]]
                found[slot, choice] = own if choice == path[slot] else losses(edited)
    return found


def winners(losses: Tensor) -> list[int]:
    """(L,) the candidate of the least mean loss in each slot, of losses (L, K, N)."""
    best: list[int] = losses.mean(dim=-1).argmin(dim=-1).tolist()
    return best


def flips(before: Sequence[int], losses: Tensor, updates: Tensor, labels: Sequence[str]) -> list[str]:
    """What to tell of slots whose winner has changed by more than one standard error of the paired difference.

    Args:
        before: (L,) winners before the starved candidates caught up.
        losses: (L, K, N) afterwards.
        updates: (L, K) weight updates that each has had in the end.
        labels: (K,).
    """
    told = []
    for slot, (old, new) in enumerate(zip(before, winners(losses), strict=True)):
        difference = losses[slot, old] - losses[slot, new]
        nats, error = float(difference.mean()), standard_error(difference, neighbours=False)
        if old != new and nats > error:
            told.append(
                f"slot {slot + 1}: the ranking flipped from {labels[old]!r} to {labels[new]!r}, {nats:.4f} nats better "
                f"(standard error {error:.4f}), once candidates run less had caught up (now {int(updates[slot, old])} "
                f"and {int(updates[slot, new])} updates); a larger method.uniform_share ranks by less of training time"
            )
    return told
