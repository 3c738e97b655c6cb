"""Identities of attention with Gaussian keys, against the formula written out (spec: mgk, section 10).

B batch, T tokens, S keys, D model width, H heads, W head width, M Gaussians per position.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from nas import catalog
from nas.blocks.attention import Attention
from nas.blocks.base import Context, allowed_keys, rotate
from nas.blocks.linear import features
from nas.blocks.mgk import (
    SCORES_AT_A_TIME,
    MixtureOfGaussianKeys,
    mix_shifted,
    mix_shifted_by_blocks,
    mix_slots,
    squared_norm,
)
from nas.options import AttentionOptions, MgkOptions, Shape
from tests.nas.blocks.cases_mgk import OPTIONS
from tests.nas.blocks.harness import B, D, T, context, inputs, make, trained

SOFTMAX = {case: options for case, options in OPTIONS.items() if options.kind == "softmax"}
LINEAR = {case: options for case, options in OPTIONS.items() if options.kind == "linear"}
H, W = 3, 4


def normal(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def mgk(options: MgkOptions, shape: Shape | None = None) -> MixtureOfGaussianKeys:
    block = make("mgk", options, shape or Shape(D, 4, max_len=T))
    assert isinstance(block, MixtureOfGaussianKeys)
    return block


def scores_of(q: Tensor, keys: Tensor, log_pi: Tensor, variance: Tensor) -> Tensor:
    """log pi_r - |q_i - k_jr|^2 / (2 sigma_r^2): (B, H, T, W), (B, H, M, S, W), (H, M), (H, M) -> (B, H, M, T, S)."""
    squares = (q[:, :, None, :, None] - keys[:, :, :, None]).square().sum(dim=-1)
    return log_pi[..., None, None] - squares / (2 * variance[..., None, None])


def weights_of(scores: Tensor, allowed: Tensor | None = None, hard: bool = False) -> Tensor:
    """The posterior of each position: (B, H, M, T, S) -> (B, H, T, S)."""
    joined = scores.amax(dim=2) if hard else scores.logsumexp(dim=2)
    if allowed is not None:
        joined = joined.masked_fill(~allowed, -torch.inf)
    return joined.softmax(dim=-1).nan_to_num(0.0)


def twin(block: MixtureOfGaussianKeys, x: Tensor, seen: Context) -> Tensor:
    """The block by its formulas, with every (i, j, r) term in memory; without dropout and memory."""
    heads = block.n_heads
    width = block.shape.head_width

    def split(x: Tensor) -> Tensor:
        return x.reshape(B, -1, heads, width).transpose(1, 2)

    q, v = split(x @ block.proj_q.weight.t()), split(x @ block.proj_v.weight.t())
    projected = block.options.n_projected
    keys = (x @ block.proj_k.weight.t()).reshape(B, -1, heads, projected, width).permute(0, 2, 3, 1, 4)
    if block.options.where(block.shape) == "rotary":
        q, keys = rotate(q, seen.positions), rotate(keys, seen.positions)
    if block.options.keys == "shifted":
        keys = keys + block.shifts.permute(1, 0, 2)[:, :, None]
    log_pi = torch.zeros(heads, block.n_keys, dtype=torch.float64)
    if hasattr(block, "logits"):
        log_pi = block.logits.log_softmax(dim=-1)
    allowed = allowed_keys(seen, x.shape[1])
    if block.options.kind == "linear":
        mixed_keys = (features(keys) * log_pi.exp()[..., None, None]).sum(dim=2)
        kernel = features(q) @ mixed_keys.mT
        kernel = kernel if allowed is None else kernel * allowed
        weights = (kernel / kernel.sum(dim=-1, keepdim=True)).nan_to_num(0.0)
    else:
        variance = torch.full((heads, block.n_keys), width**0.5, dtype=torch.float64)
        if hasattr(block, "log_variance"):
            variance = block.log_variance.exp().expand(heads, block.n_keys)
        hard = block.options.assignment == "hard"
        weights = weights_of(scores_of(q, keys, log_pi, variance), allowed, hard)
    return block.proj_out((weights @ v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("gradient", [True, False], ids=["training", "evaluation"])
def test_block_is_its_formula(options: MgkOptions, causal: bool, padded: bool, gradient: bool) -> None:
    block = trained(mgk(options))
    padding = None
    if padded:
        padding = torch.ones(B, T, dtype=torch.bool)
        padding[0, :3] = False  # so that a causal block has queries without keys
        padding[1, 9:] = False
    seen = context(causal=causal, key_padding=padding)
    if causal and not padded:
        seen = replace(seen, span=None if options.kind == "linear" else 5)
    with torch.set_grad_enabled(gradient):
        out = block(inputs(), seen)
    assert_close(out, twin(block, inputs(), seen))
    if padded and causal:
        assert (out[0, :3] == 0).all()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_gradients_are_those_of_the_formula(options: MgkOptions) -> None:
    block = trained(mgk(options))
    x = inputs().requires_grad_()
    each = (x, *block.parameters())
    target = normal(B, T, D, seed=5)
    ours = torch.autograd.grad((block(x, context()) * target).sum(), each)
    expected = torch.autograd.grad((twin(block, x, context()) * target).sum(), each)
    for one, other in zip(ours, expected, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("n_keys", [1, 2, 3])
def test_odd_heads_of_odd_width_are_no_special_case(options: MgkOptions, n_keys: int) -> None:
    options = replace(options, n_heads=3, n_keys=n_keys, positions="none")
    shape = Shape(15, 3, max_len=9, positions="none")
    block = trained(mgk(options, shape))
    x = normal(B, 9, 15)
    assert_close(block(x, context(9)), twin(block, x, context(9)))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_memory_is_read_as_the_tokens_before(options: MgkOptions) -> None:
    block = trained(mgk(options))
    x = inputs()
    seen = replace(context(T - 5, memory=x[:, :5]), positions=torch.arange(5, T))
    assert_close(block(x[:, 5:], seen), block(x, context())[:, 5:])


@pytest.mark.parametrize("options", SOFTMAX.values(), ids=SOFTMAX)
def test_incremental_path_keeps_to_the_span(options: MgkOptions) -> None:
    block = trained(mgk(options))
    seen = replace(context(), span=4)
    cache = block.new_cache(B, T, seen)
    steps = torch.cat([block.step(inputs()[:, at : at + 1], cache) for at in range(T)], dim=1)
    assert_close(steps, block(inputs(), seen))


def long(*extra: int, seed: int = 0) -> Tensor:
    return normal(2, H, *extra, seed=seed)


LONG, EARLIER = 300, 7  # some blocks of queries, of each kind of keys, and a part of one


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
@pytest.mark.parametrize("n_keys", [1, 2, 3])
@pytest.mark.parametrize("padded", [True, False], ids=["padded", "full"])
def test_blocks_of_queries_make_no_difference(causal: bool, n_keys: int, padded: bool) -> None:
    padding = torch.arange(LONG) < torch.tensor([[LONG], [LONG - 40]]) if padded else None
    seen = context(LONG, causal=causal, memory=normal(2, EARLIER, D), key_padding=padding)
    allowed = allowed_keys(seen, LONG)
    keys = EARLIER + LONG
    whole = [(0, LONG, keys)]
    v = long(keys, W, seed=3)
    target = long(LONG, W, seed=7)

    def gradients(out: Tensor, each: list[Tensor]) -> tuple[Tensor, ...]:
        return torch.autograd.grad((out * target).sum(), each, materialize_grads=True)

    slots = [long(LONG, W + 1, seed=1), long(keys, n_keys, W + 1, seed=2), v]
    slots = [part.requires_grad_() for part in slots]
    blocks = MgkOptions(n_keys=n_keys).blocks(LONG, EARLIER, causal)
    assert len(blocks) == (2 if causal else 1)
    ours, expected = mix_slots(*slots, allowed, blocks), mix_slots(*slots, allowed, whole)
    assert_close(ours, expected)
    for one, other in zip(gradients(ours, slots), gradients(expected, slots), strict=True):
        assert_close(one, other)

    blocks = MgkOptions(keys="shifted").blocks(LONG, EARLIER, causal)
    assert len(blocks) == 5
    terms = long(keys, seed=4), long(n_keys - 1, LONG, seed=5), long(n_keys - 1, keys, seed=6)
    each = [part.requires_grad_() for part in (long(LONG, W, seed=1), long(keys, W, seed=2), v, *terms)]
    for hard in (False, True):
        expected = mix_shifted(*each, allowed, whole, hard=hard)
        assert_close(mix_shifted(*each, allowed, blocks, hard=hard), expected)
        ours = mix_shifted_by_blocks(*each, allowed, blocks, hard=hard)
        assert_close(ours, expected)
        for one, other in zip(gradients(ours, each), gradients(expected, each), strict=True):
            assert_close(one, other)


def test_rows_of_the_batch_are_computed_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    block = trained(mgk(MgkOptions(n_heads=3, keys="shifted")))
    padding = torch.arange(T) < torch.tensor([[T], [7]])
    seen = context(key_padding=padding)
    together = block(inputs(), seen)
    monkeypatch.setattr("nas.blocks.mgk.SCORES_AT_A_TIME", 1)
    assert SCORES_AT_A_TIME > 3 * T * T * B
    assert_close(block(inputs(), seen), together)


def test_squared_norm_is_the_sum_of_squares_with_both_its_derivatives() -> None:
    x = normal(3, W).requires_grad_()
    assert_close(squared_norm(x), x.square().sum(dim=-1))
    assert torch.autograd.gradcheck(squared_norm, x)
    assert torch.autograd.gradgradcheck(squared_norm, x)
    zero = torch.zeros(1, W).requires_grad_()
    (gradient,) = torch.autograd.grad(squared_norm(zero), zero)
    assert (gradient == 0).all()


def test_gradient_of_a_gradient_of_shifted_keys_is_refused() -> None:
    block = mgk(MgkOptions(keys="shifted"))
    x = inputs().requires_grad_()
    (gradient,) = torch.autograd.grad(block(x, context()).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


# What the forms have in common, and where they part


def slots_of(q: Tensor, keys: Tensor, log_pi: Tensor, variance: Tensor, extra: int) -> tuple[Tensor, Tensor]:
    """Forms 4b (one extra channel) and 4c (two) of the spec, as it writes them."""
    over = variance[..., None]
    bias = log_pi[..., None] - keys.square().sum(dim=-1) / (2 * over)
    one = torch.ones_like(q[..., :1])
    scaled = keys / over[..., None]
    if extra == 1:
        return torch.cat([q, one], dim=-1), torch.cat([scaled, bias[..., None]], dim=-1)
    square = (-1 / (2 * over)).expand_as(bias)
    queries = torch.cat([q, q.square().sum(dim=-1, keepdim=True), one], dim=-1)
    return queries, torch.cat([scaled, square[..., None], bias[..., None]], dim=-1)


def attend(q: Tensor, slots: Tensor, v: Tensor) -> Tensor:  # (B, H, M, S, C) slots
    return mix_slots(q, slots.transpose(2, 3), v, None, [(0, q.shape[2], v.shape[2])])


def example(n_keys: int, *, equal: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    q, keys, v = normal(2, H, 5, W), normal(2, H, n_keys, 6, W, seed=1), normal(2, H, 6, W, seed=2)
    log_pi = normal(H, n_keys, seed=3).log_softmax(dim=-1)
    variance = normal(H, 1 if equal else n_keys, seed=4).exp().expand(H, n_keys)
    return q, keys, v, log_pi, variance


@pytest.mark.parametrize("n_keys", [1, 2, 3])
def test_a_bias_in_the_mask_and_extra_channels_are_the_mixture(n_keys: int) -> None:
    q, keys, v, log_pi, variance = example(n_keys, equal=True)
    expected = weights_of(scores_of(q, keys, log_pi, variance)) @ v
    bias = log_pi[..., None] - keys.square().sum(dim=-1) / (2 * variance[..., None])  # form 4a
    mask = bias.flatten(2)[:, :, None] * 1.0
    values = torch.cat([v] * n_keys, dim=2)
    scaled = (keys / variance[..., None, None]).flatten(2, 3)
    assert_close(F.scaled_dot_product_attention(q, scaled, values, mask, scale=1.0), expected)
    for extra in (1, 2):
        assert_close(attend(*slots_of(q, keys, log_pi, variance, extra), v), expected)


def test_unequal_variances_need_the_second_channel() -> None:
    q, keys, v, log_pi, variance = example(2, equal=False)
    expected = weights_of(scores_of(q, keys, log_pi, variance)) @ v
    assert_close(attend(*slots_of(q, keys, log_pi, variance, 2), v), expected)
    wrong = attend(*slots_of(q, keys, log_pi, variance, 1), v)
    assert (wrong - expected).abs().max() > 0.05


@pytest.mark.parametrize("n_keys", [1, 2, 3])
def test_causal_mask_of_slots_equals_queries_repeated_for_each_slot(n_keys: int) -> None:
    """Section 10, item 8: of M equal queries for a position, in a causal square of slots, the last sees all its own."""
    q, keys, v = normal(2, H, 6, W), normal(2, H, n_keys, 6, W, seed=1), normal(2, H, 6, W, seed=2)
    log_pi, variance = normal(H, n_keys, seed=3).log_softmax(dim=-1), normal(H, n_keys, seed=4).exp()
    queries, slots = slots_of(q, keys, log_pi, variance, 2)
    slots = slots.transpose(2, 3)
    masked = mix_slots(queries, slots, v, torch.ones(6, 6, dtype=torch.bool).tril(), [(0, 6, 6)])
    queries, v = (each.repeat_interleave(n_keys, dim=2) for each in (queries, v))
    repeated = F.scaled_dot_product_attention(queries, slots.flatten(2, 3), v, is_causal=True, scale=1.0)
    assert_close(repeated[:, :, n_keys - 1 :: n_keys], masked)


@pytest.mark.parametrize("n_keys", [2, 3])
def test_block_with_learned_variance_has_the_second_channel(n_keys: int) -> None:
    block = trained(mgk(MgkOptions(n_heads=H, n_keys=n_keys, variance="learned")))
    q, keys, v, _, _ = example(n_keys, equal=False)
    assert block.log_variance.std() > 0.1
    expected = weights_of(scores_of(q, keys, block.logits.log_softmax(dim=-1), block.log_variance.exp())) @ v
    queries, slots = block.slots(q, keys)
    assert queries.shape[-1] == slots.shape[-1] == W + 2
    assert_close(mix_slots(queries, slots, v, None, [(0, 5, 6)]), expected)


def test_variance_starts_at_the_fixed_one() -> None:
    for keys in ("free", "shifted"):
        learned = mgk(MgkOptions(keys=keys, variance="learned"))
        fixed = mgk(MgkOptions(keys=keys))
        fixed.load_state_dict({name: value for name, value in learned.state_dict().items() if name != "log_variance"})
        assert_close(learned(inputs(), context()), fixed(inputs(), context()))


def test_shifts_start_at_zero_and_at_half_a_normal() -> None:
    block = mgk(MgkOptions(n_heads=64, n_keys=9, keys="shifted"), Shape(1024, 64, max_len=T))
    assert (block.shifts[0] == 0).all()
    assert block.shifts[1:].std().item() == pytest.approx(0.5, abs=0.02)  # of 8192 draws: 5 standard errors
    assert mgk(MgkOptions()).logits.tolist() == [[0, 0]] * 2


def test_one_gaussian_is_attention_with_a_bias_for_each_key() -> None:
    block = trained(mgk(MgkOptions(n_heads=4, n_keys=1, positions="none")))
    attention = make("attention", AttentionOptions(positions="none"))
    assert isinstance(attention, Attention)
    attention.load_state_dict(block.state_dict())
    assert not torch.allclose(block(inputs(), context()), attention(inputs(), context()))
    q, k, v = (
        torch.unflatten(inputs() @ each.weight.t(), 2, (4, 4)).transpose(1, 2)
        for each in (block.proj_q, block.proj_k, block.proj_v)
    )
    width = 4
    scores = q @ k.mT / math.sqrt(width) - k.square().sum(dim=-1)[:, :, None] / (2 * math.sqrt(width))
    expected = scores.masked_fill(~allowed_keys(context(), T), -torch.inf).softmax(dim=-1) @ v  # type: ignore[operator]
    assert_close(block(inputs(), context()), block.proj_out(expected.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("keys", ["free", "shifted"])
def test_one_gaussian_of_equal_norms_is_the_attention_block(keys: Any) -> None:
    """Orthogonal projections of inputs of one norm give keys of one norm; queries may be of any."""
    shape = Shape(D, 1, max_len=T)
    block = mgk(MgkOptions(n_heads=1, n_keys=1, keys=keys), shape)
    torch.nn.init.orthogonal_(block.proj_k.weight)
    attention = make("attention", AttentionOptions(), shape)
    attention.load_state_dict({name: value for name, value in block.state_dict().items() if name != "shifts"})
    x = F.normalize(inputs(), dim=-1)
    assert_close(block(x, context()), attention(x, context()))


# Invariances


@pytest.mark.parametrize("n_keys", [2, 3])
def test_equal_keys_are_one_key_whatever_their_weights(n_keys: int) -> None:
    many, one = mgk(MgkOptions(n_keys=n_keys)), mgk(MgkOptions(n_keys=1))
    state = dict(one.state_dict())
    per_head = torch.unflatten(one.proj_k.weight, 0, (2, 4)).repeat_interleave(n_keys, dim=0).flatten(0, 1)
    state |= {"proj_k.weight": per_head, "logits": normal(2, n_keys)}
    many.load_state_dict(state)
    assert_close(many(inputs(), context()), one(inputs(), context()))
    many = mgk(MgkOptions(n_keys=n_keys, keys="shifted"))
    many.load_state_dict(dict(one.state_dict()) | {"shifts": torch.zeros(n_keys, 2, 4), "logits": normal(2, n_keys)})
    assert_close(many(inputs(), context()), one(inputs(), context()))


@pytest.mark.parametrize("keys", ["free", "shifted"])
@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_all_weight_on_one_gaussian_leaves_that_one(keys: Any, chosen: int) -> None:
    block = trained(mgk(MgkOptions(n_keys=3, keys=keys)))
    with torch.no_grad():
        block.logits.fill_(-1000.0)  # exp(-2000) is 0 in float64
        block.logits[:, chosen] = 1000.0
    one = mgk(MgkOptions(n_keys=1, keys=keys))
    state = {name: value for name, value in block.state_dict().items() if name != "logits"}
    if keys == "free":
        state["proj_k.weight"] = torch.unflatten(block.proj_k.weight, 0, (2, 3, 4))[:, chosen].flatten(0, 1)
    else:
        state["shifts"] = block.shifts[chosen : chosen + 1]
    one.load_state_dict(state)
    assert_close(block(inputs(), context()), one(inputs(), context()))


@pytest.mark.parametrize("keys", ["free", "shifted"])
@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_order_of_gaussians_and_a_constant_in_their_logits_make_no_difference(keys: Any, kind: Any) -> None:
    variance: Any = "learned" if kind == "softmax" else "fixed"
    block = trained(mgk(MgkOptions(n_keys=3, keys=keys, kind=kind, variance=variance)))
    expected = block(inputs(), context())
    order = [2, 0, 1]
    state = dict(block.state_dict())
    state["logits"] = state["logits"][:, order] + 3.5
    if keys == "free":
        state["proj_k.weight"] = torch.unflatten(state["proj_k.weight"], 0, (2, 3, 4))[:, order].flatten(0, 2)
        if variance == "learned":
            state["log_variance"] = state["log_variance"][:, order]
    else:
        state["shifts"] = state["shifts"][order]
    block.load_state_dict(state)
    assert_close(block(inputs(), context()), expected)


@pytest.mark.parametrize("case", ["default", "learned variance", "three shifted keys", "three hard"])
def test_moving_all_queries_and_keys_together_makes_no_difference(case: str) -> None:
    """Of distances; dot products would change."""
    block = trained(mgk(replace(OPTIONS[case], n_heads=H)))
    q, keys, v = normal(2, H, 5, W), normal(2, H, block.options.n_projected, 6, W, seed=1), normal(2, H, 6, W, seed=2)

    def mixed(q: Tensor, keys: Tensor) -> Tensor:
        blocks = [(0, 5, 6)]
        if block.options.keys == "free":
            return mix_slots(*block.slots(q, keys), v, None, blocks)
        q, k, terms = block.shifted(q, keys[:, :, 0])
        return mix_shifted(q, k, v, *terms, None, blocks, hard=block.options.assignment == "hard")

    move = normal(H, 1, W, seed=3)
    assert_close(mixed(q + move, keys + move[:, None]), mixed(q, keys))
    assert not torch.allclose(mixed(q + move, keys), mixed(q, keys))


def test_shifted_keys_in_dot_product_form_would_be_plain_attention() -> None:
    """Why there is no such option: the shifts' factor does not depend on the key."""
    q, k, v = normal(2, H, 5, W), normal(2, H, 6, W, seed=1), normal(2, H, 6, W, seed=2)
    shifts, log_pi = normal(H, 3, 1, W, seed=3), normal(H, 3, seed=4).log_softmax(dim=-1)
    scores = log_pi[..., None, None] + q[:, :, None] @ (k[:, :, None] + shifts).mT / math.sqrt(W)
    plain = F.scaled_dot_product_attention(q, k, v)
    for hard in (False, True):
        assert_close(weights_of(scores, hard=hard) @ v, plain)
    distances = scores_of(q, k[:, :, None] + shifts, log_pi, torch.full((H, 3), math.sqrt(W)).double())
    assert (weights_of(distances) @ v - plain).abs().max() > 0.05


# Posteriors


@given(seed=st.integers(0, 2**16), n_keys=st.integers(1, 4))
@settings(max_examples=20)
def test_responsibilities_sum_to_one_and_update_the_weights_to_weights(seed: int, n_keys: int) -> None:
    log_pi = normal(H, n_keys, seed=seed).log_softmax(dim=-1)
    variance = normal(H, n_keys, seed=seed + 1).exp()
    scores = scores_of(normal(1, H, 5, W, seed=seed), normal(1, H, n_keys, 6, W, seed=seed + 2), log_pi, variance)
    weights = weights_of(scores)
    assert (weights >= 0).all()
    assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))
    parts = scores.transpose(2, 3).flatten(3).softmax(dim=-1).unflatten(3, (n_keys, -1))  # a_ijr: (1, H, T, M, S)
    assert_close(parts.sum(dim=3), weights)
    responsibilities = scores.softmax(dim=2)
    assert_close(responsibilities.transpose(2, 3), parts / weights[:, :, :, None])
    assert_close(responsibilities.sum(dim=2), torch.ones_like(weights))
    updated = responsibilities.mean(dim=3)  # over queries: pi_jr of the paper's E step
    assert_close(updated.sum(dim=2), torch.ones_like(updated[:, :, 0]))


@given(seed=st.integers(0, 2**16), n_keys=st.integers(1, 5), log_variance=st.floats(-3, 3))
@settings(max_examples=30)
def test_nearest_gaussian_scores_at_most_log_m_above_the_equal_mixture(
    seed: int, n_keys: int, log_variance: float
) -> None:
    equal = torch.full((H, n_keys), -math.log(n_keys), dtype=torch.float64)
    variance = torch.full((H, n_keys), math.exp(log_variance), dtype=torch.float64)
    scores = scores_of(normal(1, H, 5, W, seed=seed), normal(1, H, n_keys, 6, W, seed=seed + 1), equal, variance)
    gap = scores.amax(dim=2) - equal[0, 0] - scores.logsumexp(dim=2)
    rounding = 1e-12 * scores.abs().max()
    assert (gap >= -rounding).all()
    assert (gap <= math.log(n_keys) + rounding).all()


def test_small_variance_makes_soft_assignment_hard() -> None:
    soft = trained(mgk(MgkOptions(keys="shifted", variance="learned", positions="none")))
    hard = mgk(MgkOptions(keys="shifted", variance="learned", positions="none", assignment="hard"))
    state = {name: value for name, value in soft.state_dict().items() if name != "logits"}
    with torch.no_grad():
        soft.logits.zero_()
    hard.load_state_dict(state)

    def apart(log_variance: float) -> float:
        for block in (soft, hard):
            with torch.no_grad():
                block.log_variance.fill_(log_variance)
        return (soft(inputs(), context()) - hard(inputs(), context())).abs().max().item()

    assert apart(0.0) > 1e-3
    assert apart(-14.0) < 1e-6  # scores of some thousand: the farther Gaussian is 0


# Linear form


def test_linear_form_mixes_behind_the_feature_map_not_before() -> None:
    block = trained(mgk(MgkOptions(kind="linear", positions="none")))
    q = torch.unflatten(inputs() @ block.proj_q.weight.t(), 2, (2, 4)).transpose(1, 2)
    v = torch.unflatten(inputs() @ block.proj_v.weight.t(), 2, (2, 4)).transpose(1, 2)
    keys = (inputs() @ block.proj_k.weight.t()).reshape(B, T, 2, 2, 4).permute(0, 2, 3, 1, 4)
    pi = block.logits.softmax(dim=-1)[..., None, None]

    def out(mixed_keys: Tensor) -> Tensor:
        kernel = (features(q) @ mixed_keys.mT).tril()
        mixed = (kernel / kernel.sum(dim=-1, keepdim=True)) @ v
        return block.proj_out(mixed.transpose(1, 2).flatten(2))

    assert_close(block(inputs(), context()), out((pi * features(keys)).sum(dim=2)))
    before = out(features((pi * keys).sum(dim=2)))
    assert (block(inputs(), context()) - before).abs().max() > 0.01


def test_linear_form_over_many_chunks_is_its_formula_and_its_recurrence() -> None:
    tokens = 150  # chunks of 64
    block = trained(mgk(MgkOptions(kind="linear", keys="shifted"), Shape(D, 4, max_len=tokens)))
    x = inputs(tokens)
    out = block(x, context(tokens))
    assert_close(out, twin(block, x, context(tokens)))
    cache = block.new_cache(B, tokens, context(tokens))
    assert_close(torch.cat([block.step(x[:, at : at + 1], cache) for at in range(tokens)], dim=1), out)


def test_linear_form_with_one_key_is_linear_attention() -> None:
    block = mgk(MgkOptions(n_heads=4, n_keys=1, kind="linear"))
    attention = make("attention", AttentionOptions(kind="linear"))
    attention.load_state_dict(block.state_dict())
    assert_close(block(inputs(), context()), attention(inputs(), context()))


# Stability and precision


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("gradient", [True, False], ids=["training", "evaluation"])
def test_far_queries_give_finite_outputs_and_gradients(options: MgkOptions, gradient: bool) -> None:
    block = mgk(options).float()
    with torch.no_grad():
        block.proj_q.weight *= 1e2
    x = inputs().float().requires_grad_(gradient)
    with torch.set_grad_enabled(gradient):
        out = block(x, context(dtype=torch.float32))
    assert out.isfinite().all()
    if gradient:
        out.sum().backward()
        assert all(each.grad is not None and each.grad.isfinite().all() for each in (x, *block.parameters()))


@pytest.mark.parametrize("options", SOFTMAX.values(), ids=SOFTMAX)
def test_single_precision_is_near_double(options: MgkOptions) -> None:
    block = trained(mgk(options))
    expected = block(inputs(), context())
    out = block.float()(inputs().float(), context(dtype=torch.float32))
    assert (out.double() - expected).abs().max() < 1e-5 * expected.abs().max().clamp_min(1)  # the spec's tolerance


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_scores_are_single_precision_under_autocast_and_in_a_half_precision_network(options: MgkOptions) -> None:
    block = mgk(options).float()
    expected = block(inputs().float(), context())
    half = mgk(options).bfloat16()
    x = inputs().bfloat16()
    seen = context(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        parts = block.project(x.float(), x.float(), seen.positions, seen.positions)
        outputs = [block(x.float(), seen), block_by_steps(block, x.float())]
    outputs += [half(x, seen), block_by_steps(half, x)]
    assert {each.dtype for each in (*parts, *half.project(x, x, seen.positions, seen.positions))} == {torch.float32}
    assert {each.dtype for each in half.new_cache(B, T, seen).tensors.values()} == {torch.float32}
    for out in outputs:  # inputs and projections are rounded to 8 bits
        assert out.dtype == torch.bfloat16
        assert (out.float() - expected).abs().max() < 0.05 * expected.abs().max().clamp_min(1)


def block_by_steps(block: MixtureOfGaussianKeys, x: Tensor) -> Tensor:
    cache = block.new_cache(B, T, context())
    return torch.cat([block.step(x[:, at : at + 1], cache) for at in range(T)], dim=1)


# Counts


def lra(**options: Any) -> int:
    """Weights of one layer of the LRA set-up (D 64, W 32, here as 2 heads of the shape), by the catalogue."""
    return catalog.block("mgk").parameters(Shape(64, 2, max_len=T), MgkOptions(**options))


def test_counts_of_the_spec() -> None:
    """Section 5's LRA layers have biases, on q, k, v and out, and two weights for each layer; ours have neither.

    MGK-4: 41,538 = 40,960 weights + 4 * 128 + 64 biases + 2; sMGK-4: 33,474 = 32,768 + 3 * 128 + 64 biases + 2 * 128
    shifts + 2. Ours has 2 weights for each of 4 heads.
    """
    assert lra(n_heads=4) == 41_538 - (4 * 128 + 64) - 2 + 8 == 40_968
    assert lra(n_heads=4, keys="shifted") == 33_474 - (3 * 128 + 64) - 2 + 8 == 33_032
    assert lra(n_heads=4, kind="linear") == lra(n_heads=4)
    assert lra(n_heads=4, n_keys=1) == 4 * 64 * 128
    attention = catalog.block("attention").parameters(Shape(64, 2, max_len=T), AttentionOptions(n_heads=8))
    assert attention == 66_368 - 3 * 256 - 64
    assert lra(n_heads=4) / attention == pytest.approx(2.5 / 4, rel=1e-3)  # projections: 37.5% less


def test_half_the_heads_of_the_head_width_by_default() -> None:
    block = mgk(MgkOptions())
    assert (block.n_heads, tuple(block.proj_q.weight.shape)) == (2, (2 * 4, D))


def test_shifted_keys_cost_one_product_for_any_m() -> None:
    shape = Shape(64, 2, max_len=512)
    flops = catalog.block("mgk").flops

    def pairs(**options: Any) -> int:
        return flops(shape, MgkOptions(**options), 512, 0) - flops(shape, MgkOptions(**options), 256, 0) * 2

    one, many = pairs(keys="shifted", n_keys=1), pairs(keys="shifted", n_keys=8)
    assert one == many
    assert pairs(n_keys=4) == 4 * pairs(n_keys=1)
    # 4 W for each pair of blocks of 64 in the lower triangle, less twice those of half the length
    assert one == 4 * 32 * 64 * 64 * (8 * 9 // 2 - 2 * (4 * 5 // 2))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_logits_and_shifts_are_there_where_they_act(options: MgkOptions) -> None:
    names = {name for name, _ in mgk(options).named_parameters() if "." not in name}
    expected = set()
    if options.n_keys > 1 and options.assignment == "soft":
        expected.add("logits")
    if options.keys == "shifted":
        expected.add("shifts")
    if options.variance == "learned":
        expected.add("log_variance")
    assert names == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_keys": 0}, "n_keys is 0; it must be between 1 and 64"),
        ({"n_heads": 0}, "n_heads is 0; it must be between 1 and 256"),
        ({"keys": "dot"}, "unknown keys 'dot'; known: free, shifted"),
        ({"assignment": "hard"}, "assignment is 'hard' with keys 'free'; it needs shifted keys"),
        (
            {"assignment": "hard", "keys": "shifted", "kind": "linear"},
            "assignment is 'hard' in the linear form, which has no scores to compare; use 'soft'",
        ),
        (
            {"variance": "learned", "kind": "linear"},
            "variance is 'learned' in the linear form, which has no variance; use 'fixed'",
        ),
    ],
    ids=["no keys", "no heads", "unknown keys", "hard free", "hard linear", "learned linear"],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        MgkOptions(**options)


def test_rotary_heads_of_odd_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^rotary positions need an even head width; d_model / n_heads is 5$"):
        mgk(MgkOptions(positions="rotary"), Shape(15, 3, max_len=T, positions="none"))
