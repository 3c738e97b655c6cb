"""The concrete network: its slots, its memory and its incremental path."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from nas import cost
from nas.architecture import Architecture, interleaved
from nas.blocks import block_classes
from nas.blocks.base import Block, Context, PositionWise, with_memory
from nas.config.space import SearchSpace
from nas.network import Network, Slot, remember
from nas.options import BackboneConfig, IdentityOptions, NetworkConfig, Shape, SlotConfig
from nas.specs.backbone import network_parameters

SHAPE = Shape(d_model=16, n_heads=4, max_len=12)
NAMES = ("attention", "identity", "ffn", "sgu", "mgk")
VOCAB = 50

over_norm_positions = pytest.mark.parametrize("norm_position", ["pre", "post"])


class RunningMean(Block):
    """The mean of memory and of the tokens so far: the least that a block with memory can do."""

    Options = IdentityOptions
    uses_memory = True

    def __init__(self, shape: Shape, options: IdentityOptions) -> None:
        super().__init__(shape, options)
        self.gain = nn.Parameter(torch.ones(shape.d_model))

    @property
    def longest(self) -> int | None:
        return None

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        seen = with_memory(x, context).cumsum(dim=1)
        counts = torch.arange(1, seen.shape[1] + 1)[:, None]
        return self.gain * (seen / counts)[:, -x.shape[1] :]


class Short(PositionWise):
    """A block for at most 15 tokens."""

    Options = IdentityOptions

    @property
    def longest(self) -> int | None:
        return 15

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        return x


PLAIN = BackboneConfig()
OURS: dict[str, type[Block]] = {"mean": RunningMean, "short": Short}


def network(
    names: tuple[str, ...] = NAMES,
    shape: Shape = SHAPE,
    *,
    norm: str = "layer",
    norm_position: str = "pre",
    backbone: BackboneConfig = PLAIN,
) -> Network:
    torch.manual_seed(0)
    slots = tuple(SlotConfig(name) for name in names)
    config = NetworkConfig(shape, VOCAB, slots, norm, norm_position, backbone)
    return Network(config, OURS | block_classes(name for name in names if name not in OURS))


def trained(net: Network) -> Network:
    """In float64 and evaluation mode, every parameter moved as if trained: a fresh SGU would hardly mix tokens."""
    generator = torch.Generator().manual_seed(2)
    net = net.double().eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    return net


def slot_of(net: Network, number: int) -> Slot:
    found = net.slots[str(number)]
    assert isinstance(found, Slot)
    return found


def tokens(batch: int = 2, length: int = 12) -> Tensor:
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


@over_norm_positions
def test_slot_adds_its_block_to_its_input(norm_position: str) -> None:
    slot = slot_of(network(("ffn",), norm_position=norm_position), 0)
    net = network(("ffn",))
    context = net.backbone.context(tokens())
    x = net.backbone.embed(tokens())
    if norm_position == "pre":
        assert_close(slot(x, context), x + slot.block(slot.norm(x), context))
    else:
        assert_close(slot(x, context), slot.norm(x + slot.block(x, context)))


@over_norm_positions
def test_dropout_is_on_what_the_block_adds_and_in_training_alone(norm_position: str) -> None:
    net = network(("mean",), replace(SHAPE, dropout=0.5), norm_position=norm_position).double().eval()
    slot, context = slot_of(net, 0), net.backbone.context(tokens())
    x = torch.randn(2, 12, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    added = slot.block(x if norm_position == "post" else slot.norm(x), context)
    torch.manual_seed(4)
    expected = x + F.dropout(added, 0.5)
    torch.manual_seed(4)
    assert_close(slot.train()(x, context), slot.norm(expected) if norm_position == "post" else expected)
    assert_close(slot.eval()(x, context), slot.norm(x + added) if norm_position == "post" else x + added)


def test_every_parameter_gets_a_gradient() -> None:
    net = network()
    net.backbone.nats(net.body(tokens())[0], tokens()).mean().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0).any(), name


@pytest.mark.parametrize(
    "labels", [("attention", "ffn", "identity", "sgu"), ("mgk", "mgk", "identity", "identity")], ids=str
)
@pytest.mark.parametrize("norm", ["layer", "rms"])
@over_norm_positions
def test_parameters_are_the_backbones_and_what_cost_counts(
    labels: tuple[str, ...], norm: Any, norm_position: Any
) -> None:
    space = SearchSpace(n_slots=4, d_model=16, n_heads=4, max_len=12, norm=norm, norm_position=norm_position)
    net = network(labels, norm=norm, norm_position=norm_position)
    counted = sum(parameter.numel() for parameter in net.slots.parameters())
    assert counted == cost.parameters(Architecture(labels, space.candidates), space)
    assert network_parameters(net.config) == sum(parameter.numel() for parameter in net.parameters())


@pytest.mark.parametrize("pooling", ["mean", "none"])
def test_parameters_of_a_classifier_are_those_that_are_built(pooling: Any) -> None:
    net = network(backbone=BackboneConfig(n_classes=7, pooling=pooling, tied_head=True))
    counted = sum(parameter.numel() for parameter in net.parameters())
    assert network_parameters(net.config) == counted
    plain = network_parameters(replace(net.config, backbone=BackboneConfig()))
    assert counted == plain - (16 + 1) * VOCAB + (16 + 1) * 7


def test_interleaved_parent_is_attention_and_ffn_in_turn() -> None:
    space = SearchSpace(n_slots=5)
    assert str(interleaved(space)) == "AFAFA"


def test_options_of_a_slot_reach_its_block() -> None:
    slots = (SlotConfig("mgk", {"n_heads": 1, "n_keys": 3}), SlotConfig("ffn", {"ratio": 1}))
    net = Network(NetworkConfig(SHAPE, VOCAB, slots), block_classes(["mgk", "ffn"]))
    assert net.slots["0"].block.logits.shape == (1, 3)
    assert net.slots["1"].block.proj_in.weight.shape == (16, 16)


# -- classes, types and padding -------------------------------------------------------------------------------------

ENCODER = replace(SHAPE, causal=False)
PADDING = torch.arange(12) < torch.tensor([[7], [12]])  # 7 and 12 real tokens


def test_a_decoder_classifies_each_token_by_those_before_it() -> None:
    net = trained(network(backbone=BackboneConfig(n_classes=3, pooling="none")))
    logits = net(tokens())
    assert logits.shape == (2, 12, 3)
    assert_close(net(tokens()[:, :5]), logits[:, :5])


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_classifier_ignores_pads(pooling: Any) -> None:
    net = trained(network(shape=ENCODER, backbone=BackboneConfig(n_classes=3, pooling=pooling)))
    other = torch.where(PADDING, tokens(), 0)
    logits = net(other, key_padding=PADDING)
    assert logits.shape == (2, 3)
    assert_close(net(tokens(), key_padding=PADDING), logits)
    assert_close(net(tokens()[:1, :7]), logits[:1])


@pytest.mark.parametrize("classes", [0, 3], ids=["tokens", "classes of tokens"])
def test_logits_of_real_tokens_ignore_pads(classes: int) -> None:
    net = trained(network(shape=ENCODER, backbone=BackboneConfig(n_classes=classes, pooling="none")))
    padded = net(tokens(), key_padding=PADDING)
    assert padded.shape == (2, 12, classes or VOCAB)
    assert_close(padded[:1, :7], net(tokens()[:1, :7]))
    assert_close(padded[1:], net(tokens()[1:]))


def test_token_types_reach_the_embedding() -> None:
    net = trained(network(("ffn",), ENCODER, backbone=BackboneConfig(token_types=2)))
    types = (torch.arange(12) > 5).long().expand(2, 12)
    typed = net(tokens(), token_types=types)
    assert_close(typed[:, :6], net(tokens())[:, :6])
    assert not torch.isclose(typed[:, 6:], net(tokens())[:, 6:]).any(dim=-1).all()


# -- memory: par-search.md section 7.3 and section 9, items 18, 29 and 32 -------------------------------------------


@pytest.mark.parametrize("length", [2, 4, 7, 50])
def test_memory_is_the_last_raw_inputs_and_grows_until_it_is_full(length: int) -> None:
    net = trained(network(("ffn", "mean", "identity", "mean"), replace(SHAPE, memory_length=length)))
    seen: dict[str, list[Tensor]] = {"1": [], "3": []}
    for number, inputs in seen.items():
        net.slots[number].register_forward_pre_hook(lambda slot, args, inputs=inputs: inputs.append(args[0]))
    memory = None
    for segment in tokens(length=15).split([4, 1, 4, 6], dim=1):
        _, memory = net.body(segment, memory)
        assert memory is not None
        assert [each is None for each in memory] == [True, False, True, False]  # only where it is read
        for number, inputs in seen.items():
            kept = memory[int(number)]
            assert kept is not None
            so_far = torch.cat(inputs, dim=1)
            assert torch.equal(kept, so_far[:, -length:])
            assert kept.shape[1] == min(length, so_far.shape[1])


def test_evaluation_may_keep_more_than_training() -> None:
    net = trained(
        network(("mean", "attention"), replace(SHAPE, memory_length=3, eval_memory_length=8, same_length=True))
    )
    for training, length in ((True, 3), (False, 8)):
        memory = None
        for _ in range(3):
            _, memory = net.train(training).body(tokens(length=5), memory)
        assert memory is not None
        assert [each.shape[1] for each in memory if each is not None] == [length, length]
    assert net.backbone.context(tokens()).span == 9, "of a full memory, each query sees one key more than it holds"


def test_no_gradient_reaches_memory() -> None:
    net = trained(network(("ffn", "mean"), replace(SHAPE, memory_length=7)))
    _, memory = net.body(tokens(length=5))
    assert memory is not None
    assert memory[1] is not None
    assert not memory[1].requires_grad
    hidden, _ = net.body(tokens(length=5), memory)
    assert hidden.requires_grad
    assert not remember(torch.zeros(1, 2, 3, requires_grad=True), torch.zeros(1, 2, 3), 2).requires_grad


def test_memory_goes_through_the_slots_norm_in_pre_norm_and_stays_raw_in_post_norm() -> None:
    for norm_position in ("pre", "post"):
        net = trained(network(("mean",), replace(SHAPE, memory_length=7), norm_position=norm_position))
        slot, contexts = slot_of(net, 0), []
        slot.block.register_forward_pre_hook(lambda block, args, contexts=contexts: contexts.append(args[1]))
        _, memory = net.body(tokens(length=5))
        assert memory is not None
        net.body(tokens(length=5), memory)
        assert contexts[0].memory is None
        assert_close(contexts[1].memory, memory[0] if norm_position == "post" else slot.norm(memory[0]))


def test_network_without_memory_keeps_none() -> None:
    _, memory = network(("mean",)).body(tokens())
    assert memory is None


@over_norm_positions
def test_segments_behind_memory_give_what_the_whole_text_gives(norm_position: str) -> None:
    """All tokens so far fit in memory, so nothing is forgotten: stacks of any depth must agree."""
    names = ("attention", "ffn", "mean", "mgk", "identity", "attention")
    net = trained(network(names, replace(SHAPE, memory_length=12), norm_position=norm_position))
    whole, _ = net.body(tokens())
    memory = None
    for start, end in ((0, 5), (5, 6), (6, 12)):
        hidden, memory = net.body(tokens()[:, start:end], memory)
        assert_close(hidden, whole[:, start:end])


# -- the incremental path -------------------------------------------------------------------------------------------


@over_norm_positions
@pytest.mark.parametrize(
    "backbone",
    [
        PLAIN,
        BackboneConfig(position_embedding="learned", tied_head=True, head_transform=True, token_types=2),
        BackboneConfig(position_embedding="sinusoidal", embedding_norm=True, cutoffs=(10, 30), tied_head=True),
    ],
    ids=["plain", "learned", "sinusoidal"],
)
@pytest.mark.parametrize("positions", ["rotary", "transformer_xl"])
def test_steps_give_the_logits_of_the_whole_text(norm_position: str, backbone: BackboneConfig, positions: str) -> None:
    shape = replace(SHAPE, positions=positions)
    net = trained(network((*NAMES, "mean"), shape, norm_position=norm_position, backbone=backbone))
    with torch.inference_mode():
        whole = net(tokens())
        cache = net.new_cache(2, 12)
        for at in range(12):
            assert_close(net.step(tokens()[:, at : at + 1], cache), whole[:, at : at + 1], atol=1e-10, rtol=0)


def test_caches_size_is_the_sum_of_its_slots() -> None:
    cache = network().new_cache(2, 12)
    assert set(cache.slots) == {"0", "2", "3", "4"}  # identity keeps nothing
    assert cache.nbytes == sum(each.nbytes for each in cache.slots.values()) > 0


# -- lengths and refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "position_embedding", "longest"),
    [
        (("ffn", "identity"), "none", None),
        (("ffn", "short", "mean"), "none", 15),
        (("ffn", "short"), "learned", 12),
        (("ffn", "short"), "sinusoidal", 15),
        (("short", "sgu"), "none", 12),
    ],
    ids=str,
)
def test_longest_is_that_of_the_shortest_part(
    names: tuple[str, ...], position_embedding: Any, longest: int | None
) -> None:
    net = network(names, backbone=BackboneConfig(position_embedding=position_embedding))
    assert net.longest == longest
    fitting = longest or 40
    assert net(tokens(length=fitting)).shape == (2, fitting, VOCAB)
    assert net.new_cache(1, fitting).capacity == fitting
    if longest is not None:
        with pytest.raises(ValueError, match=f"^input has {longest + 1} tokens; this network takes at most {longest}$"):
            net(tokens(length=longest + 1))
        message = f"^capacity is {longest + 1}; this network takes at most {longest} tokens$"
        with pytest.raises(ValueError, match=message):
            net.new_cache(1, longest + 1)


def test_input_without_a_batch_axis_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^tokens have 1 axes; they must be \(batch, tokens\)$"):
        network()(tokens()[0])


def test_encoder_and_classifier_have_no_incremental_path() -> None:
    with pytest.raises(ValueError, match=r"^an encoder has no incremental path: each token would change all outputs$"):
        network(shape=ENCODER).new_cache(2, 12)
    message = r"^a classifier has no incremental path: it is run on whole sequences$"
    for pooling in ("mean", "none"):
        with pytest.raises(ValueError, match=message):
            network(backbone=BackboneConfig(n_classes=2, pooling=pooling)).new_cache(2, 12)


def test_full_cache_is_refused() -> None:
    net = network().eval()
    cache = net.new_cache(2, 3)
    for at in range(3):
        net.step(tokens()[:, at : at + 1], cache)
    with pytest.raises(ValueError, match=r"^the cache is full: it was made for 3 tokens$"):
        net.step(tokens()[:, :1], cache)
    assert cache.position == 3


def test_memory_of_another_network_is_refused() -> None:
    net = network(("mean", "ffn"), replace(SHAPE, memory_length=7))
    with pytest.raises(ValueError, match=r"^memory has 3 entries; the network has 2 slots$"):
        net.body(tokens(), [None] * 3)


@pytest.mark.parametrize("shape", [SHAPE, ENCODER], ids=["decoder", "encoder"])
def test_memory_where_none_is_kept_is_refused(shape: Shape) -> None:
    with pytest.raises(ValueError, match=r"^memory is given, but the network's memory_length is 0; it must be None$"):
        network(("mean", "ffn"), shape).body(tokens(), [torch.zeros(2, 5, 16), None])


def test_padding_leaves_no_memory() -> None:
    net = network(("mean", "ffn"), replace(SHAPE, memory_length=7))
    assert net.body(tokens(), key_padding=PADDING)[1] is None


def test_memory_beside_padding_is_refused() -> None:
    net = network(("mean", "ffn"), replace(SHAPE, memory_length=7))
    _, memory = net.body(tokens())
    message = r"^memory and key_padding are both given; segments with memory must be full$"
    with pytest.raises(ValueError, match=message):
        net.body(tokens(), memory, key_padding=PADDING)


def test_block_without_a_class_is_refused() -> None:
    config = NetworkConfig(SHAPE, VOCAB, (SlotConfig("ffn"), SlotConfig("sgu")))
    with pytest.raises(ValueError, match="slot 2 has block 'sgu'; classes given: attention, ffn"):
        Network(config, block_classes(["ffn", "attention"]))


# -- compilers ------------------------------------------------------------------------------------------------------


@over_norm_positions
def test_network_with_memory_traces_whole_at_two_lengths(norm_position: str) -> None:
    net = trained(network(("mean", "ffn"), replace(SHAPE, memory_length=7), norm_position=norm_position))
    torch._dynamo.reset()
    traced = torch.compile(net.body, backend="eager", fullgraph=True)
    memory = twin = None
    for segment in tokens(length=9).split([5, 4], dim=1):
        hidden, memory = net.body(segment, memory)
        found, twin = traced(segment, twin)
        assert_close(found, hidden)
        assert_close(twin, memory)
