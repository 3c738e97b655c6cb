"""Which candidate of a slot is best on held-out data, and which of these verdicts training time alone had made."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nas.ranking import flips, swapped_losses, winners

LABELS = ["attention", "ffn", "identity"]


def test_one_candidate_is_swapped_at_a_time_and_only_where_it_is_allowed() -> None:
    asked = []

    def losses(path: Sequence[int]) -> torch.Tensor:
        asked.append(list(path))
        return torch.tensor([float(path[0]), 10.0 * path[1]])

    found = swapped_losses([0, 1], [[True, True, True], [False, True, True]], losses)
    assert asked == [[0, 1], [1, 1], [2, 1], [0, 2]]
    assert found.shape == (2, 3, 2)
    assert found[0].tolist() == [[0.0, 10.0], [1.0, 10.0], [2.0, 10.0]]
    assert found[1].tolist() == [[torch.inf] * 2, [0.0, 10.0], [0.0, 20.0]]
    assert winners(found) == [0, 1]


def losses_of(*means: Sequence[float]) -> torch.Tensor:
    """(L, K, 50) with differences between candidates that have a standard error of 0.01."""
    noise = torch.randn(len(means), len(means[0]), 50, generator=torch.Generator().manual_seed(0))
    noise = (noise - noise.mean(-1, keepdim=True)) / noise.std(-1, keepdim=True)
    return torch.tensor(means)[..., None] + 0.05 * noise


def test_a_flip_beyond_a_standard_error_is_told_with_both_counts_of_updates() -> None:
    updates = torch.tensor([[300, 290, 290], [200, 199, 200]])
    after = losses_of([2.0, 1.9, 2.1], [2.0, 1.999, 2.1])
    assert winners(after) == [1, 1]
    told = flips([0, 0], after, updates, LABELS)
    assert len(told) == 1  # slot 1's is within its error
    assert told[0].startswith("slot 1: the ranking flipped from 'attention' to 'ffn', 0.1000 nats better (standard")
    assert "(now 300 and 290 updates); a larger method.uniform_share" in told[0]
    assert flips([1, 1], after, updates, LABELS) == []
