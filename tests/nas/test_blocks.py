"""The contract of a block over the whole registry, and the identities that only one block has.

B batch, T tokens, D model width, H heads, W head width, M keys per position.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from nas import catalog
from nas.blocks import block_class, block_classes
from nas.blocks.attention import Attention
from nas.blocks.base import Block, Context, allowed_keys, rotate
from nas.blocks.ffn import FeedForward
from nas.blocks.mgk import MixtureOfGaussianKeys, mix
from nas.blocks.sgu import SpatialGatingUnit
from nas.errors import InvalidInput
from nas.options import AttentionOptions, FfnOptions, MgkOptions, SguOptions, Shape

B, T, D, H = 2, 12, 16, 4
SHAPE = Shape(D, H, max_len=T)
EXTRA_OPTIONS: dict[str, tuple[Any, ...]] = {
    "attention": (AttentionOptions(n_heads=3),),
    "ffn": (FfnOptions(ratio=1),),
    "sgu": (SguOptions(ratio=1),),
    "mgk": (MgkOptions(n_heads=3, n_keys=1), MgkOptions(n_heads=1, n_keys=3)),
}
CASES = [
    pytest.param(name, options, id=f"{name}-{number}")
    for name, spec in catalog.blocks().items()
    for number, options in enumerate((spec.options(), *EXTRA_OPTIONS.get(name, ())))
]


def make(name: str, options: Any, shape: Shape = SHAPE) -> Block:
    torch.manual_seed(0)
    return block_class(name)(shape, options).double()


def context(tokens: int = T, *, causal: bool = True, key_padding: Tensor | None = None) -> Context:
    lengths = None if key_padding is None else key_padding.sum(dim=1)
    return Context(causal=causal, positions=torch.arange(tokens), key_padding=key_padding, lengths=lengths)


def inputs(tokens: int = T, seed: int = 1) -> Tensor:
    return torch.randn(B, tokens, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def trained(block: Block) -> Block:
    """The block with every parameter moved, as if trained: a fresh SGU would hardly mix positions."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    return block


@pytest.mark.parametrize(("name", "options"), CASES)
def test_output_has_the_shape_of_the_input(name: str, options: Any) -> None:
    out = make(name, options)(inputs(), context())
    assert out.shape == (B, T, D)
    assert out.isfinite().all()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_inputs_shorter_than_max_len_equal_the_head_of_a_longer_input(name: str, options: Any) -> None:
    block = trained(make(name, options))
    assert_close(block(inputs()[:, :5], context(5)), block(inputs(), context())[:, :5])


@pytest.mark.parametrize(("name", "options"), CASES)
def test_causal_block_ignores_later_tokens(name: str, options: Any) -> None:
    block = trained(make(name, options))
    changed = inputs()
    changed[:, 7:] = inputs(seed=3)[:, 7:]
    assert_close(block(changed, context())[:, :7], block(inputs(), context())[:, :7])


@pytest.mark.parametrize("name", ["attention", "sgu", "mgk"])
def test_mixing_block_sees_earlier_tokens_and_later_ones_unless_causal(name: str) -> None:
    block = trained(make(name, catalog.block(name).options()))
    x = inputs().requires_grad_()
    (gradient,) = torch.autograd.grad(block(x, context())[0, 6].sum(), x)
    assert (gradient[0, :7].abs().sum(dim=-1) > 0).all()
    (gradient,) = torch.autograd.grad(block(x, context(causal=False))[0, 6].sum(), x)
    assert (gradient[0].abs().sum(dim=-1) > 0).all()
    assert (gradient[1] == 0).all(), "rows of a batch must not mix"


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_parameter_and_the_input_get_a_gradient(name: str, options: Any) -> None:
    block = make(name, options)
    x = inputs().requires_grad_()
    out = block(x, context())
    if not list(block.parameters()):
        assert not out.requires_grad
        return
    out.square().sum().backward()
    for parameter_name, parameter in block.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        # One key a head has one mixing weight, which is 1 whatever its logit.
        assert (parameter.grad != 0).any() or (parameter_name == "logits" and parameter.shape[1] == 1), parameter_name
    assert x.grad is not None
    assert (x.grad != 0).any()


@pytest.mark.parametrize("name", ["attention", "ffn", "sgu", "mgk"])
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    block = trained(make(name, catalog.block(name).options()))
    x = inputs(tokens=3)[:1].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: block(x, context(3)), (x,))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_parameter_count_is_the_catalogues(name: str, options: Any) -> None:
    counted = sum(parameter.numel() for parameter in make(name, options).parameters())
    assert counted == catalog.block(name).parameters(SHAPE, options)


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("tokens", [T, 5])
def test_flops_are_the_catalogues(name: str, options: Any, tokens: int) -> None:
    block = make(name, options)
    with FlopCounterMode(display=False) as counter:
        block(inputs(tokens)[:1], context(tokens))
    formula = catalog.block(name).flops(SHAPE, options, tokens)
    # torch counts matrix products, but not q k^T and a v inside the fused attention of the CPU.
    fused = 0
    if isinstance(block, Attention):
        fused = 4 * tokens**2 * block.n_heads * SHAPE.head_width
    elif isinstance(block, MixtureOfGaussianKeys):
        fused = 4 * tokens**2 * block.n_keys * block.n_heads * SHAPE.head_width
    assert counter.get_total_flops() + fused == formula


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
def test_padded_batch_equals_the_unpadded_run(name: str, options: Any, causal: bool) -> None:
    block = trained(make(name, options))
    padding = torch.ones(B, T, dtype=torch.bool)
    padding[0, 8:] = False
    padded = block(inputs(), context(causal=causal, key_padding=padding))
    assert_close(padded[0, :8], block(inputs()[:, :8], context(8, causal=causal))[0])
    assert_close(padded[1], block(inputs(), context(causal=causal))[1])


@pytest.mark.parametrize(("name", "options"), CASES)
def test_query_whose_keys_are_all_padding_gives_finite_outputs_and_gradients(name: str, options: Any) -> None:
    block = make(name, options)
    padding = torch.ones(B, T, dtype=torch.bool)
    padding[0, :3] = False  # left padding: the first queries see nothing
    x = inputs().requires_grad_()
    out = block(x, context(key_padding=padding))
    assert out.isfinite().all()
    if name in ("attention", "mgk"):
        assert (out[0, :3] == 0).all()
    if out.requires_grad:
        out.square().sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()


@pytest.mark.parametrize("name", ["attention", "mgk"])
@pytest.mark.parametrize("scale", [1e2, 1e3])
def test_far_queries_give_finite_outputs_and_gradients(name: str, scale: float) -> None:
    block = make(name, catalog.block(name).options()).float()
    x = (inputs().float() * scale).requires_grad_()
    out = block(x, context())
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_identity_returns_zeros() -> None:
    assert_close(
        make("identity", catalog.block("identity").options())(inputs(), context()), torch.zeros(B, T, D).double()
    )


# Positions


def test_rotation_keeps_norms_and_depends_on_distance_only() -> None:
    q, k = inputs()[0, :1], inputs()[1, :1]

    def at(x: Tensor, position: int) -> Tensor:
        return rotate(x, torch.tensor([position]))

    assert_close(at(q, 9).norm(), q.norm())
    assert_close((at(q, 9) * at(k, 4)).sum(), (at(q, 6) * at(k, 1)).sum())
    assert not torch.allclose((at(q, 9) * at(k, 4)).sum(), (at(q, 9) * at(k, 5)).sum())


@pytest.mark.parametrize("name", ["attention", "mgk"])
def test_only_rotary_positions_tell_orders_apart(name: str) -> None:
    order = torch.tensor([1, 0, *range(2, T)])
    for positions, differs in (("none", False), ("rotary", True)):
        block = make(name, catalog.block(name).options(), Shape(D, H, T, positions=positions))
        last, swapped = block(inputs(), context())[:, -1], block(inputs()[:, order], context())[:, -1]
        assert torch.allclose(last, swapped) != differs


def test_allowed_keys_join_causality_and_padding() -> None:
    padding = torch.tensor([[True, True, False]])
    assert allowed_keys(context(3, causal=False), 3) is None
    expected = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 0]], dtype=torch.bool)
    joined = allowed_keys(context(3, key_padding=padding), 3)
    assert joined is not None
    assert_close(joined[0, 0], expected)


# Attention


def test_attention_is_softmax_of_scaled_products() -> None:
    block = make("attention", AttentionOptions(), Shape(D, H, T, positions="none"))
    assert isinstance(block, Attention)
    q, k, v = (part.unflatten(-1, (H, D // H)).transpose(1, 2) for part in block.proj_in(inputs()).chunk(3, dim=-1))
    scores = q @ k.transpose(-1, -2) / math.sqrt(D // H)
    scores = scores.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf)
    expected = block.proj_out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))
    assert_close(block(inputs(), context()), expected)


# MGK


def naive_mix(q: Tensor, keys: Tensor, v: Tensor, log_pi: Tensor, allowed: Tensor) -> Tensor:
    """The distance form as the paper writes it, by log-sum-exp over r. Shapes as `mix`, but allowed is (T, T)."""
    sigma_squared = math.sqrt(q.shape[-1])
    distances = (q[None, :, :, :, None] - keys[:, :, :, None]).square().sum(dim=-1)  # (M, B, H, T, T)
    scores = (log_pi.t()[:, None, :, None, None] - distances / (2 * sigma_squared)).logsumexp(dim=0)
    return scores.masked_fill(~allowed, -math.inf).softmax(dim=-1) @ v


def mix_inputs(n_keys: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    q, v = (torch.randn(B, H, T, 6, dtype=torch.float64, generator=generator) for _ in range(2))
    keys = torch.randn(n_keys, B, H, T, 6, dtype=torch.float64, generator=generator)
    return q, keys, v, torch.randn(H, n_keys, dtype=torch.float64, generator=generator).log_softmax(dim=-1)


CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()


@pytest.mark.parametrize("n_keys", [1, 2, 3])
@pytest.mark.parametrize("allowed", [CAUSAL, torch.ones_like(CAUSAL)], ids=["causal", "bidirectional"])
def test_fused_mixture_equals_the_distance_form_with_gradients(n_keys: int, allowed: Tensor) -> None:
    parts = [part.requires_grad_() for part in mix_inputs(n_keys)]
    fused = mix(*parts, allowed.repeat(1, n_keys))
    naive = naive_mix(*parts, allowed)
    assert_close(fused, naive)
    weights = torch.randn(fused.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    for got, expected in zip(
        torch.autograd.grad((fused * weights).sum(), parts),
        torch.autograd.grad((naive * weights).sum(), parts),
        strict=True,
    ):
        assert_close(got, expected)


def test_mixture_without_a_mask_attends_everywhere() -> None:
    assert_close(mix(*mix_inputs(2), None), naive_mix(*mix_inputs(2), torch.ones_like(CAUSAL)))


def test_one_key_of_equal_norms_is_softmax_attention_and_of_other_norms_is_not() -> None:
    q, keys, v, log_pi = mix_inputs(1)
    equal = F.normalize(keys, dim=-1) * 3
    assert_close(mix(q, equal, v, log_pi, CAUSAL), F.scaled_dot_product_attention(q, equal[0], v, is_causal=True))
    plain = F.scaled_dot_product_attention(q, keys[0], v, is_causal=True)
    assert not torch.allclose(mix(q, keys, v, log_pi, CAUSAL), plain)


def test_equal_keys_are_one_key_whatever_their_weights() -> None:
    q, keys, v, log_pi = mix_inputs(3)
    one = naive_mix(q, keys[:1], v, torch.zeros(H, 1).double(), CAUSAL)
    assert_close(mix(q, keys[:1].expand(3, -1, -1, -1, -1), v, log_pi, CAUSAL.repeat(1, 3)), one)


def test_all_weight_on_one_key_is_that_key_alone() -> None:
    q, keys, v, _ = mix_inputs(2)
    log_pi = torch.tensor([-math.inf, 0.0], dtype=torch.float64).expand(H, 2)
    one = naive_mix(q, keys[1:], v, torch.zeros(H, 1).double(), CAUSAL)
    assert_close(mix(q, keys, v, log_pi, CAUSAL.repeat(1, 2)), one)


def test_mixture_ignores_the_order_of_keys_a_common_weight_and_a_common_shift() -> None:
    q, keys, v, log_pi = mix_inputs(2)
    allowed = CAUSAL.repeat(1, 2)
    expected = mix(q, keys, v, log_pi, allowed)
    assert_close(mix(q, keys.flip(0), v, log_pi.flip(1), allowed), expected)
    assert_close(mix(q, keys, v, log_pi + 5, allowed), expected)
    shift = torch.randn(H, 1, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    assert_close(mix(q + shift, keys + shift, v, log_pi, allowed), expected)


def test_mgk_block_with_one_key_of_equal_norms_is_the_attention_block() -> None:
    # A square orthogonal key projection of inputs of equal norm gives keys of equal norm; rotation keeps it.
    shape = Shape(D, 1, T)
    mgk = make("mgk", MgkOptions(n_heads=1, n_keys=1), shape)
    attention = make("attention", AttentionOptions(), shape)
    with torch.no_grad():
        torch.nn.init.orthogonal_(mgk.proj_in.weight[D : 2 * D])
    attention.load_state_dict({name: value for name, value in mgk.state_dict().items() if name != "logits"})
    x = F.normalize(inputs(), dim=-1) * math.sqrt(D)
    assert_close(mgk(x, context()), attention(x, context()))


def test_mgk_has_half_the_heads_of_the_head_width_by_default() -> None:
    block = make("mgk", MgkOptions())
    assert isinstance(block, MixtureOfGaussianKeys)
    assert block.n_heads == H // 2
    assert block.proj_out.weight.shape == (D, H // 2 * SHAPE.head_width)
    assert_close(block.logits, torch.zeros(H // 2, 2).double())


# SGU


def sgu(causal: bool = True) -> SpatialGatingUnit:
    block = make("sgu", SguOptions(), Shape(D, H, T, causal=causal))
    assert isinstance(block, SpatialGatingUnit)
    return block


def test_sgu_without_spatial_weights_is_an_ffn_of_half_the_expanded_width() -> None:
    block, ffn = sgu(), make("ffn", FfnOptions(ratio=2))
    assert isinstance(ffn, FeedForward)
    width = 2 * D
    with torch.no_grad():
        block.weight.zero_()
        ffn.proj_in.weight.copy_(block.proj_in.weight[:width])
        ffn.proj_in.bias.copy_(block.proj_in.bias[:width])
    ffn.proj_out.load_state_dict(block.proj_out.state_dict())
    assert_close(block(inputs(), context()), ffn(inputs(), context()))


def test_sgu_gates_the_first_half_by_a_weighted_sum_over_positions_of_the_second() -> None:
    block = trained(sgu())
    z1, z2 = F.gelu(block.proj_in(inputs()), approximate="tanh").chunk(2, dim=-1)
    z2 = block.norm(z2)
    gate = torch.stack(
        [sum(block.weight[i, j] * z2[:, j] for j in range(i + 1)) + block.bias[i] for i in range(T)], dim=1
    )
    assert_close(block(inputs(), context()), block.proj_out(z1 * gate))


def test_sgu_starts_near_an_open_gate() -> None:
    block = sgu()
    assert block.weight.abs().max() <= 1e-3 / T
    assert_close(block.bias, torch.ones(T).double())


def test_spatial_weights_of_the_future_get_no_gradient() -> None:
    block = trained(sgu())
    block(inputs(), context()).square().sum().backward()
    gradient = block.weight.grad
    assert gradient is not None
    assert (gradient.triu(1) == 0).all()
    assert (gradient.tril() != 0).sum() == T * (T + 1) // 2


# Registry


def test_block_classes_come_once_each_by_name() -> None:
    assert block_classes(["ffn", "attention", "ffn"]) == {"ffn": FeedForward, "attention": Attention}


def test_unknown_block_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="unknown candidate block 'sgux'; known: attention, ffn, identity, mgk, sgu"):
        block_class("sgux")


@pytest.mark.parametrize("path", ["nas.blocks.ffn:Missing", "nas.options:Shape"])
def test_class_path_that_names_no_block_is_refused(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    wrong = replace(catalog.block("ffn"), class_path=path)
    monkeypatch.setattr(catalog, "blocks", lambda: {"ffn": wrong})
    with pytest.raises(InvalidInput, match=r"'ffn' has class path .*, which names no subclass of"):
        block_class("ffn")
