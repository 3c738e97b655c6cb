"""Attention against its definitions, term by term.

B batch, T tokens, M memory, S = M + T keys, D model width, H query heads, K heads of keys and values, W head width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from nas.blocks.attention import Attention, average, shift, t5_bucket
from nas.blocks.base import Context, rotate, sinusoids
from nas.options import AttentionOptions, Shape
from nas.specs.attention import SPEC
from tests.nas.blocks.harness import B, D, H, T, context, inputs, make, shape_for, trained

W = D // H
LONG = 400  # tokens from which a window of 4 is applied by chunks
POSITIONS = ("none", "rotary", "relative_bias", "relative_bias_only", "transformer_xl")
over_positions = pytest.mark.parametrize("positions", POSITIONS)


def built(options: AttentionOptions, **shape: Any) -> Attention:
    made = trained(make("attention", options, shape_for(options, **shape)))
    assert isinstance(made, Attention)
    return made


def seen_by(block: Attention, tokens: int = T, **given: Any) -> Context:
    return context(tokens, causal=block.shape.causal, shape=block.shape, **given)


def memory_of(length: int) -> Tensor | None:
    return inputs(length, seed=7) if length else None


def by_definition(block: Attention, x: Tensor, seen: Context, open_: Tensor) -> Tensor:
    """Every score by its own formula, in loops. open_ (B, T, S) says which keys a query may see."""
    heads, kv_heads = block.options.heads(block.shape), block.options.kv_heads(block.shape)
    both = x if seen.memory is None else torch.cat([seen.memory, x], dim=1)
    earlier = both.shape[1] - x.shape[1]
    v = block.proj_v(both).reshape(B, -1, kv_heads, W)
    out = torch.zeros(B, x.shape[1], heads, W, dtype=torch.float64)
    if block.where != "relative_bias_only":
        q = block.proj_q(x).reshape(B, -1, heads, W)
        k = block.proj_k(both).reshape(B, -1, kv_heads, W)
    for h in range(heads):
        group = h // (heads // kv_heads)
        for i in range(x.shape[1]):
            scores = torch.full((B, both.shape[1]), -math.inf, dtype=torch.float64)
            for j in range(both.shape[1]):
                distance = torch.tensor(i + earlier - j)
                score = torch.zeros(B, dtype=torch.float64)
                if block.where == "rotary":
                    turned_q = rotate(q[:, i : i + 1, h], torch.tensor([i]))[:, 0]
                    turned_k = rotate(k[:, j : j + 1, group], torch.tensor([j - earlier]))[:, 0]
                    score = (turned_q * turned_k).sum(-1) / math.sqrt(W)
                elif block.where == "transformer_xl":
                    assert seen.biases is not None
                    u, v_bias = seen.biases
                    far = distance if seen.clamp_len is None else distance.clamp(max=seen.clamp_len)
                    r = block.proj_position(sinusoids(far[None].double(), D)).reshape(heads, W)[h]
                    score = ((q[:, i, h] + u[h]) * k[:, j, group] + (q[:, i, h] + v_bias[h]) * r).sum(-1) / math.sqrt(W)
                elif block.where != "relative_bias_only":
                    score = (q[:, i, h] * k[:, j, group]).sum(-1) / math.sqrt(W)
                if block.where in ("relative_bias", "relative_bias_only"):
                    score = score + block.table[t5_bucket(distance, seen.causal), h]
                scores[:, j] = score.masked_fill(~open_[:, i, j], -math.inf)
            out[:, i, h] = torch.einsum("bs,bsw->bw", scores.softmax(dim=-1), v[:, :, group])
    result: Tensor = block.proj_out(out.flatten(2))
    return result


def open_keys(tokens: int, earlier: int, causal: bool, window: int | None = None) -> Tensor:
    distance = torch.arange(tokens)[:, None] + earlier - torch.arange(earlier + tokens)
    open_ = distance >= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
    if window is not None:
        open_ = open_ & (distance.abs() < window)
    return open_.expand(B, -1, -1)


# Scores


@over_positions
@pytest.mark.parametrize(("tokens", "earlier"), [(4, 0), (4, 2), (3, 5), (1, 4), (1, 0)])
@pytest.mark.parametrize("window", [None, 3])
def test_scores_are_those_of_the_definition(positions: Any, tokens: int, earlier: int, window: int | None) -> None:
    block = built(AttentionOptions(positions=positions, window=window, bias=True))
    seen = seen_by(block, tokens, memory=memory_of(earlier))
    expected = by_definition(block, inputs(tokens), seen, open_keys(tokens, earlier, True, window))
    assert_close(block(inputs(tokens), seen), expected)


@pytest.mark.parametrize("positions", [each for each in POSITIONS if each != "transformer_xl"])
@pytest.mark.parametrize("window", [None, 2])
def test_bidirectional_scores_are_those_of_the_definition(positions: Any, window: int | None) -> None:
    block = built(AttentionOptions(positions=positions, window=window), causal=False)
    seen = seen_by(block, 5)
    expected = by_definition(block, inputs(5), seen, open_keys(5, 0, False, window))
    assert_close(block(inputs(5), seen), expected)


@over_positions
@pytest.mark.parametrize("kv_heads", [1, 2])
@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_grouped_keys_equal_keys_with_repeated_weights(positions: Any, kv_heads: int, kind: Any) -> None:
    if positions == "relative_bias_only" or (kind == "linear" and positions not in ("none", "rotary")):
        pytest.skip("the options refuse it")
    grouped = built(AttentionOptions(positions=positions, n_kv_heads=kv_heads, kind=kind))
    whole = built(AttentionOptions(positions=positions, kind=kind))
    weights = grouped.state_dict()
    for name in ("proj_k.weight", "proj_v.weight"):
        by_head = weights[name].reshape(kv_heads, W, D)
        weights[name] = by_head.repeat_interleave(H // kv_heads, dim=0).reshape(D, D)
    whole.load_state_dict(weights)
    seen = seen_by(grouped, memory=memory_of(3))
    assert_close(grouped(inputs(), seen), whole(inputs(), seen))


def test_kernel_is_given_no_mask_where_causality_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    kernel = F.scaled_dot_product_attention

    def recorded(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *rest: Any, **named: Any) -> Tensor:
        calls.append(("none" if mask is None else mask.dtype, rest[1:]))
        return kernel(q, k, v, mask, *rest, **named)

    monkeypatch.setattr(F, "scaled_dot_product_attention", recorded)
    for options in (AttentionOptions(), AttentionOptions(n_kv_heads=1), AttentionOptions(window=T)):
        block = built(options)
        block(inputs(), seen_by(block))
        both = built(options, causal=False)
        both(inputs(), seen_by(both))
    assert calls == [("none", (True,)), ("none", (False,))] * 2 + [("none", (True,)), (torch.bool, (False,))]
    block = built(AttentionOptions())
    block(inputs(), seen_by(block, memory=memory_of(2)))
    assert calls[-1] == (torch.bool, (False,))


# Transformer-XL


@pytest.mark.parametrize(("tokens", "earlier"), [(5, 0), (5, 3), (3, 7), (1, 6), (1, 0)])
def test_relative_shift_equals_a_double_loop(tokens: int, earlier: int) -> None:
    keys = earlier + tokens
    scores = torch.randn(2, H, tokens, keys, dtype=torch.float64)  # column c is of distance keys - 1 - c
    shifted = shift(scores)
    assert shifted.shape == scores.shape
    for i in range(tokens):
        for j in range(i + earlier + 1):
            distance = i + earlier - j
            assert_close(shifted[..., i, j], scores[..., i, keys - 1 - distance])


def test_clamp_at_the_longest_distance_changes_nothing() -> None:
    block = built(AttentionOptions(positions="transformer_xl"))
    seen = seen_by(block, 5, memory=memory_of(4))
    free = block(inputs(5), seen)
    assert_close(block(inputs(5), replace(seen, clamp_len=8)), free)
    assert not torch.allclose(block(inputs(5), replace(seen, clamp_len=7)), free)


def test_beyond_the_clamp_all_distances_have_the_same_keys() -> None:
    block = built(AttentionOptions(positions="transformer_xl"))
    seen = replace(seen_by(block, 5, memory=memory_of(4)), clamp_len=3)
    keys = block.position_keys(torch.arange(9), seen)
    assert_close(keys[:, 3:], keys[:, 3:4].expand(-1, 6, -1))
    assert not torch.allclose(keys[:, 2], keys[:, 3])
    expected = by_definition(block, inputs(5), seen, open_keys(5, 4, True))
    assert_close(block(inputs(5), seen), expected)


def test_position_keys_of_a_bfloat16_model_tell_far_distances_apart() -> None:
    block = built(AttentionOptions(positions="transformer_xl"), max_len=600)
    far, seen = torch.arange(600), seen_by(block)
    exact = block.position_keys(far, seen)
    rounded = block.bfloat16().position_keys(far, seen)
    assert (rounded - exact).abs().max() < 0.02 * exact.abs().max()  # 8 bits; distances in bfloat16 would be off by all


def test_sinusoids_are_dropped_in_training_alone() -> None:
    options = AttentionOptions(positions="transformer_xl")
    block = Attention(replace(shape_for(options), dropout=0.5), options)
    far, seen = torch.arange(9), seen_by(block)
    assert not torch.equal(block.position_keys(far, seen), block.position_keys(far, seen))
    block.eval()
    assert_close(block.position_keys(far, seen), block.position_keys(far, seen))


def test_u_and_v_get_their_gradients() -> None:
    block = built(AttentionOptions(positions="transformer_xl"))
    seen = seen_by(block, 3, memory=memory_of(2))
    assert seen.biases is not None
    biases = [each.requires_grad_() for each in seen.biases]

    def out(u: Tensor, v: Tensor) -> Tensor:
        return block(inputs(3), replace(seen, biases=(u, v)))

    assert torch.autograd.gradcheck(out, biases)


# Memory, spans and segments


@over_positions
@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("lengths", [(4, 4, 4), (2, 3, 7), (7, 4, 1)], ids=str)
def test_segments_equal_one_pass(positions: Any, window: int | None, lengths: tuple[int, ...]) -> None:
    block = built(AttentionOptions(positions=positions, window=window))
    whole = block(inputs(), seen_by(block))
    at = 0
    for length in lengths:
        segment = inputs()[:, at : at + length]
        seen = seen_by(block, length, memory=inputs()[:, :at] if at else None)
        seen = replace(seen, positions=torch.arange(at, at + length))
        assert_close(block(segment, seen), whole[:, at : at + length])
        at += length


def visible(block: Attention, seen: Context, tokens: int) -> Tensor:
    """(T, S): which memory and token inputs change the output of each query."""
    assert seen.memory is not None
    both = torch.cat([seen.memory, inputs(tokens)], dim=1)

    def out(both: Tensor) -> Tensor:
        return block(both[:, -tokens:], replace(seen, memory=both[:, :-tokens]))[0].sum(dim=-1)

    return torch.autograd.functional.jacobian(out, both)[:, 0].abs().sum(dim=-1) > 0


@over_positions
def test_same_length_lets_every_query_see_memory_plus_one_keys(positions: Any) -> None:
    block = built(AttentionOptions(positions=positions))
    seen = replace(seen_by(block, 5, memory=memory_of(6)), span=7)
    # query i sees keys i .. i + M, as the spec's S7 has it
    expected = torch.ones(5, 11, dtype=torch.bool).tril(6).triu()
    assert_close(visible(block, seen, 5), expected)
    assert (expected.sum(dim=1) == 7).all()


def test_window_counts_a_query_own_key() -> None:
    block = built(AttentionOptions(window=3))
    seen = seen_by(block, 5, memory=memory_of(6))
    assert_close(visible(block, seen, 5), torch.ones(5, 11, dtype=torch.bool).tril(6).triu(4))


# Relative bias


def test_causal_buckets_are_those_of_the_definition() -> None:
    """16 distances of their own; then bucket 16 + k from 16 * 8^(k / 16) on, that is 16 * 2^(3 k / 16), by hand."""
    firsts = [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
    expected = [max(bucket for bucket, first in enumerate(firsts) if first <= distance) for distance in range(200)]
    assert t5_bucket(torch.arange(200), causal=True).tolist() == expected
    assert t5_bucket(torch.tensor([-1, -50, 10**6]), causal=True).tolist() == [0, 0, 31]


def test_bidirectional_buckets_are_those_of_the_definition() -> None:
    """8 distances of their own to either side; then bucket 8 + k from 8 * 16^(k / 8) = 8 * 2^(k / 2) on, by hand."""
    firsts = [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]
    expected = [max(bucket for bucket, first in enumerate(firsts) if first <= distance) for distance in range(200)]
    assert t5_bucket(torch.arange(200), causal=False).tolist() == expected
    later = [16 + bucket for bucket in expected]
    later[0] = 0  # a token's own key is not later
    assert t5_bucket(-torch.arange(200), causal=False).tolist() == later


@pytest.mark.parametrize("padded", [False, True])
def test_weights_without_content_terms_ignore_what_tokens_say(padded: bool) -> None:
    """Weights that do not depend on x make the block linear in x."""
    block = built(AttentionOptions(positions="relative_bias_only"))
    padding = torch.ones(B, T, dtype=torch.bool)
    padding[0, 9:] = False
    seen = seen_by(block, key_padding=padding if padded else None)
    one, other = inputs(), inputs(seed=9)
    assert_close(block(one + 2 * other, seen), block(one, seen) + 2 * block(other, seen))
    assert {name for name, _ in block.named_parameters()} == {"table", "proj_v.weight", "proj_out.weight"}


def test_average_gives_zeros_where_nothing_is_allowed() -> None:
    bias = torch.randn(1, H, 3, 3, dtype=torch.float64, requires_grad=True)
    v = torch.randn(B, H, 3, W, dtype=torch.float64)
    allowed = torch.ones(B, 1, 3, 3, dtype=torch.bool)
    allowed[0, :, 1] = False
    out = average(bias, v, allowed, 0.0)
    assert_close(out[0, :, 1], torch.zeros(H, W, dtype=torch.float64))
    assert_close(out[1], average(bias, v, None, 0.0)[1])
    out.sum().backward()
    assert bias.grad is not None
    assert bias.grad.isfinite().all()


# Chunks of a window


@dataclass(frozen=True)
class Dense(AttentionOptions):
    """The same options, whose window is applied as a mask on all keys."""

    def chunk(self, shape: Shape, tokens: int, memory: int) -> int | None:
        return None


@over_positions
@pytest.mark.parametrize("earlier", [0, 2, 9])
@pytest.mark.parametrize(
    ("window", "span", "padded"), [(4, None, False), (4, None, True), (4, 3, False), (1, None, True)]
)
def test_chunks_equal_a_masked_product(
    positions: Any, earlier: int, window: int, span: int | None, padded: bool
) -> None:
    options = AttentionOptions(positions=positions, window=window)
    assert options.chunk(shape_for(options, max_len=LONG), LONG, earlier) == 64
    block, dense = built(options, max_len=LONG), built(Dense(positions=positions, window=window), max_len=LONG)
    check_equal(block, dense, earlier, span, padded)


@pytest.mark.parametrize("positions", [each for each in POSITIONS if each != "transformer_xl"])
@pytest.mark.parametrize("padded", [False, True])
def test_bidirectional_chunks_equal_a_masked_product(positions: Any, padded: bool) -> None:
    block, dense = (
        built(options(positions=positions, window=4), max_len=LONG, causal=False)
        for options in (AttentionOptions, Dense)
    )
    check_equal(block, dense, 0, None, padded)


def check_equal(block: Attention, dense: Attention, earlier: int, span: int | None, padded: bool) -> None:
    """Outputs, and gradients of the input and of every parameter."""
    padding = None
    if padded:
        padding = torch.ones(B, LONG, dtype=torch.bool)
        padding[0, 300:] = False
        padding[1, :80] = False  # the first chunk of this row sees nothing
    seen = replace(seen_by(block, LONG, memory=memory_of(earlier), key_padding=padding), span=span)
    found = []
    for each in (block, dense):
        x = inputs(LONG).requires_grad_()
        out = each(x, seen)
        found.append((out, *torch.autograd.grad(out.square().sum(), [x, *each.parameters()])))
    for one, other in zip(*found, strict=True):
        assert_close(one, other)


def test_chunks_are_used_only_where_they_pay() -> None:
    shape = Shape(D, H, 4096)
    assert AttentionOptions().chunk(shape, 4096, 0) is None
    assert AttentionOptions(window=64).chunk(shape, 4096, 0) == 64
    assert AttentionOptions(window=64).chunk(shape, 256, 0) is None
    assert AttentionOptions(window=300).chunk(shape, 4096, 0) == 300
    assert AttentionOptions(window=3000).chunk(shape, 4096, 0) is None
    long, longer = (SPEC.flops(shape, AttentionOptions(window=64), tokens, 0) for tokens in (2048, 4096))
    assert longer == 2 * long


# Incremental path


@over_positions
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize(("span", "clamp"), [(None, None), (5, 2), (2, None)])
def test_steps_keep_spans_and_clamps(positions: Any, window: int | None, span: int | None, clamp: int | None) -> None:
    block = built(AttentionOptions(positions=positions, window=window))
    seen = replace(seen_by(block), span=span, clamp_len=clamp)
    cache = block.new_cache(B, T + 2, seen)
    steps = torch.cat([block.step(inputs()[:, at : at + 1], cache) for at in range(T)], dim=1)
    assert_close(steps, block(inputs(), seen))


@pytest.mark.parametrize(
    "options", [AttentionOptions(window=4), AttentionOptions(kind="linear")], ids=["window", "linear"]
)
def test_steps_equal_chunks(options: AttentionOptions) -> None:
    block = built(options, max_len=LONG)
    seen, x = seen_by(block, LONG), inputs(LONG)
    cache = block.new_cache(B, LONG, seen)
    with torch.no_grad():
        steps = torch.cat([block.step(x[:, at : at + 1], cache) for at in range(LONG)], dim=1)
    assert_close(steps, block(x, seen))


def test_cache_of_a_window_and_of_sums_does_not_grow_with_the_length() -> None:
    shape = Shape(64, 4, 4096)
    for options, numbers in (
        (AttentionOptions(window=8), 2 * 4 * 8 * 16),
        (AttentionOptions(kind="linear"), 4 * 16 * 17),
    ):
        assert SPEC.cache_bytes is not None
        assert SPEC.cache_bytes(shape, options, 100, 3) == SPEC.cache_bytes(shape, options, 4000, 3) == 3 * 4 * numbers


# Counts


@pytest.mark.parametrize(
    ("d_model", "heads", "parameters"), [(512, 8, 1_311_744), (1024, 16, 5_244_928)], ids=["base", "large"]
)
def test_transformer_xl_block_has_the_parameters_of_the_spec(d_model: int, heads: int, parameters: int) -> None:
    shape, options = Shape(d_model, heads, 192, positions="transformer_xl"), AttentionOptions()
    layer_norm = 2 * d_model
    assert SPEC.parameters(shape, options) + layer_norm == parameters
    with torch.device("meta"):
        block = Attention(shape, options)
    assert sum(each.numel() for each in block.parameters()) + layer_norm == parameters


def test_relative_bias_only_has_half_of_the_projections_and_a_table() -> None:
    shape = Shape(768, 12, 128, causal=False)
    assert SPEC.parameters(shape, AttentionOptions(positions="relative_bias_only")) == 2 * 768**2 + 32 * 12
    assert SPEC.parameters(shape, AttentionOptions(positions="relative_bias")) == 4 * 768**2 + 32 * 12


@pytest.mark.parametrize(
    ("q", "m", "printed", "positions"),
    [(64, 640, 1.279, 0.369), (192, 192, 0.931, 0.201)],
    ids=["evaluation", "training"],
)
def test_transformer_xl_flops_are_those_of_the_spec(q: int, m: int, printed: float, positions: float) -> None:
    shape, d = Shape(512, 8, 192, positions="transformer_xl"), 512
    scores = 4 * q * (q + m) * d + 2 * q * (q + m) * d
    spec = 6 * (q + m) * d * d + scores + 2 * q * d * d
    position_keys = 2 * (q + m) * d * d
    assert abs(spec / 1e9 - printed) < 0.001  # printed with three decimals
    assert abs(position_keys / 1e9 - positions) < 0.001
    queries_of_memory = 2 * m * d * d  # released code makes them and throws them away; this block does not
    assert SPEC.flops(shape, AttentionOptions(), q, m) == spec + position_keys - queries_of_memory


@over_positions
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
@pytest.mark.parametrize(("window", "earlier"), [(4, 0), (4, 9), (70, 0)])
def test_flops_of_chunks_are_counted(positions: Any, causal: bool, window: int, earlier: int) -> None:
    if not causal and (earlier or positions == "transformer_xl"):
        pytest.skip("an encoder has neither memory nor Transformer-XL positions")
    options = AttentionOptions(positions=positions, window=window)
    shape = shape_for(options, causal=causal, max_len=600)
    block = Attention(shape, options).double()
    memory = inputs(earlier)[:1] if earlier else None
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        block(inputs(600)[:1], context(600, causal=causal, shape=shape, memory=memory))
    assert options.chunk(shape, 600, earlier) == max(64, window)
    assert counter.get_total_flops() == SPEC.flops(shape, options, 600, earlier)


def test_flops_of_long_linear_attention_are_counted() -> None:
    options = AttentionOptions(kind="linear", n_kv_heads=2)
    shape = shape_for(options, max_len=200)
    with FlopCounterMode(display=False) as counter:
        Attention(shape, options).double()(inputs(200)[:1], context(200, memory=inputs(70)[:1]))
    assert counter.get_total_flops() == SPEC.flops(shape, options, 200, 70)


@pytest.mark.parametrize(
    "options", [AttentionOptions(kind="linear"), *(AttentionOptions(positions=each) for each in POSITIONS)]
)
def test_any_length_will_do(options: AttentionOptions) -> None:
    reach = SPEC.reach(shape_for(options), options)
    assert reach.longest is None
    assert "any" in reach.why


@pytest.mark.parametrize("positions", ["relative_bias", "relative_bias_only"])
def test_relative_biases_that_training_has_not_reached_are_not_praised(positions: Any) -> None:
    def why(max_len: int, memory_length: int = 0) -> str:
        return SPEC.reach(Shape(D, H, max_len, memory_length=memory_length), AttentionOptions(positions=positions)).why

    assert "128 or more tokens away share" in why(129)
    assert why(129) == why(65, memory_length=64)
    assert why(128) == "any length runs, but it has learned nothing of distances beyond those of training"
    assert t5_bucket(torch.tensor([128, 10**6]), causal=True).tolist() == [31, 31]
