"""The concrete network and its backbone."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from nas import cost
from nas.architecture import Architecture, interleaved
from nas.backbone import EMBEDDING_STD, Backbone, make_norm
from nas.blocks import block_classes
from nas.config import SearchSpace
from nas.network import Network
from nas.options import NetworkConfig, Shape, SlotConfig

SHAPE = Shape(d_model=16, n_heads=4, max_len=12)
NAMES = ("attention", "identity", "ffn", "sgu", "mgk")
VOCAB = 50


def network(names: tuple[str, ...] = NAMES, shape: Shape = SHAPE) -> Network:
    torch.manual_seed(0)
    config = NetworkConfig(shape, VOCAB, tuple(SlotConfig(name) for name in names))
    return Network(config, block_classes(names))


def tokens(batch: int = 2, length: int = 12) -> torch.Tensor:
    return torch.randint(VOCAB, (batch, length), generator=torch.Generator().manual_seed(1))


def test_logits_have_one_score_per_token_id() -> None:
    assert network()(tokens()).shape == (2, 12, VOCAB)


def test_fresh_network_knows_next_to_nothing() -> None:
    loss = F.cross_entropy(network()(tokens(8)).flatten(0, 1), tokens(8).flatten())
    assert abs(loss.item() - math.log(VOCAB)) < 0.5  # logits of a fresh head spread by about 0.6


def test_later_tokens_do_not_change_earlier_logits() -> None:
    changed = tokens()
    changed[:, 7:] = (changed[:, 7:] + 1) % VOCAB
    net = network()
    assert_close(net(changed)[:, :7], net(tokens())[:, :7])


def test_short_input_gives_the_head_of_the_logits_of_a_longer_one() -> None:
    net = network()
    assert_close(net(tokens()[:, :5]), net(tokens())[:, :5])


def test_parameters_are_named_by_the_slots_number_and_identity_slots_have_none() -> None:
    names = [name for name, _ in network().named_parameters()]
    parts = [name.split(".") for name in names if name.startswith("slots.")]
    assert {number for _, number, *_ in parts} == {"0", "2", "3", "4"}
    assert {owner for _, _, owner, *_ in parts} == {"norm", "block"}
    assert all(name.startswith(("backbone.", "slots.")) for name in names)


def test_network_of_identities_is_the_backbone_alone() -> None:
    net = network(("identity", "identity"))
    assert_close(net(tokens()), net.backbone.head(net.backbone.embed(tokens())))


def test_slot_adds_its_block_to_its_input() -> None:
    net = network(("ffn",))
    slot = net.slots["0"]
    context = net.backbone.context(tokens())
    x = net.backbone.embed(tokens())
    assert_close(slot(x, context), x + slot.block(slot.norm(x), context))


def test_every_parameter_gets_a_gradient() -> None:
    net = network()
    F.cross_entropy(net(tokens()).flatten(0, 1), tokens().flatten()).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0).any(), name


@pytest.mark.parametrize(
    "labels", [("attention", "ffn", "identity", "sgu"), ("mgk", "mgk", "identity", "identity")], ids=str
)
def test_parameters_are_the_backbones_and_what_cost_counts(labels: tuple[str, ...]) -> None:
    space = SearchSpace(n_slots=4, d_model=16, n_heads=4, max_len=12)
    net = network(labels)
    counted = sum(parameter.numel() for parameter in net.slots.parameters())
    assert counted == cost.parameters(Architecture(labels, space.candidates), space)


def test_interleaved_parent_is_attention_and_ffn_in_turn() -> None:
    space = SearchSpace(n_slots=5)
    assert str(interleaved(space)) == "AFAFA"


def test_options_of_a_slot_reach_its_block() -> None:
    slots = (SlotConfig("mgk", {"n_heads": 1, "n_keys": 3}), SlotConfig("ffn", {"ratio": 1}))
    net = Network(NetworkConfig(SHAPE, VOCAB, slots), block_classes(["mgk", "ffn"]))
    assert net.slots["0"].block.logits.shape == (1, 3)
    assert net.slots["1"].block.proj_in.weight.shape == (16, 16)


def test_embedding_is_wide_and_the_head_untied() -> None:
    torch.manual_seed(0)
    backbone = Backbone(NetworkConfig(SHAPE, 4096, ()))
    assert backbone.embedding.weight.std().item() == pytest.approx(EMBEDDING_STD, rel=0.02)  # 65,536 draws
    assert backbone.embedding.weight is not backbone.proj_out.weight


def test_context_carries_causality_padding_and_lengths() -> None:
    padding = torch.tensor([[True, True, False], [True, True, True]])
    context = Backbone(NetworkConfig(Shape(16, 4, 12, causal=False), VOCAB, ())).context(tokens(2, 3), padding)
    assert context.causal is False
    assert context.positions.tolist() == [0, 1, 2]
    assert context.lengths is not None
    assert context.lengths.tolist() == [2, 3]


def test_input_longer_than_max_len_is_refused() -> None:
    with pytest.raises(ValueError, match="input has 13 tokens; this network takes at most 12"):
        network()(tokens(length=13))


def test_input_without_a_batch_axis_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tokens have 1 axes; they must be \(batch, tokens\)"):
        network()(tokens()[0])


def test_unknown_norm_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown norm 'batch'; known: layer"):
        make_norm("batch", 16)


def test_block_without_a_class_is_refused() -> None:
    config = NetworkConfig(SHAPE, VOCAB, (SlotConfig("ffn"), SlotConfig("sgu")))
    with pytest.raises(ValueError, match="slot 1 has block 'sgu'; classes given: attention, ffn"):
        Network(config, block_classes(["ffn", "attention"]))
