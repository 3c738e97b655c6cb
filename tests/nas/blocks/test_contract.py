"""What every block of the registry promises, over all its options. B batch, T tokens, D model width."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from nas import catalog
from nas.blocks.base import Block, allowed_keys, key_positions, rotate, with_memory
from nas.blocks.ffn import FeedForward
from nas.options import FfnOptions, Shape
from tests.nas.blocks.harness import B, D, T, context, inputs, make, shape_for, trained

OPTIONS: dict[tuple[str, str], Any] = {
    (name, case): options
    for name in catalog.blocks()
    for case, options in import_module(f"tests.nas.blocks.cases_{name}").OPTIONS.items()
}
over_all = pytest.mark.parametrize(
    ("name", "options"), [pytest.param(key[0], each, id=" ".join(key)) for key, each in OPTIONS.items()]
)
over_causality = pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])


def shape_or_skip(options: Any, causal: bool) -> Shape:
    """Transformer-XL positions have no bidirectional form; `check` refuses them."""
    if not causal and getattr(options, "positions", None) == "transformer_xl":
        pytest.skip("Transformer-XL positions tell only earlier tokens apart")
    return shape_for(options, causal=causal)


def built(name: str, options: Any, causal: bool = True) -> tuple[Block, Shape]:
    shape = shape_or_skip(options, causal)
    return trained(make(name, options, shape)), shape


@over_all
@over_causality
@pytest.mark.parametrize("tokens", [1, 2, T - 1, T])
def test_any_length_up_to_the_maximum_runs(name: str, options: Any, causal: bool, tokens: int) -> None:
    block, shape = built(name, options, causal)
    out = block(inputs(tokens), context(tokens, causal=causal, shape=shape))
    assert out.shape == (B, tokens, D)
    assert out.isfinite().all()


@over_all
def test_causal_block_on_the_head_of_an_input_gives_the_head_of_its_output(name: str, options: Any) -> None:
    block, shape = built(name, options)
    whole = block(inputs(), context(shape=shape))
    for tokens in (1, 5):
        assert_close(block(inputs()[:, :tokens], context(tokens, shape=shape)), whole[:, :tokens])


@over_all
@settings(max_examples=5)
@given(cut=st.integers(1, T - 1))
def test_causal_block_ignores_later_tokens(name: str, options: Any, cut: int) -> None:
    block, shape = built(name, options)
    changed = inputs()
    changed[:, cut:] = inputs(seed=3)[:, cut:]
    before, after = block(inputs(), context(shape=shape)), block(changed, context(shape=shape))
    assert_close(after[:, :cut], before[:, :cut])
    if name != "identity":
        assert not torch.allclose(after[:, cut:], before[:, cut:])


@over_all
def test_rows_of_a_batch_do_not_mix(name: str, options: Any) -> None:
    block, shape = built(name, options)
    alone = block(inputs()[1:], context(shape=shape))
    assert_close(block(inputs(), context(shape=shape))[1:], alone)


@over_all
@over_causality
def test_padded_batch_equals_the_unpadded_run(name: str, options: Any, causal: bool) -> None:
    block, shape = built(name, options, causal)
    padding = torch.ones(B, T, dtype=torch.bool)
    padding[0, 8:] = False
    padded = block(inputs(), context(causal=causal, key_padding=padding, shape=shape))
    assert_close(padded[0, :8], block(inputs()[:1, :8], context(8, causal=causal, shape=shape))[0])
    assert_close(padded[1], block(inputs(), context(causal=causal, shape=shape))[1])


@over_all
def test_query_whose_keys_are_all_padding_gives_finite_outputs_and_gradients(name: str, options: Any) -> None:
    shape = shape_for(options)
    block = make(name, options, shape)
    padding = torch.ones(B, T, dtype=torch.bool)
    padding[0, :3] = False  # left padding: the first queries see nothing
    x = inputs().requires_grad_()
    out = block(x, context(key_padding=padding, shape=shape))
    assert out.isfinite().all()
    if out.requires_grad:
        out.square().sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()


@over_all
def test_memory_is_read_as_earlier_tokens_or_not_at_all(name: str, options: Any) -> None:
    block, shape = built(name, options)
    first, second = inputs()[:, :5], inputs()[:, 5:]
    alone = block(second, context(T - 5, shape=shape))
    seen = context(T - 5, shape=shape, memory=first)
    if getattr(options, "kind", None) == "linear" or getattr(options, "keys", None) == "shifted":
        # Rotary positions before a feature map, or with shifts behind the turn, are no function of distances alone.
        seen = replace(seen, positions=torch.arange(5, T))
    behind = block(second, seen)
    if not block.uses_memory:
        assert_close(behind, alone)
        return
    assert_close(behind, block(inputs(), context(shape=shape))[:, 5:])


@over_all
def test_every_parameter_and_the_input_get_a_finite_gradient(name: str, options: Any) -> None:
    block, shape = built(name, options)
    x = inputs().requires_grad_()
    out = block(x, context(shape=shape))
    if not list(block.parameters()):
        assert not out.requires_grad
        return
    out.square().sum().backward()
    for parameter_name, parameter in block.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert (parameter.grad != 0).any(), parameter_name
    assert x.grad is not None
    assert (x.grad != 0).any()


@over_all
@over_causality
def test_gradients_are_those_of_finite_differences(name: str, options: Any, causal: bool) -> None:
    block, shape = built(name, options, causal)
    if not list(block.parameters()):
        return
    x = inputs(tokens=3)[:1].requires_grad_()
    weights = list(block.parameters())

    def out(x: Tensor, *_: Tensor) -> Tensor:
        return block(x, context(3, causal=causal, shape=shape))

    # fast_mode: one random direction for all entries; forwards of large Jacobians would take minutes
    assert torch.autograd.gradcheck(out, (x, *weights), fast_mode=True)


@over_all
def test_parameters_are_the_catalogues(name: str, options: Any) -> None:
    shape = shape_for(options)
    counted = sum(parameter.numel() for parameter in make(name, options, shape).parameters())
    assert counted == catalog.block(name).parameters(shape, options)


@over_all
@pytest.mark.parametrize(
    ("causal", "tokens", "earlier"),
    [(True, T, 0), (True, 5, 0), (True, 5, 4), (False, T, 0), (False, 5, 0)],
    ids=["decoder", "decoder, short", "decoder behind memory", "encoder", "encoder, short"],
)
def test_flops_are_the_catalogues(name: str, options: Any, causal: bool, tokens: int, earlier: int) -> None:
    shape = shape_or_skip(options, causal)
    block = make(name, options, shape)
    memory = inputs(earlier)[:1] if earlier else None
    # The plain kernel, of matrix products that the counter sees: the fused one is a single call to it.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        block(inputs(tokens)[:1], context(tokens, causal=causal, shape=shape, memory=memory))
    # An FFT is no matrix product, and the counter does not know it; its formula has a test of its own.
    if getattr(options, "apply", None) == "fft":
        assert counter.get_total_flops() < catalog.block(name).flops(shape, options, tokens, earlier)
    else:
        assert counter.get_total_flops() == catalog.block(name).flops(shape, options, tokens, earlier)


@over_all
def test_token_by_token_equals_the_whole_pass(name: str, options: Any) -> None:
    block, shape = built(name, options)
    x, seen = inputs(), context(shape=shape)
    cache = block.new_cache(B, T, seen)
    steps = torch.cat([block.step(x[:, at : at + 1], cache) for at in range(T)], dim=1)
    assert_close(steps, block(x, seen))
    assert cache.position == T
    with pytest.raises(ValueError, match=f"^the cache is full: it was made for {T} tokens$"):
        block.step(x[:, :1], cache)


@over_all
def test_token_by_token_in_single_precision_is_within_1e_5(name: str, options: Any) -> None:
    block, shape = built(name, options)
    block = block.float()
    x, seen = inputs().float() / 2, context(shape=shape, dtype=torch.float32)
    cache = block.new_cache(B, T, seen)
    steps = torch.cat([block.step(x[:, at : at + 1], cache) for at in range(T)], dim=1)
    whole = block(x, seen)
    assert ((steps - whole).abs().max() / whole.abs().max().clamp_min(1)).item() < 1e-5


@over_all
@pytest.mark.parametrize("capacity", [1, 7, T])
def test_cache_holds_the_bytes_that_the_catalogue_tells(name: str, options: Any, capacity: int) -> None:
    shape = shape_for(options)
    block = make(name, options, shape).float()
    cache = block.new_cache(3, capacity, context(shape=shape, dtype=torch.float32))
    told = catalog.block(name).cache_bytes
    assert told is not None
    assert cache.nbytes == told(shape, options, capacity, 3)
    for _ in range(capacity):
        block.step(torch.randn(3, 1, D), cache)
    assert cache.nbytes == told(shape, options, capacity, 3), "a cache must not grow beyond what was told"


@over_all
def test_bidirectional_block_has_no_incremental_path(name: str, options: Any) -> None:
    block, _ = built(name, options, causal=False)
    with pytest.raises(
        ValueError, match=r"^a bidirectional block has no incremental path: each token would change all outputs$"
    ):
        block.new_cache(B, T, context(causal=False))


@over_all
@over_causality
def test_compiled_block_without_a_graph_break_gives_the_same(name: str, options: Any, causal: bool) -> None:
    block, shape = built(name, options, causal)
    torch.compiler.reset()
    compiled = torch.compile(block, fullgraph=True, backend="eager")
    for tokens in (T, 5):
        given = inputs(tokens), context(tokens, causal=causal, shape=shape)
        assert_close(compiled(*given), block(*given))


@over_all
def test_mixed_precision_is_near_single_precision(name: str, options: Any) -> None:
    shape = shape_for(options)
    block = make(name, options, shape).float()
    x, seen = inputs().float().requires_grad_(), context(shape=shape, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = block(x, seen)
    if out.requires_grad:
        out.float().square().sum().backward()
        assert all(each.grad is None or each.grad.isfinite().all() for each in block.parameters())
    # bfloat16 has 8 bits of precision; a block rounds some ten times one after the other
    expected = block(x, seen)
    assert (out.float() - expected).abs().max() < 0.05 * expected.abs().max().clamp_min(1)


@over_all
def test_dropout_acts_in_training_alone_and_keeps_the_mean(name: str, options: Any) -> None:
    shape = replace(shape_for(options), dropout=0.3, attention_dropout=0.3)
    if shape.positions == "transformer_xl":  # its dropout of sinusoids goes through the softmax: the mean is another
        shape = replace(shape, dropout=0.0)
    block = trained(make(name, options, shape)).eval()
    seen = context(shape=shape)
    expected = trained(make(name, options, shape_for(options)))(inputs(), seen)
    assert_close(block(inputs(), seen), expected)
    if name == "identity" or getattr(options, "kind", None) == "linear":
        return  # nothing to drop: linear attention has no probabilities
    block.train()
    draws = 4000
    dropped = block(inputs()[:1].expand(draws, -1, -1), seen)
    error = (dropped.mean(dim=0) - expected[0]).abs()
    noise = dropped.std(dim=0) / math.sqrt(draws)
    assert (noise > 0).any()
    assert (error <= 6 * noise + 1e-12).all()  # 6 sigma over 192 entries: one in a million runs, and the seed is fixed


@over_all
def test_each_rate_of_dropout_acts_on_what_it_is_for(name: str, options: Any) -> None:
    if name not in catalog.FAMILIES:
        pytest.skip("what a block of others drops is theirs to say")

    def acts(rate: str) -> bool:
        shape = replace(shape_for(options), **{rate: 0.5})
        block = trained(make(name, options, shape)).train()
        seen = context(shape=shape)
        return not torch.equal(block(inputs(), seen), block(inputs(), seen))

    has_scores = name in ("attention", "mgk") and options.kind == "softmax"
    assert acts("attention_dropout") == (has_scores or getattr(options, "attention_width", 0) > 0)
    has_sinusoids = getattr(options, "positions", None) == "transformer_xl"
    assert acts("dropout") == (name in ("ffn", "sgu") or has_sinusoids)


@over_all
def test_longest_input_is_what_the_catalogue_tells(name: str, options: Any) -> None:
    block, shape = built(name, options)
    reach = catalog.block(name).reach(shape, options)
    assert reach.longest == block.longest
    assert reach.why
    assert reach.why[0].islower()
    if block.longest is None:
        longer = inputs(2 * T)
        out = block(longer, context(2 * T, shape=shape))
        assert out.isfinite().all()
        assert_close(out[:, :T], block(longer[:, :T], context(shape=shape)))
    else:
        assert block.longest == shape.max_len


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
    nothing = make("identity", catalog.block("identity").options())(inputs(), context())
    assert_close(nothing, torch.zeros_like(inputs()))


# What blocks share


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
        block = make(name, catalog.block(name).options(), Shape(D, 4, T, positions=positions))
        last, swapped = block(inputs(), context())[:, -1], block(inputs()[:, order], context())[:, -1]
        assert torch.allclose(last, swapped) != differs


def by_definition(tokens: int, earlier: int, causal: bool, window: int | None, padding: Tensor | None) -> Tensor:
    """(B, T, S): key j, of which the first `earlier` are memory, is open to query i."""
    open_ = torch.zeros(B, tokens, earlier + tokens, dtype=torch.bool)
    for row in range(B):
        for i in range(tokens):
            for j in range(earlier + tokens):
                distance = i + earlier - j
                real = j < earlier or padding is None or bool(padding[row, j - earlier])
                near = window is None or abs(distance) < window
                open_[row, i, j] = (distance >= 0 or not causal) and near and real
    return open_


@given(
    tokens=st.integers(1, 6),
    earlier=st.integers(0, 4),
    causal=st.booleans(),
    window=st.none() | st.integers(1, 7),
    span=st.none() | st.integers(1, 7),
    padded=st.booleans(),
)
def test_allowed_keys_join_causality_windows_memory_and_padding(
    tokens: int, earlier: int, causal: bool, window: int | None, span: int | None, padded: bool
) -> None:
    padding = torch.arange(tokens).expand(B, -1) < torch.tensor([[1], [tokens]]) if padded else None
    memory = torch.zeros(B, earlier, D) if earlier else None
    seen = replace(context(tokens, causal=causal, key_padding=padding, memory=memory), span=span)
    allowed = allowed_keys(seen, tokens, window)
    narrowest = min([each for each in (window, span) if each is not None], default=None)
    expected = by_definition(tokens, earlier, causal, narrowest, padding)
    if allowed is None:
        assert expected.all()
    else:
        assert_close(allowed.reshape(-1, tokens, earlier + tokens).expand(B, -1, -1), expected)


def test_memory_stands_before_the_tokens() -> None:
    memory = inputs(3, seed=5)
    seen = context(4, memory=memory)
    assert key_positions(seen).tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert_close(with_memory(inputs(4), seen), torch.cat([memory, inputs(4)], dim=1))
    assert key_positions(context(4)).tolist() == [0, 1, 2, 3]


def test_ffn_has_the_activation_that_is_asked_for() -> None:
    def block(activation: Any) -> FeedForward:
        found = make("ffn", FfnOptions(ratio=3, activation=activation, bias=False))
        assert isinstance(found, FeedForward)
        return found

    x = inputs()
    relu, gelu, swiglu = block("relu"), block("gelu"), block("swiglu")
    assert_close(relu(x, context()), relu.proj_out(relu.proj_in(x).clamp_min(0)))
    hidden = gelu.proj_in(x)
    inner = math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)
    assert_close(gelu(x, context()), gelu.proj_out(0.5 * hidden * (1 + inner.tanh())))
    gate, value = swiglu.proj_in(x).split(FfnOptions(ratio=3, activation="swiglu").hidden(swiglu.shape), dim=-1)
    assert_close(swiglu(x, context()), swiglu.proj_out(gate * gate.sigmoid() * value))


@pytest.mark.parametrize("activation", ["gelu", "relu", "swiglu"])
def test_ffn_drops_hidden_activations(activation: Any) -> None:
    """At a rate near 1 almost all of them: what is left is the bias of the output."""
    block = make("ffn", FfnOptions(activation=activation), Shape(D, 4, T, dropout=1 - 1e-12)).train()
    assert isinstance(block, FeedForward)
    out = block(inputs(), context())
    assert_close(out, block.proj_out.bias.expand_as(out))
