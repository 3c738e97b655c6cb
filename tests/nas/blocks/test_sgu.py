"""What only the spatial gating unit does. B batch, T tokens, N max_len, D model width, G width of the gate.

The contract that all blocks keep (causality, padding, the incremental path, counts) is in test_contract.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from nas import catalog
from nas.backbone import make_norm
from nas.blocks import block_classes
from nas.blocks.ffn import FeedForward
from nas.blocks.sgu import SPATIAL_START, SpatialGatingUnit
from nas.config.method import Method
from nas.config.space import SearchSpace
from nas.data.parts import sample_windows
from nas.network import Network, Slot
from nas.options import FFT_FROM, FfnOptions, NetworkConfig, SguOptions, Shape, SlotConfig
from nas.specs.sgu import fft_flops, flops, parameters, reach
from nas.supernet import Supernet
from nas.training import weights_optimiser
from tests.nas.blocks.cases_sgu import OPTIONS
from tests.nas.blocks.harness import B, D, H, T, context, inputs, trained

SPATIAL: dict[str, dict[str, Any]] = {
    "free": {},
    "explicit": {"spatial": "toeplitz", "apply": "explicit"},
    "fft": {"spatial": "toeplitz", "apply": "fft"},
}
over_spatial = pytest.mark.parametrize("spatial", SPATIAL.values(), ids=SPATIAL)
over_toeplitz = pytest.mark.parametrize("apply", ["explicit", "fft"])
over_causality = pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
over_all = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)

BOUNDED = {name: options for name, options in OPTIONS.items() if options.spatial == "free" or options.bias == "vector"}

EXACT = {"rtol": 1e-12, "atol": 1e-12}  # the specification's bound in float64, for values of order 1


def unit(*, causal: bool = True, max_len: int = T, d_model: int = D, **options: Any) -> SpatialGatingUnit:
    torch.manual_seed(0)
    shape = Shape(d_model, 1, max_len, causal=causal, positions="none")
    return SpatialGatingUnit(shape, SguOptions(**options)).double()


def like_trained(block: SpatialGatingUnit) -> SpatialGatingUnit:
    """The block with every parameter moved, and spatial weights of order 1."""
    assert trained(block) is block
    with torch.no_grad():
        block.weight.copy_(drawn(*block.weight.shape, seed=4))
    return block


def drawn(*sizes: int, seed: int = 1) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def set_to(parameter: nn.Parameter, value: Tensor | float) -> None:
    with torch.no_grad():
        parameter.copy_(torch.as_tensor(value, dtype=parameter.dtype))


def copy_of(block: SpatialGatingUnit, **options: Any) -> SpatialGatingUnit:
    """The same parameters, where they are of the same size, in a unit of other options."""
    other = SpatialGatingUnit(block.shape, replace(block.options, **options)).double()
    own = other.state_dict()
    other.load_state_dict(
        {name: each for name, each in block.state_dict().items() if name in own and own[name].shape == each.shape},
        strict=False,
    )
    return other


# The start


@over_spatial
@over_causality
def test_closed_weights_and_an_open_bias_make_an_ffn_of_the_first_half(spatial: dict[str, Any], causal: bool) -> None:
    block = unit(causal=causal, **spatial)
    set_to(block.weight, 0)
    ffn = FeedForward(block.shape, FfnOptions(ratio=2)).double()
    half = 2 * D
    set_to(ffn.proj_in.weight, block.proj_in.weight[:half])
    set_to(ffn.proj_in.bias, block.proj_in.bias[:half])
    ffn.proj_out.load_state_dict(block.proj_out.state_dict())
    seen = context(causal=causal)
    assert_close(block(inputs(), seen), ffn(inputs(), seen), rtol=0, atol=1e-14)  # 1e-14: another order of sums


@pytest.mark.parametrize(
    ("gate", "bias"), [("additive", 0.0), ("multiplicative", 1.0)], ids=["additive", "multiplicative"]
)
def test_whole_width_gates_with_closed_weights_are_an_ffn_of_that_width(gate: str, bias: float) -> None:
    block = unit(gate=gate)
    set_to(block.weight, 0)
    set_to(block.bias, bias)
    ffn = FeedForward(block.shape, FfnOptions(ratio=4)).double()
    ffn.load_state_dict({name: each for name, each in block.state_dict().items() if name.startswith("proj")})
    assert_close(block(inputs(), context()), ffn(inputs(), context()), rtol=0, atol=1e-14)


def test_linear_gate_with_closed_weights_is_constant_over_inputs() -> None:
    block = unit(gate="linear")
    set_to(block.weight, 0)
    assert torch.equal(block(inputs(), context()), block(inputs(seed=5), context()))


@over_spatial
def test_at_closed_weights_only_the_spatial_weights_and_bias_learn_to_mix(spatial: dict[str, Any]) -> None:
    block = unit(**spatial)
    set_to(block.weight, 0)
    block(inputs(), context()).square().sum().backward()
    half = 2 * D
    for unmoved in (block.proj_in.weight.grad[half:], block.proj_in.bias.grad[half:], block.norm.weight.grad):
        assert (unmoved == 0).all()
    assert (block.norm.bias.grad == 0).all()
    assert (block.weight.grad.tril() if block.weight.ndim > 1 else block.weight.grad).abs().max() > 0
    assert (block.bias.grad != 0).all()


@pytest.mark.parametrize("max_len", [T, 128, 512])
@over_spatial
def test_fresh_gate_is_open(spatial: dict[str, Any], max_len: int) -> None:
    block = unit(causal=False, max_len=max_len, **spatial)
    gate = block.spatial(block.expand(drawn(B, max_len, D))[1], causal=False)
    # 1e-2 is the specification's bound. A mean of N weights below 1e-3 times entries of order 1 is far within it; the
    # usual start of a linear layer would give 0.6.
    assert 0 < (gate - 1).abs().max() < 1e-3


def test_fresh_gate_with_tiny_attention_is_near_open() -> None:
    block = unit(attention_width=64)
    assert block.attention is not None
    # Values of order 0.6, summed over 64 with output weights of 0.02: 0.1 where a token sees itself alone.
    added = block.attention(inputs(), context())
    assert 0.01 < added.std() < 0.2
    assert (block.attention.proj_out.bias == 0).all()


def test_all_gates_of_a_network_and_of_a_supernet_start_open() -> None:
    candidates = [
        {"label": f"sgu-{number}", "block": "sgu", "options": vars(options)}
        for number, options in enumerate(OPTIONS.values())
    ]
    space = SearchSpace.model_validate(
        {"n_slots": 2, "d_model": D, "n_heads": H, "max_len": T, "candidates": ["attention", "ffn", *candidates]}
    )
    slots = tuple(SlotConfig("sgu", vars(options)) for options in OPTIONS.values())
    classes = block_classes(["attention", "ffn", "sgu"])
    networks = (Supernet(space, 30, classes), Network(NetworkConfig(space.shape(), 30, slots), classes))
    for network, n_units in zip(networks, (2 * len(OPTIONS), len(OPTIONS)), strict=True):
        found = [module for module in network.modules() if isinstance(module, SpatialGatingUnit)]
        assert len(found) == n_units
        for block in found:
            assert (block.bias == 1).all()
            assert 0 < block.weight.abs().max() <= SPATIAL_START / T


# The residual


@over_all
def test_closed_output_leaves_the_slots_input_as_it_is(options: SguOptions) -> None:
    block = like_trained(SpatialGatingUnit(Shape(D, H, T), options).double())
    set_to(block.proj_out.weight, 0)
    set_to(block.proj_out.bias, 0)
    slot = Slot(make_norm("layer", D).double(), block)
    assert torch.equal(slot(inputs(), context()), inputs())


# Gates


@over_all
@over_causality
def test_output_is_the_papers_formula_written_out(options: SguOptions, causal: bool) -> None:
    block = like_trained(SpatialGatingUnit(Shape(D, H, T, causal=causal), options).double())
    x, gate_width = inputs(), options.gated(block.shape)
    z = F.gelu(x @ block.proj_in.weight.T + block.proj_in.bias, approximate="tanh")
    bypass, gated = (z[..., :gate_width], z[..., gate_width:]) if options.gate == "split" else (z, z)
    centred = gated - gated.mean(dim=-1, keepdim=True)
    gated = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * block.norm.weight + block.norm.bias
    mixed = torch.zeros_like(gated)
    for head in range(options.n_heads):
        channels = slice(head * gate_width // options.n_heads, (head + 1) * gate_width // options.n_heads)
        bias = block.bias.reshape(options.n_heads, -1)[head]
        for i in range(T):
            mixed[:, i, channels] += bias[i if len(bias) > 1 else 0]
            for j in range(T):
                if options.spatial == "free":
                    weight = block.weight[head, i, j] * (j <= i or not causal)
                else:
                    own = block.weight.reshape(options.n_heads, -1)[head]
                    weight = (own[i - j] if j <= i else own[0] * 0) if causal else own[i - j + T - 1]
                mixed[:, i, channels] += weight * gated[:, j, channels]
    if block.attention is not None:
        width = options.attention_width
        q, k, v = (x @ block.attention.proj_qkv.weight.T + block.attention.proj_qkv.bias).split(width, dim=-1)
        scores = q @ k.transpose(1, 2) / math.sqrt(width)
        if causal:
            scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
        mixed = mixed + block.attention.proj_out(scores.softmax(dim=-1) @ v)
    joined = {"linear": mixed, "additive": bypass + mixed}.get(options.gate, bypass * mixed)
    # Sums of 128 products of order 10 here: 1e-12 of the largest.
    expected = block.proj_out(joined)
    assert_close(block(x, context(causal=causal)), expected, rtol=0, atol=1e-12 * expected.abs().max().item())


def test_channels_share_their_spatial_weights() -> None:
    block = like_trained(unit())
    set_to(block.norm.weight, 1)
    set_to(block.norm.bias, 0)
    half = 2 * D
    order = torch.randperm(half, generator=torch.Generator().manual_seed(0))
    other = copy_of(block)
    both = torch.cat([order, order + half])
    set_to(other.proj_in.weight, block.proj_in.weight[both])
    set_to(other.proj_in.bias, block.proj_in.bias[both])
    set_to(other.proj_out.weight, block.proj_out.weight[:, order])
    assert_close(other(inputs(), context()), block(inputs(), context()))


@over_spatial
def test_order_of_tokens_matters_only_through_the_spatial_weights(spatial: dict[str, Any]) -> None:
    order = torch.randperm(T, generator=torch.Generator().manual_seed(0))
    block = like_trained(unit(causal=False, bias="scalar", **spatial))
    seen = context(causal=False)
    assert not torch.allclose(block(inputs()[:, order], seen), block(inputs(), seen)[:, order], atol=0.1)
    set_to(block.weight, 0)
    assert_close(block(inputs()[:, order], seen), block(inputs(), seen)[:, order])


@over_spatial
@over_causality
def test_spatial_sum_is_linear_in_its_input(spatial: dict[str, Any], causal: bool) -> None:
    block = like_trained(unit(causal=causal, **spatial))
    first, second = drawn(B, T, 2 * D, seed=5), drawn(B, T, 2 * D, seed=6)
    bias = block.bias[:, None]

    def product(gated: Tensor) -> Tensor:
        return block.spatial(gated, causal) - bias

    assert_close(product(2 * first - 3 * second), 2 * product(first) - 3 * product(second), rtol=1e-12, atol=1e-11)


# Toeplitz weights


def test_orientation_of_toeplitz_weights() -> None:
    block = unit(causal=False, max_len=3, spatial="toeplitz")
    set_to(block.weight, torch.arange(1.0, 6.0))
    assert block.matrix(3, causal=False).tolist() == [[[3, 2, 1], [4, 3, 2], [5, 4, 3]]]
    assert block.matrix(2, causal=False).tolist() == [[[3, 2], [4, 3]]]
    assert block.matrix(3, causal=True).tolist() == [[[3, 0, 0], [4, 3, 0], [5, 4, 3]]]


def test_causal_toeplitz_weights_begin_with_the_token_itself() -> None:
    block = unit(max_len=3, spatial="toeplitz")
    set_to(block.weight, torch.arange(1.0, 4.0))
    expected = [[[1, 0, 0], [2, 1, 0], [3, 2, 1]]]
    assert block.matrix(3, causal=True).tolist() == expected
    assert block.matrix(3, causal=False).tolist() == expected, "a causal block holds no weights of later tokens"


def test_toeplitz_weights_end_with_max_len() -> None:
    block = unit(causal=False, max_len=2, spatial="toeplitz", bias="scalar")
    set_to(block.weight, torch.arange(1.0, 4.0))
    assert block.matrix(4, causal=False).tolist() == [[[2, 1, 0, 0], [3, 2, 1, 0], [0, 3, 2, 1], [0, 0, 3, 2]]]
    assert block.matrix(4, causal=True).tolist() == [[[2, 0, 0, 0], [3, 2, 0, 0], [0, 3, 2, 0], [0, 0, 3, 2]]]


@given(max_len=st.integers(1, 9), tokens=st.integers(1, 14), heads=st.sampled_from([1, 2]), causal=st.booleans())
def test_toeplitz_matrix_is_constant_along_diagonals(max_len: int, tokens: int, heads: int, causal: bool) -> None:
    block = unit(causal=causal, max_len=max_len, d_model=2, spatial="toeplitz", bias="scalar", n_heads=heads)
    assert block.weight.shape == (heads * (max_len if causal else 2 * max_len - 1),)
    matrix = block.matrix(tokens, causal)
    assert matrix.shape == (heads, tokens, tokens)
    assert torch.equal(matrix[:, 1:, 1:], matrix[:, :-1, :-1])
    if causal:
        assert torch.equal(matrix, matrix.tril())


def by_convolution(block: SpatialGatingUnit, gated: Tensor) -> Tensor:
    """W gated of one head as a depth-wise convolution: torch correlates, so the kernel is turned over."""
    tokens, width = gated.shape[1:]
    kernel = block.kernel(tokens, block.shape.causal).flip(-1).expand(width, 1, -1)
    return F.conv1d(gated.transpose(1, 2), kernel, padding=tokens - 1, groups=width).transpose(1, 2)


@given(
    tokens=st.sampled_from([1, 2, 7, 12, 37, 64]),
    max_len=st.sampled_from([1, 12, 64, 80]),
    causal=st.booleans(),
    single=st.booleans(),
)
def test_fft_equals_the_matrix_and_a_convolution(tokens: int, max_len: int, causal: bool, single: bool) -> None:
    block = unit(causal=causal, max_len=max_len, d_model=3, spatial="toeplitz", apply="explicit", bias="scalar")
    weight = drawn(len(block.weight))
    weight[0] = -40 if not causal else weight[0]  # the corners, which a transform too short would fold in
    weight[-1] = 50
    set_to(block.weight, weight)
    set_to(block.bias, 0)
    fft = copy_of(block, apply="fft")
    gated = drawn(B, tokens, 6, seed=2)
    if single:
        block, fft, gated = block.float(), fft.float(), gated.float()
    expected = by_convolution(block, gated)
    # relative to the largest: 1e-12 and 1e-5 are the specification's bounds for sums like these
    bound = (1e-5 if single else 1e-12) * max(1, expected.abs().max().item())
    assert_close(block.spatial(gated, causal), expected, rtol=0, atol=bound)
    assert_close(fft.spatial(gated, causal), expected, rtol=0, atol=bound)


@pytest.mark.parametrize("tokens", [FFT_FROM, 1031])
@over_causality
def test_long_inputs_take_the_fft_and_give_what_the_matrix_gives(tokens: int, causal: bool) -> None:
    auto = unit(causal=causal, max_len=tokens, d_model=2, spatial="toeplitz", ratio=3)  # G = 3, which leaves one over
    set_to(auto.weight, drawn(len(auto.weight)))
    gated = drawn(1, tokens, 3)
    assert auto.options.fft_length(FFT_FROM - 1) is None
    assert auto.options.fft_length(tokens) is not None
    explicit = copy_of(auto, apply="explicit")
    # sums of about 1000 products of order 1, so of order 100 at most: 1e-12 of them
    assert_close(auto.spatial(gated, causal), explicit.spatial(gated, causal), rtol=0, atol=1e-10)


@given(tokens=st.integers(1, 8192))
def test_transforms_hold_the_input_twice_and_are_hardly_longer(tokens: int) -> None:
    length = SguOptions(spatial="toeplitz", apply="fft").fft_length(tokens)
    assert length is not None
    assert 2 * tokens <= length <= 2.5 * tokens
    assert tokens < FFT_FROM or length % 512 == 0
    auto = SguOptions(spatial="toeplitz").fft_length(tokens)
    assert auto == (length if tokens >= FFT_FROM else None)


def test_transforms_of_half_precision_run_in_single() -> None:
    block = unit(spatial="toeplitz", apply="fft").float()
    set_to(block.weight, drawn(T))
    gated = drawn(B, T, 2 * D).to(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = block.spatial(gated, causal=True)
    assert found.dtype == torch.float32
    assert_close(found, copy_of(block, apply="explicit").float().spatial(gated.float(), causal=True))


@over_toeplitz
@over_causality
def test_shifted_input_gives_a_shifted_sum_unless_the_bias_tells_positions(apply: str, causal: bool) -> None:
    vector = like_trained(unit(causal=causal, spatial="toeplitz", apply=apply))
    scalar = copy_of(vector, bias="scalar")
    first, second = torch.zeros(B, T, 2 * D, dtype=torch.float64), torch.zeros(B, T, 2 * D, dtype=torch.float64)
    first[:, 1:5] = second[:, 6:10] = drawn(B, 4, 2 * D)  # zeros after the norm: the norm of zeros is its shift

    def differ(block: SpatialGatingUnit) -> float:
        before, after = block.spatial(first, causal), block.spatial(second, causal)
        return (before[:, : T - 5] - after[:, 5:]).abs().max().item()

    assert differ(scalar) < 1e-12
    assert differ(vector) > 0.1
    free = like_trained(unit(causal=causal, bias="scalar"))
    assert differ(free) > 0.1


@over_toeplitz
@over_causality
def test_gradient_of_toeplitz_weights_is_the_diagonal_sum_of_the_matrix_gradient(apply: str, causal: bool) -> None:
    block = like_trained(unit(causal=causal, spatial="toeplitz", apply=apply))
    free = copy_of(block, spatial="free", apply="auto")
    set_to(free.weight, block.matrix(T, causal))
    for each in (block, free):
        (each(inputs(), context(causal=causal)) * inputs(seed=3)).sum().backward()
    sums = torch.stack([free.weight.grad[0].diagonal(-distance).sum() for distance in range(0 if causal else 1 - T, T)])
    assert_close(block.weight.grad, sums, rtol=1e-11, atol=1e-11 * sums.abs().max().item())


# Causality


@over_all
def test_later_tokens_change_nothing_before_them(options: SguOptions) -> None:
    block = like_trained(SpatialGatingUnit(Shape(D, H, T), options).double())
    optimiser = torch.optim.AdamW(block.parameters(), lr=0.01)
    changed = inputs()
    changed[:, 7:] = inputs(seed=3)[:, 7:]
    # bit by bit in a matrix; a transform spreads its rounding over all tokens
    bound = 1e-12 if options.apply == "fft" else 0.0
    for _ in range(6):
        before, after = block(inputs(), context()), block(changed, context())
        largest = before.abs().max().item()
        assert_close(after[:, :7], before[:, :7], rtol=0, atol=bound * largest)
        assert ((after - before)[:, 7:].abs().amax(dim=(0, 2)) > 1e-3).all()
        optimiser.zero_grad()
        before.square().mean().backward()
        optimiser.step()


def test_weights_of_later_tokens_get_no_gradient() -> None:
    free = like_trained(unit())
    free(inputs(), context()).square().sum().backward()
    assert free.weight.grad is not None
    assert torch.equal(free.weight.grad != 0, torch.ones(1, T, T, dtype=torch.bool).tril())
    toeplitz = like_trained(unit(causal=False, spatial="toeplitz"))
    toeplitz(inputs(), context(causal=True)).square().sum().backward()
    assert toeplitz.weight.grad is not None
    assert torch.equal(toeplitz.weight.grad != 0, torch.arange(2 * T - 1) >= T - 1)


@over_spatial
def test_bidirectional_output_of_the_head_of_an_input_is_not_the_head_of_its_output(spatial: dict[str, Any]) -> None:
    block = like_trained(unit(causal=False, **spatial))
    whole = block(inputs(), context(causal=False))
    assert (block(inputs()[:, :5], context(5, causal=False)) - whole[:, :5]).abs().max() > 0.1


# Length


@pytest.mark.parametrize("options", BOUNDED.values(), ids=BOUNDED)
def test_input_beyond_the_weights_reach_is_refused(options: SguOptions) -> None:
    block = SpatialGatingUnit(Shape(D, H, T), options).double()
    assert block.longest == T
    message = (
        "^length is 13 but max_len is 12; of spatial gating units only those with spatial 'toeplitz' and bias 'scalar' "
        "run beyond it$"
    )
    with pytest.raises(ValueError, match=message):
        block(inputs(T + 1), context(T + 1))
    with pytest.raises(ValueError, match=message):
        block.new_cache(B, T + 1, context())


@over_toeplitz
@pytest.mark.parametrize("attention_width", [0, 4])
def test_toeplitz_weights_beyond_max_len_are_a_window(apply: str, attention_width: int) -> None:
    block = like_trained(unit(spatial="toeplitz", apply=apply, bias="scalar", attention_width=attention_width))
    longer = like_trained(
        unit(max_len=3 * T, spatial="toeplitz", apply=apply, bias="scalar", attention_width=attention_width)
    )
    parameters = block.state_dict()
    parameters["weight"] = F.pad(block.weight, (0, 2 * T))
    longer.load_state_dict(parameters)
    x, seen = inputs(3 * T), context(3 * T)
    expected = longer(x, seen)
    assert_close(block(x, seen), expected)
    cache = block.new_cache(B, 3 * T, seen)
    steps = torch.cat([block.step(x[:, at : at + 1], cache) for at in range(3 * T)], dim=1)
    assert_close(steps, expected)


def test_reach_is_told_in_one_sentence() -> None:
    shape = Shape(D, H, T)
    assert [reach(shape, options).why for options in (
        SguOptions(), SguOptions(bias="scalar"), SguOptions(spatial="toeplitz"),
        SguOptions(spatial="toeplitz", bias="scalar"),
    )] == [
        "its spatial weights are one for each pair of positions, so it cannot run beyond max_len, 12 tokens",
        "its spatial weights are one for each pair of positions, so it cannot run beyond max_len, 12 tokens",
        "its bias is one for each position, so it cannot run beyond max_len, 12 tokens",
        "its weights go by distance, so any length will do, mixed up to 11 tokens apart",
    ]  # fmt: skip


# Records of a text, one answer in each: the token at row MARK is always 1, all others are drawn. Only its row tells it.
RECORD, MARK = 8, 4


def records(n: int, seed: int) -> NDArray[np.uint8]:
    rows = np.random.default_rng(seed).integers(0, 2, (n, RECORD)).astype(np.uint8)
    rows[:, MARK] = 1
    return rows.reshape(-1)


def windows_at(text: NDArray[np.uint8], shift: int) -> Tensor:
    """(n, RECORD + 1) windows that begin `shift` tokens into each record."""
    starts = np.arange(len(text) // RECORD - 2) * RECORD + shift
    return torch.from_numpy(text[starts[:, None] + np.arange(RECORD + 1)].astype(np.int64))


def nats_of_the_answer_by_shift(shifted: bool) -> list[float]:
    """Train a small network on windows aligned with the records, or at random places; its loss at each shift."""
    torch.manual_seed(0)
    network = Network(NetworkConfig(Shape(16, 4, RECORD), 2, (SlotConfig("sgu"),)), block_classes(["sgu"]))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(1)
    text = records(4000, seed=0)
    aligned = windows_at(text, 0)
    for _ in range(100):
        if shifted:
            windows = sample_windows(text, 64, RECORD, generator)
        else:
            windows = aligned[torch.randint(len(aligned), (64,), generator=generator)]
        optimiser.zero_grad()
        F.cross_entropy(network(windows[:, :-1]).transpose(1, 2), windows[:, 1:]).backward()
        optimiser.step()
    losses = []
    for shift in range(RECORD):
        windows, at = windows_at(records(1000, seed=9), shift), (MARK - 1 - shift) % RECORD
        with torch.no_grad():
            losses.append(F.cross_entropy(network(windows[:, :-1])[:, at], windows[:, at + 1]).item())
    return losses


def test_free_weights_learn_rows_of_aligned_windows_and_not_of_shifted_ones() -> None:
    aligned = nats_of_the_answer_by_shift(shifted=False)
    assert aligned[0] < 0.05
    assert min(aligned[1:]) > 0.5  # ln 2 = 0.69 is a guess; a row learned too well costs more
    shifted = nats_of_the_answer_by_shift(shifted=True)
    # One row in 8 is sure to be 1, so who does not know which pays -ln(1/2 + 1/16) = 0.58 nats, a little less where
    # zeros before have ruled rows out.
    assert min(shifted) > 0.45
    assert max(shifted) - min(shifted) < 0.12


# Padding


@over_causality
@over_all
def test_content_of_padding_does_not_matter_and_would_without_the_mask(options: SguOptions, causal: bool) -> None:
    block = like_trained(SpatialGatingUnit(Shape(D, H, T, causal=causal), options).double())
    real = torch.ones(B, T, dtype=torch.bool)
    real[:, :4] = False  # to the left, where causality does not hide it
    other = torch.where(real[:, :, None], inputs(), 100 * inputs(seed=8))

    def output(x: Tensor, mask: Tensor | None) -> Tensor:
        return block(x, context(causal=causal, key_padding=mask))[:, 4:]

    masked = output(inputs(), real)
    assert_close(output(other, real), masked, rtol=0, atol=1e-12 * masked.abs().max().item())
    assert (output(other, None) - output(inputs(), None)).abs().max() > 0.1


@pytest.mark.parametrize(
    ("options", "equal"),
    [
        ({"spatial": "toeplitz", "bias": "scalar"}, True),
        ({"spatial": "toeplitz", "bias": "scalar", "attention_width": 4}, True),
        ({"spatial": "toeplitz"}, False),
        ({"bias": "scalar"}, False),
    ],
    ids=str,
)
def test_left_padding_shifts_positions(options: dict[str, Any], equal: bool) -> None:
    block = like_trained(unit(**options))
    real = (torch.arange(T) >= 4).expand(B, -1)
    padded = block(inputs(), context(key_padding=real))[:, 4:]
    alone = block(inputs()[:, 4:], context(T - 4))
    assert torch.allclose(padded, alone, atol=1e-11) == equal


# Heads


@over_spatial
@pytest.mark.parametrize("bias", ["vector", "scalar"])
def test_heads_of_equal_weights_are_one_head(spatial: dict[str, Any], bias: str) -> None:
    one = like_trained(unit(bias=bias, **spatial))
    for heads in (2, 8):
        more = copy_of(one, n_heads=heads)
        set_to(more.weight, one.weight.repeat(heads, *[1] * (one.weight.ndim - 1)))
        set_to(more.bias, one.bias.repeat(heads))
        assert_close(more(inputs(), context()), one(inputs(), context()), **EXACT)


@over_spatial
def test_a_head_reaches_its_own_channels_alone(spatial: dict[str, Any]) -> None:
    block = like_trained(unit(n_heads=4, **spatial))
    gated = drawn(B, T, 2 * D)
    before = block.spatial(gated, causal=True)
    with torch.no_grad():
        block.weight.view(4, -1)[1] += 1
        block.bias.view(4, -1)[1] += 1
    changed = (block.spatial(gated, causal=True) - before).abs().amax(dim=(0, 1)) > 1e-6
    assert changed.tolist() == [8 <= channel < 16 for channel in range(2 * D)]


# Tiny attention


def test_closed_attention_leaves_the_plain_unit() -> None:
    with_attention = like_trained(unit(attention_width=6))
    plain = copy_of(with_attention, attention_width=0)
    assert with_attention.attention is not None
    set_to(with_attention.attention.proj_out.weight, 0)
    set_to(with_attention.attention.proj_out.bias, 0)
    assert torch.equal(with_attention(inputs(), context()), plain(inputs(), context()))


def test_attention_reads_the_blocks_input_and_starts_without_changing_the_rest() -> None:
    with_attention, plain = unit(attention_width=6), unit()
    assert with_attention.attention is not None
    assert with_attention.attention.proj_qkv.weight.shape == (18, D), "the input's width, not the expanded one"
    assert with_attention.attention.proj_out.weight.shape == (2 * D, 6)
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, with_attention.get_parameter(name)), name


def test_attention_keeps_to_the_span_in_both_paths() -> None:
    block = like_trained(unit(attention_width=6))
    seen = replace(context(), span=4)
    whole = block(inputs(), seen)
    assert not torch.allclose(whole, block(inputs(), context()))
    assert_close(block(inputs()[:, :4], replace(context(4), span=4)), block(inputs()[:, :4], context(4)))
    cache = block.new_cache(B, T, seen)
    assert_close(torch.cat([block.step(inputs()[:, at : at + 1], cache) for at in range(T)], dim=1), whole)
    assert torch.equal(block(inputs(), replace(seen, memory=inputs(5))), whole), "the unit reads no memory"


# Counts


@pytest.mark.parametrize("length", [128, 512])
@pytest.mark.parametrize("attention_width", [0, 64])
@pytest.mark.parametrize("gate", ["split", "multiplicative"])
@pytest.mark.parametrize("spatial", ["free", "toeplitz"])
def test_parameters_are_the_specifications_formula(length: int, attention_width: int, gate: str, spatial: str) -> None:
    d, e = 512, 3072
    shape = Shape(d, 8, length, causal=False)
    options = SguOptions(ratio=6, gate=gate, spatial=spatial, attention_width=attention_width)
    g = e // 2 if gate == "split" else e
    norm = 2 * g  # the 2 d of the norm before the block are the slot's
    weights = (length**2 if spatial == "free" else 2 * length - 1) + length
    attention = 3 * attention_width * (d + 1) + (attention_width + 1) * g if attention_width else 0
    expected = d * e + e + g * d + d + norm + weights + attention
    assert parameters(shape, options) == expected
    with torch.device("meta"):
        block = SpatialGatingUnit(shape, options)
    assert sum(each.numel() for each in block.parameters()) == expected


def test_flops_are_the_specifications_formula() -> None:
    n, d, e, a = 512, 512, 3072, 64
    shape = Shape(d, 8, n, causal=False)
    multiply_adds = 3 * n * d * e // 2 + n * n * e // 2
    assert flops(shape, SguOptions(ratio=6, spatial="toeplitz"), n, 0) == 2 * multiply_adds
    multiply_adds += 3 * n * d * a + 2 * n * n * a + n * a * e // 2
    assert flops(shape, SguOptions(ratio=6, attention_width=a), n, 0) == 2 * multiply_adds


@pytest.mark.parametrize("attention_width", [0, 2])
def test_flops_by_fft_are_those_of_the_counter_and_of_the_transforms(attention_width: int) -> None:
    shape = Shape(2, 1, FFT_FROM, positions="none")
    options = SguOptions(ratio=1, gate="linear", spatial="toeplitz", attention_width=attention_width)
    block = SpatialGatingUnit(shape, options)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        block(torch.zeros(1, FFT_FROM, 2), context(FFT_FROM))
    length = 2 * FFT_FROM
    # one pair of channels and one kernel
    transforms = 3 * 5 * length * 11 + 6 * length
    assert fft_flops(shape, options, length) == transforms
    assert flops(shape, options, FFT_FROM, 0) == counter.get_total_flops() + transforms


@pytest.mark.parametrize("n_heads", [1, 4])
def test_weight_decay_leaves_the_bias_and_toeplitz_weights_alone(n_heads: int) -> None:
    for spatial, decayed in (("free", {"proj_in.weight", "proj_out.weight", "weight"}),
                             ("toeplitz", {"proj_in.weight", "proj_out.weight"})):  # fmt: skip
        block = unit(spatial=spatial, n_heads=n_heads)
        named = dict(block.named_parameters())
        decay, _ = weights_optimiser(named, Method()).param_groups
        assert decay["weight_decay"] > 0
        found = {id(each) for each in decay["params"]}
        assert {name for name, each in named.items() if id(each) in found} == decayed


def test_catalogue_knows_the_units_cache() -> None:
    told = catalog.block("sgu").cache_bytes
    assert told is not None
    assert told(Shape(512, 8, 512), SguOptions(ratio=6, attention_width=64), 100, 2) == 4 * 2 * 100 * (1536 + 2 * 64)


@over_all
def test_dropout_drops_gated_products(options: SguOptions) -> None:
    """With a rate near 1 almost all of them: what is left is the bias of the output."""
    block = like_trained(SpatialGatingUnit(Shape(D, H, T, dropout=1 - 1e-12), options).double()).train()
    out = block(inputs(), context())
    assert_close(out, block.proj_out.bias.expand_as(out))
