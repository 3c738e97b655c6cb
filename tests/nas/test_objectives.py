"""What is read and what is scored: shares of masking, fixed masks, and targets where they belong."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nas.config.task import Task
from nas.data.objectives import held_out_batch, masked_tokens, next_tokens, shuffled, training_batch
from nas.heads import IGNORE

MASK = 256  # behind the bytes
MASKED, CAUSAL = Task(objective="masked_lm"), Task()


def windows(n: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 256, (n, length + 1), generator=torch.Generator().manual_seed(seed))


def test_next_tokens_are_scored_everywhere() -> None:
    batch = next_tokens(torch.arange(10).reshape(2, 5))
    assert batch.tokens.tolist() == [[0, 1, 2, 3], [5, 6, 7, 8]]
    assert batch.targets.tolist() == [[1, 2, 3, 4], [6, 7, 8, 9]]


@given(n=st.integers(1, 5), length=st.integers(1, 200), seed=st.integers(0, 1000))
def test_every_window_has_15_percent_scored_and_at_least_one(n: int, length: int, seed: int) -> None:
    text = windows(n, length, seed)
    batch = masked_tokens(text, MASK, torch.Generator().manual_seed(seed))
    scored = batch.targets != IGNORE
    assert scored.sum(dim=1).tolist() == [max(1, round(0.15 * length))] * n
    assert torch.equal(batch.targets[scored], text[:, :-1][scored])
    assert torch.equal(batch.tokens[~scored], text[:, :-1][~scored])
    assert int(batch.tokens.max()) <= MASK
    assert batch.tokens.dtype == torch.int64


def test_scored_tokens_are_hidden_replaced_or_left_80_10_10_and_anywhere() -> None:
    text = torch.zeros(2000, 101, dtype=torch.long)  # a random byte differs from 0 but for 1 in 256
    batch = masked_tokens(text, MASK, torch.Generator().manual_seed(0))
    scored = batch.targets != IGNORE
    shown = batch.tokens[scored]
    n = len(shown)
    assert n == 30_000
    shares = [float((shown == MASK).sum()) / n, float(((shown != MASK) & (shown != 0)).sum()) / n]
    assert shares == pytest.approx([0.8, 0.1 * 255 / 256], abs=0.01)  # five standard errors are 0.0116 and 0.0087
    others = shown[(shown != MASK) & (shown != 0)].bincount(minlength=256)[1:]
    assert int(others.min()) > 0  # 3000 draws of 255 values: each is missed with probability 1e-5
    # Each place is scored in 15% of the windows; 5 standard errors of 2000 draws are 0.04.
    assert float((scored.float().mean(dim=0) - 0.15).abs().max()) < 0.04


def test_permutations_are_those_of_a_stable_sort_since_equal_numbers_come_about() -> None:
    drawn = torch.rand((20_000, 128), generator=torch.Generator().manual_seed(3))
    assert (drawn.sort(dim=1).values.diff(dim=1) == 0).any()
    expected = torch.from_numpy(drawn.numpy().argsort(axis=1, kind="stable"))
    assert torch.equal(shuffled((20_000, 128), torch.Generator().manual_seed(3)), expected)


def test_masks_follow_the_generator_which_causal_batches_leave_alone() -> None:
    text = windows(3, 40)
    drawn = [training_batch(MASKED, text, torch.Generator().manual_seed(seed)).tokens for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    training_batch(CAUSAL, text, generator)
    assert torch.equal(generator.get_state(), before)


def test_held_out_masks_depend_on_the_windows_number_alone() -> None:
    first, second = windows(4, 40, seed=0), windows(6, 40, seed=1)
    one, other = held_out_batch(MASKED, first), held_out_batch(MASKED, second)
    assert torch.equal(one.targets != IGNORE, other.targets[:4] != IGNORE)
    rows = {tuple(row) for row in (one.targets != IGNORE).tolist()}
    assert len(rows) == 4
    again = held_out_batch(MASKED, first)
    assert torch.equal(one.tokens, again.tokens)
    assert torch.equal(held_out_batch(CAUSAL, first).targets, first[:, 1:])
