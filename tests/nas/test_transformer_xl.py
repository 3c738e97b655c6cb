"""The Transformer-XL parent, against a twin written out here.

par-search.md sections 1.4 and 7, and section 9, items 12, 18, 26, 28-32, 34 and 35.

B batch, T tokens of a segment, M tokens in memory, D model width, H heads, W head width.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nas.blocks import block_classes
from nas.config.space import SearchSpace
from nas.network import Memory, Network
from nas.options import BackboneConfig, NetworkConfig, Shape, SlotConfig
from nas.specs.backbone import network_parameters, parameters
from nas.supernet import Supernet

B, T, M, D, H = 2, 5, 7, 16, 2
V, CUTOFFS = 40, (12, 25)
SHAPE = Shape(D, H, max_len=T, positions="transformer_xl", memory_length=M)
BACKBONE = BackboneConfig(scaled_embedding=True, tied_head=True, cutoffs=CUTOFFS)
SLOTS = (SlotConfig("attention"), SlotConfig("ffn", {"activation": "relu"})) * 2
CLASSES = block_classes(["attention", "ffn"])


def parent(**changes: Any) -> Network:
    """Two layers, in evaluation mode and float64, with every parameter moved so that it shows."""
    torch.manual_seed(0)
    config = NetworkConfig(replace(SHAPE, **changes), V, SLOTS, "layer", "post", BACKBONE)
    return spread(Network(config, CLASSES).double().eval())


def spread(module: Any) -> Any:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    return module


def segments(number: int = 3, length: int = T) -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    return list(torch.randint(V, (B, number * length), generator=generator).split(length, dim=1))


# -- the twin: no code of the project, only its weights -------------------------------------------------------------


def norm(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    centred = x - x.mean(dim=-1, keepdim=True)
    deviation = (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def sinusoid(distance: int) -> Tensor:
    angles = [distance * 10000 ** (-2 * e / D) for e in range(D // 2)]
    return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles], dtype=torch.float64)


def twin_attention(
    x: Tensor, memory: Tensor, weights: dict[str, Tensor], name: str, clamp_len: int | None, n_keys: int | None
) -> Tensor:
    """Scores by a double loop over queries and keys; section 7.1."""
    width = D // H
    seen = torch.cat([memory, x], dim=1)
    q = (x @ weights[f"{name}.proj_q.weight"].T).view(B, -1, H, width)
    k = (seen @ weights[f"{name}.proj_k.weight"].T).view(B, -1, H, width)
    v = (seen @ weights[f"{name}.proj_v.weight"].T).view(B, -1, H, width)
    content, position = weights["backbone.u"], weights["backbone.v"]
    earlier = memory.shape[1]
    mixed = torch.zeros(B, x.shape[1], H, width, dtype=torch.float64)
    for i in range(x.shape[1]):
        first = 0 if n_keys is None else max(0, i + earlier - n_keys + 1)
        scores = []
        for j in range(first, i + earlier + 1):
            distance = i + earlier - j
            distance = distance if clamp_len is None else min(distance, clamp_len)
            r = (weights[f"{name}.proj_position.weight"] @ sinusoid(distance)).view(H, width)
            score = ((q[:, i] + content) * k[:, j]).sum(dim=-1) + ((q[:, i] + position) * r).sum(dim=-1)
            scores.append(score / math.sqrt(width))
        probabilities = torch.stack(scores, dim=-1).softmax(dim=-1)  # (B, H, keys)
        mixed[:, i] = torch.einsum("bhj,bjhw->bhw", probabilities, v[:, first : i + earlier + 1])
    return mixed.flatten(2) @ weights[f"{name}.proj_out.weight"].T


def twin(
    tokens: Tensor,
    memory: list[Tensor],
    weights: dict[str, Tensor],
    clamp_len: int | None = None,
    n_keys: int | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Log-probabilities (B, T, V) of one segment, and the memory of each attention layer for the next."""
    table = torch.cat([weights[f"backbone.embedding.tables.{cluster}"] for cluster in range(3)])
    x = table[tokens] * math.sqrt(D)
    kept = []
    for slot in range(len(SLOTS)):
        name = f"slots.{slot}.block"
        if slot % 2 == 0:
            earlier = memory[slot // 2]
            kept.append(torch.cat([earlier, x], dim=1)[:, -M:])
            added = twin_attention(x, earlier, weights, name, clamp_len, n_keys)
        else:
            hidden = (x @ weights[f"{name}.proj_in.weight"].T + weights[f"{name}.proj_in.bias"]).clamp_min(0)
            added = hidden @ weights[f"{name}.proj_out.weight"].T + weights[f"{name}.proj_out.bias"]
        x = norm(x + added, weights, f"slots.{slot}.norm")
    bounds = (0, *CUTOFFS, V)
    rows = torch.cat([table[: CUTOFFS[0]], weights["backbone.proj_out.head.clusters"]])
    first = (x @ rows.T + weights["backbone.proj_out.head.bias"]).log_softmax(dim=-1)
    parts = [first[..., : CUTOFFS[0]]]
    for cluster in (1, 2):
        inside = x @ table[bounds[cluster] : bounds[cluster + 1]].T
        inside = inside + weights[f"backbone.proj_out.tail.{cluster - 1}.bias"]
        parts.append(first[..., CUTOFFS[0] + cluster - 1, None] + inside.log_softmax(dim=-1))
    return torch.cat(parts, dim=-1), kept


NOTHING = [torch.zeros(B, 0, D, dtype=torch.float64)] * 2
CLOSE = {"atol": 1e-12, "rtol": 1e-12}  # float64; log-probabilities go through four slots and three segments


@pytest.mark.parametrize("length", [1, T, 9], ids=["one token", "shorter than memory", "longer than memory"])
@pytest.mark.parametrize("clamp_len", [None, 3], ids=["", "clamped"])
@pytest.mark.parametrize("same_length", [False, True], ids=["", "same length"])
def test_network_equals_the_twin_over_consecutive_segments(
    length: int, clamp_len: int | None, same_length: bool
) -> None:
    net = parent(max_len=9, clamp_len=clamp_len, same_length=same_length)
    weights = {name: value.detach() for name, value in net.named_parameters()}
    memory: Memory | None = None
    twins = NOTHING
    for segment in segments(length=length):
        hidden, memory = net.body(segment, memory)
        expected, twins = twin(segment, twins, weights, clamp_len, M + 1 if same_length else None)
        assert_close(net.backbone.head(hidden), expected, **CLOSE)
        assert memory is not None
        for layer, kept in enumerate(twins):
            assert_close(memory[2 * layer], kept, **CLOSE)
            assert memory[2 * layer + 1] is None


def test_interleaved_one_hot_layout_equals_the_twin_over_consecutive_segments() -> None:
    """Item 12: the supernet's own weights of the path, as a mixture, straight-through and as a path."""
    space = SearchSpace(
        n_slots=4,
        d_model=D,
        n_heads=H,
        max_len=T,
        positions="transformer_xl",
        memory_length=M,
        norm_position="post",
        backbone=BACKBONE,
        candidates=(
            {"label": "f", "block": "ffn", "options": {"activation": "relu"}},
            "identity",
            {"label": "s", "block": "attention"},
        ),
    )
    torch.manual_seed(0)
    supernet = spread(Supernet(space, V, CLASSES).double().eval())
    path = [2, 0, 2, 0]
    weights = {}
    for name, value in supernet.named_parameters():
        weights[name] = value.detach()
        for slot, choice in enumerate(path):
            for kind in ("block", "norm"):
                own = f"slots.{slot}.{kind}s.{choice}."
                if name.startswith(own):
                    weights[name.replace(own, f"slots.{slot}.{kind}.")] = value.detach()
    one_hot = torch.nn.functional.one_hot(torch.tensor(path), 3).double()
    memories: list[Memory | None] = [None] * 3
    twins = NOTHING
    for segment in segments():
        expected, twins = twin(segment, twins, weights)
        runs = [
            supernet.forward_mixture(segment, one_hot, memory=memories[0]),
            supernet.forward_mixture(segment, one_hot, path, memory=memories[1]),
            supernet.forward_path(segment, path, memory=memories[2]),
        ]
        for hidden, memory in runs:
            assert_close(supernet.backbone.head(hidden), expected, **CLOSE)
            assert memory is not None
            assert all(each is not None for each in memory)  # any slot may draw attention next
            assert_close([memory[0], memory[2]], twins, **CLOSE)
        memories = [memory for _, memory in runs]


def test_derived_network_equals_the_supernets_path_bitwise_with_memory() -> None:
    net = parent()
    space = SearchSpace(
        n_slots=4,
        d_model=D,
        n_heads=H,
        max_len=T,
        positions="transformer_xl",
        memory_length=M,
        norm_position="post",
        backbone=BACKBONE,
        candidates=("attention", {"label": "f", "block": "ffn", "options": {"activation": "relu"}}),
    )
    supernet = Supernet(space, V, CLASSES).double().eval()
    path = [0, 1, 0, 1]
    state = supernet.state_dict()
    for name, value in net.state_dict().items():
        for slot, choice in enumerate(path):
            for kind in ("block", "norm"):
                name = name.replace(f"slots.{slot}.{kind}.", f"slots.{slot}.{kind}s.{choice}.")
        assert name in state
        state[name] = value
    supernet.load_state_dict(state)
    memory, mixed = None, None
    for segment in segments():
        hidden, memory = net.body(segment, memory)
        found, mixed = supernet.forward_path(segment, path, memory=mixed)
        assert torch.equal(found, hidden)


# -- identities -----------------------------------------------------------------------------------------------------


def test_segments_behind_memory_give_what_the_whole_text_gives() -> None:
    """Item 29, for the stack: with room for all tokens nothing is forgotten."""
    net = parent(max_len=3 * T, memory_length=3 * T)
    whole, _ = net.body(torch.cat(segments(), dim=1))
    memory = None
    for number, segment in enumerate(segments()):
        hidden, memory = net.body(segment, memory)
        assert_close(hidden, whole[:, number * T : (number + 1) * T])


def test_later_tokens_do_not_change_earlier_states_behind_memory() -> None:
    net = parent()
    first, second, _ = segments()
    _, memory = net.body(first, memory=None)
    before, _ = net.body(second, memory)
    for token in range(T):
        changed = second.clone()
        changed[:, token] = (changed[:, token] + 1) % V
        after, _ = net.body(changed, memory)
        assert_close(after[:, :token], before[:, :token])
        assert not torch.isclose(after[:, token:], before[:, token:]).all(dim=-1).any()


def run(net: Network) -> Tensor:
    memory, hidden = None, torch.zeros(0)
    for segment in segments():
        hidden, memory = net.body(segment, memory)
    return hidden


def test_clamp_beyond_the_farthest_key_changes_nothing() -> None:
    """Item 31: the farthest key is k - 1 = M + T - 1 away."""
    free = run(parent())
    assert torch.equal(run(parent(clamp_len=M + T - 1)), free)
    assert not torch.allclose(run(parent(clamp_len=M + T - 2)), free)


@pytest.mark.parametrize("changes", [{"clamp_len": 2}, {"same_length": True}], ids=["clamp_len", "same_length"])
def test_clamp_and_same_length_act_in_evaluation_only(changes: dict[str, Any]) -> None:
    net, free = parent(**changes), parent()
    assert not torch.allclose(run(net), run(free))
    assert torch.equal(run(net.train()), run(free.train()))


def test_every_query_sees_the_same_number_of_keys_with_same_length() -> None:
    """Item 35: behind a full memory, M + 1 keys each, found by the gradient of the values."""
    net = parent(same_length=True)
    first, second, third = segments()
    _, memory = net.body(first)
    _, memory = net.body(second, memory)
    assert memory is not None
    memory = [None if each is None else each.requires_grad_() for each in memory]
    x = net.backbone.embed(third).detach().requires_grad_()
    out = net.slots["0"](x, net.backbone.context(third), memory[0])
    for query in range(T):
        gradients = torch.autograd.grad(out[0, query].sum(), [memory[0], x], retain_graph=True)
        keys = torch.cat([(each[0] != 0).any(dim=-1) for each in gradients])
        assert keys.nonzero().flatten().tolist() == list(range(query, query + M + 1))


def test_no_gradient_reaches_the_memory_of_the_segment_before() -> None:
    net = parent().train()
    first, second, _ = segments()
    _, memory = net.body(first)
    assert memory is not None
    assert not any(each.requires_grad for each in memory if each is not None)
    table = net.backbone.embedding.get_parameter("tables.0")
    hidden, _ = net.body(second.clamp(max=CUTOFFS[0] - 1), memory)
    (gradient,) = torch.autograd.grad(hidden.square().sum(), table)
    touched = (gradient != 0).any(dim=-1).nonzero().flatten().tolist()
    assert touched == second.clamp(max=CUTOFFS[0] - 1).unique().tolist()


# -- counts ---------------------------------------------------------------------------------------------------------

BASE = Shape(512, 8, max_len=192, positions="transformer_xl", memory_length=192)
LARGE = Shape(1024, 16, max_len=384, positions="transformer_xl", memory_length=384)
WIKITEXT = BackboneConfig(scaled_embedding=True, tied_head=True, cutoffs=(19997, 39997, 199997))


def layers(shape: Shape, attention: int, ffn: int) -> NetworkConfig:
    slots = (SlotConfig("attention"),) * attention + (SlotConfig("ffn", {"activation": "relu"}),) * ffn
    return NetworkConfig(shape, 267_735, slots, "layer", "post", WIKITEXT)


@pytest.mark.parametrize(
    ("shape", "attention", "ffn", "outside_embedding", "total"),
    [
        (BASE, 16, 16, 54_599_680, 191_950_298),
        (BASE, 6, 26, 62_489_600, 199_840_218),
        (BASE, 12, 12, 40_949_760, None),
        (LARGE, 18, 18, 245_532_672, None),
        (LARGE, 7, 29, 280_192_000, None),
    ],
    ids=["base", "par base", "24 blocks", "large", "par large"],
)
def test_counts_are_those_of_the_papers(
    shape: Shape, attention: int, ffn: int, outside_embedding: int, total: int | None
) -> None:
    """Items 26 and 34; built on the meta device, which allocates nothing."""
    config = layers(shape, attention, ffn)
    with torch.device("meta"):
        net = Network(config, CLASSES)
    assert sum(parameter.numel() for parameter in net.slots.parameters()) == outside_embedding
    assert sum(parameter.numel() for parameter in net.parameters()) == network_parameters(config)
    assert parameters(config) == network_parameters(config) - outside_embedding
    if total is not None:
        assert network_parameters(config) == total
