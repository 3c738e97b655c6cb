"""Linear attention against its quadratic form. B batch, H query heads, T tokens, W and V widths of keys and values."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from nas.blocks.linear import features, linear_attention, linear_step
from nas.specs.attention import linear_flops

B, H, W, V = 2, 4, 5, 3


def drawn(tokens: int, earlier: int = 0, kv_heads: int = H, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def normal(heads: int, length: int, width: int) -> Tensor:
        return torch.randn(B, heads, length, width, dtype=torch.float64, generator=generator)

    return (
        features(normal(H, tokens, W)),
        features(normal(kv_heads, earlier + tokens, W)),
        normal(kv_heads, earlier + tokens, V),
    )


def quadratic(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """The definition: weights q_i . k_j, normalised over the keys that query i may see."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    weights = torch.einsum("bhtw,bhsw->bhts", q, k)
    if causal:
        weights = weights.tril(k.shape[2] - q.shape[2])
    return torch.einsum("bhts,bhsv->bhtv", weights / weights.sum(dim=-1, keepdim=True), v)


def test_features_are_elu_plus_one() -> None:
    x = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    expected = torch.stack([x[0].exp(), torch.ones_like(x[1]), x[2] + 1])
    assert_close(features(x), expected)
    assert (features(torch.linspace(-100, 100, 50)) >= 0).all()


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.integers(1, 20),
    earlier=st.integers(0, 9),
    kv_heads=st.sampled_from([1, 2, 4]),
    causal=st.booleans(),
    chunk=st.integers(1, 24),
)
def test_any_chunking_equals_the_quadratic_form(
    tokens: int, earlier: int, kv_heads: int, causal: bool, chunk: int
) -> None:
    q, k, v = drawn(tokens, earlier, kv_heads)
    assert_close(linear_attention(q, k, v, causal=causal, chunk=chunk), quadratic(q, k, v, causal))


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_steps_equal_the_causal_form(kv_heads: int) -> None:
    q, k, v = drawn(9, kv_heads=kv_heads)
    sums = torch.zeros(B, kv_heads, W, V + 1, dtype=torch.float64)
    steps = [linear_step(*(each[:, :, at : at + 1] for each in (q, k, v)), sums) for at in range(9)]
    assert_close(torch.cat(steps, dim=2), linear_attention(q, k, v, causal=True))


@pytest.mark.parametrize("causal", [True, False])
def test_zero_features_take_a_key_out(causal: bool) -> None:
    q, k, v = drawn(7, earlier=2)
    keep = torch.tensor([0, 1, 2, 4, 5, 6, 7, 8])  # without key 3, token 1
    zeroed = k.clone()
    zeroed[:, :, 3] = 0
    expected = quadratic(q[:, :, 2:], k[:, :, keep], v[:, :, keep], causal)
    assert_close(linear_attention(q, zeroed, v, causal=causal)[:, :, 2:], expected)


@pytest.mark.parametrize("causal", [True, False])
def test_query_that_sees_nothing_gets_zeros_and_finite_gradients(causal: bool) -> None:
    q, k, v = (each.requires_grad_() for each in drawn(7))
    out = linear_attention(q, torch.zeros_like(k) * k, v, causal=causal)
    assert_close(out, torch.zeros_like(out))
    out.sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in (q, k, v))


def test_gradients_are_those_of_finite_differences() -> None:
    q, k, v = (each.requires_grad_() for each in drawn(5, earlier=2, kv_heads=2))
    assert torch.autograd.gradcheck(
        lambda *given: linear_attention(*given, causal=True, chunk=2), (q, k, v), fast_mode=True
    )


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
@pytest.mark.parametrize(("tokens", "earlier"), [(1, 0), (64, 0), (64, 3), (65, 0), (200, 70)])
@pytest.mark.parametrize("kv_heads", [1, 4])
def test_flops_are_counted(causal: bool, tokens: int, earlier: int, kv_heads: int) -> None:
    q, k, v = (each[:1] for each in drawn(tokens, earlier, kv_heads))
    with FlopCounterMode(display=False) as counter:
        linear_attention(q, k, v, causal=causal)
    assert counter.get_total_flops() == linear_flops(H, kv_heads, W, V, tokens, earlier, causal=causal)


def test_cost_grows_with_the_length_and_no_faster() -> None:
    short, long = (linear_flops(H, H, 64, 64, tokens, 0, causal=True) for tokens in (512, 4096))
    assert long == 8 * short


def test_running_sums_in_bfloat16_keep_growing() -> None:
    """Values are 0 in the first half and 1 in the second, so the last average is 1/2.

    A sum in bfloat16 stops at 2^14, where its numbers are 128 apart, when 64 is added.
    """
    ones = torch.ones(1, 1, 1024 * 64, 1, dtype=torch.bfloat16)
    v = ones.clone()
    v[:, :, : 512 * 64] = 0
    last = linear_attention(ones, ones, v, causal=True)[0, 0, -1, 0]
    assert abs(last.item() - 0.5) < 0.01  # bfloat16 near 1/2 is 0.002 apart; the result was rounded some times
