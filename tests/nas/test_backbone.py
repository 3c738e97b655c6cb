"""Embeddings, context, heads and pooling, and the count of their parameters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from nas.backbone import EMBEDDING_STD, Backbone, make_norm
from nas.blocks.base import sinusoids
from nas.heads import IGNORE, WEIGHT_STD
from nas.options import BackboneConfig, NetworkConfig, Shape
from nas.specs.backbone import parameters

D, T, V = 16, 12, 60
SHAPE = Shape(d_model=D, n_heads=4, max_len=T)
ENCODER = replace(SHAPE, causal=False)
CUTOFFS = (10, 30, 31)


def backbone(
    shape: Shape = SHAPE, norm: str = "layer", norm_position: str = "pre", vocab_size: int = V, **options: Any
) -> Backbone:
    """A fresh one in evaluation mode and float64."""
    torch.manual_seed(0)
    config = NetworkConfig(shape, vocab_size, (), norm, norm_position, BackboneConfig(**options))
    return Backbone(config).double().eval()


def tokens(batch: int = 2, length: int = T, vocab_size: int = V) -> Tensor:
    return torch.randint(vocab_size, (batch, length), generator=torch.Generator().manual_seed(1))


def hidden(batch: int = 2, length: int = T) -> Tensor:
    return torch.randn(batch, length, D, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


# -- embeddings -----------------------------------------------------------------------------------------------------


def test_plain_embedding_is_the_tokens_rows_alone() -> None:
    found = backbone()
    assert torch.equal(found.embed(tokens()), found.embedding.weight[tokens()])


def test_embedding_is_the_sum_of_its_parts_scaled_before_and_normed_behind() -> None:
    found = backbone(scaled_embedding=True, position_embedding="learned", token_types=3, embedding_norm=True)
    types = torch.arange(2 * T).view(2, T) % 3
    assert found.positions is not None
    assert found.token_types is not None
    rows = found.embedding.weight[tokens()] * math.sqrt(D)
    expected = F.layer_norm(rows + found.positions + found.token_types[types], (D,))
    assert_close(found.embed(tokens(), types), expected)


def test_tokens_without_types_are_of_the_first() -> None:
    found = backbone(ENCODER, token_types=2)
    assert torch.equal(found.embed(tokens()), found.embed(tokens(), torch.zeros(2, T, dtype=torch.long)))


@pytest.mark.parametrize("position_embedding", ["learned", "none", "sinusoidal"])
def test_tokens_embedded_one_by_one_at_their_positions_are_the_sequence(position_embedding: str) -> None:
    found = backbone(position_embedding=position_embedding)
    each = [found.embed(tokens()[:, start : start + 1], start=start) for start in range(T)]
    assert torch.equal(torch.cat(each, dim=1), found.embed(tokens()))


@pytest.mark.parametrize(("position_embedding", "longest"), [("learned", T), ("none", None), ("sinusoidal", None)])
def test_learned_positions_alone_bound_the_length(position_embedding: str, longest: int | None) -> None:
    assert backbone(position_embedding=position_embedding).longest == longest


@pytest.mark.parametrize("width", [2, 7, 16])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-12), (torch.float32, 2e-6)], ids=str)
def test_sinusoids_are_the_definition(width: int, dtype: torch.dtype, error: float) -> None:
    """To the rounding of angles up to 19."""
    found = sinusoids(torch.arange(20, dtype=dtype), width)
    assert found.dtype == dtype
    half = (width + 1) // 2
    for position in range(20):
        for channel in range(width):
            angle = position * 10000 ** (-2 * (channel % half) / width)
            expected = math.sin(angle) if channel < half else math.cos(angle)
            assert float(found[position, channel]) == pytest.approx(expected, abs=error)


def test_sinusoidal_positions_are_added_to_the_tokens() -> None:
    found = backbone(position_embedding="sinusoidal")
    rows = found.embedding.weight[tokens()]
    assert_close(found.embed(tokens()), rows + sinusoids(torch.arange(T, dtype=torch.float64), D))
    half = found.bfloat16().embed(tokens())
    assert half.dtype == torch.bfloat16


def test_dropout_follows_the_embeddings_in_training_alone() -> None:
    found = backbone(replace(SHAPE, dropout=0.5))
    whole = found.embed(tokens())
    found.train()
    torch.manual_seed(0)
    dropped = found.embed(tokens())
    zero = dropped == 0
    assert 0.35 < zero.double().mean().item() < 0.65  # 384 draws: six deviations
    assert_close(dropped[~zero], 2 * whole[~zero])


@pytest.mark.parametrize(
    ("options", "std"),
    [
        ({}, EMBEDDING_STD),
        ({"cutoffs": (1000,)}, EMBEDDING_STD),
        ({"tied_head": True}, WEIGHT_STD),
        ({"scaled_embedding": True}, WEIGHT_STD),
        ({"tied_head": True, "cutoffs": (1000,)}, WEIGHT_STD),
    ],
    ids=str,
)
def test_embedding_is_wide_unless_it_is_tied_or_scaled(options: dict[str, Any], std: float) -> None:
    found = backbone(vocab_size=4096, **options)
    (rows, *_) = found.embedding.parameters()
    assert rows.std().item() == pytest.approx(std, rel=0.03)  # 16,000 draws or more: five deviations


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_first_logits_are_small_whatever_is_tied(tied: bool) -> None:
    logits = backbone(tied_head=tied, scaled_embedding=tied).head(hidden())
    assert logits.std().item() < 1


# -- context --------------------------------------------------------------------------------------------------------


def test_context_carries_causality_padding_and_lengths() -> None:
    padding = torch.tensor([[True, True, False], [True, True, True]])
    context = backbone(ENCODER).context(tokens(2, 3), padding)
    assert context.causal is False
    assert context.positions.tolist() == [0, 1, 2]
    assert context.key_padding is padding
    assert context.lengths is not None
    assert context.lengths.tolist() == [2, 3]
    assert context.biases is None


def test_transformer_xl_positions_have_one_pair_of_biases_for_all_layers() -> None:
    found = backbone(replace(SHAPE, positions="transformer_xl"))
    biases = found.context(tokens()).biases
    assert biases is not None
    assert biases[0] is found.u
    assert biases[1] is found.v
    assert [tuple(each.shape) for each in biases] == [(4, 4), (4, 4)]


def test_clamp_and_same_length_act_in_evaluation_only() -> None:
    shape = replace(SHAPE, positions="transformer_xl", memory_length=6, clamp_len=5, same_length=True)
    found = backbone(shape)
    evaluated, trained = found.context(tokens()), found.train().context(tokens())
    assert (evaluated.clamp_len, evaluated.span) == (5, 7)  # m + 1 keys, the query's own among them
    assert (trained.clamp_len, trained.span) == (None, None)
    assert backbone(replace(shape, same_length=False)).context(tokens()).span is None


# -- heads ----------------------------------------------------------------------------------------------------------


def test_head_of_pre_norm_norms_and_that_of_post_norm_does_not() -> None:
    pre, post = backbone(), backbone(norm_position="post")
    assert_close(pre.head(hidden()), pre.proj_out(F.layer_norm(hidden(), (D,))))
    assert_close(post.head(hidden()), post.proj_out(hidden()))


@pytest.mark.parametrize(
    ("norm_position", "transform", "drops"),
    [("post", False, True), ("post", True, False), ("pre", False, False)],
    ids=["transformer-xl", "bert", "pre-norm"],
)
def test_dropout_before_the_head_is_transformer_xls_alone(norm_position: str, transform: bool, drops: bool) -> None:
    found = backbone(replace(SHAPE, dropout=0.5), norm_position=norm_position, head_transform=transform)
    before = found.head(hidden())
    assert torch.equal(found.train().head(hidden()), before) != drops


def test_transform_is_a_matrix_a_gelu_and_a_norm() -> None:
    found = backbone(ENCODER, norm="rms", norm_position="post", head_transform=True, tied_head=True)
    assert isinstance(found.transform, nn.Sequential)
    matrix = found.transform[0]
    x = F.rms_norm(F.gelu(matrix(hidden()), approximate="tanh"), (D,))
    assert_close(found.head(hidden()), F.linear(x, found.embedding.weight, found.proj_out.bias))


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_head_is_tied_where_asked(tied: bool) -> None:
    found = backbone(tied_head=tied)
    before = found.head(hidden())
    with torch.no_grad():
        found.embedding.weight.mul_(2)
    assert torch.equal(found.head(hidden()), before) != tied
    assert ("proj_out.weight" in found.state_dict()) != tied  # saved once


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_cutoffs_not_below_the_vocabulary_do_not_count(tied: bool) -> None:
    plain = backbone(tied_head=tied)
    none_left = backbone(tied_head=tied, cutoffs=(V, 2 * V))
    assert none_left.state_dict().keys() == plain.state_dict().keys()
    assert_close(none_left.head(hidden()), plain.head(hidden()))
    one_left = backbone(tied_head=tied, cutoffs=(10, V), div_value=2)
    assert one_left.state_dict().keys() == backbone(tied_head=tied, cutoffs=(10,), div_value=2).state_dict().keys()


HEADS: dict[str, dict[str, Any]] = {
    "plain": {},
    "tied": {"tied_head": True, "head_transform": True},
    "adaptive": {"cutoffs": CUTOFFS},
    "adaptive narrow": {"cutoffs": CUTOFFS, "div_value": 2},
    "adaptive tied": {"cutoffs": CUTOFFS, "div_value": 2, "tied_head": True},
}
over_heads = pytest.mark.parametrize("options", HEADS.values(), ids=HEADS)


@over_heads
def test_nats_are_the_cross_entropy_of_the_logits(options: dict[str, Any]) -> None:
    found = backbone(**options)
    expected = F.cross_entropy(found.head(hidden()).transpose(1, 2), tokens(), reduction="none")
    assert_close(found.nats(hidden(), tokens()), expected)


@over_heads
def test_positions_without_a_target_cost_nothing_and_their_head_is_not_run(options: dict[str, Any]) -> None:
    found = backbone(**options)
    targets = tokens()
    scored = torch.rand(targets.shape, generator=torch.Generator().manual_seed(3)) < 0.3
    rows = []
    module = found.proj_out.get_submodule("head") if "cutoffs" in options else found.proj_out
    module.register_forward_hook(lambda module, inputs, output: rows.append(inputs[0].shape[0]))
    x = hidden().requires_grad_()
    nats = found.nats(x, targets.masked_fill(~scored, IGNORE))
    assert rows == [int(scored.sum())]
    assert torch.equal(nats[~scored], torch.zeros_like(nats[~scored]))
    assert_close(nats[scored], found.nats(hidden(), targets)[scored])
    (gradient,) = torch.autograd.grad(nats.sum(), x)
    assert torch.equal((gradient != 0).any(dim=-1), scored)


@over_heads
def test_batch_without_any_target_costs_nothing(options: dict[str, Any]) -> None:
    found = backbone(**options)
    nats = found.nats(hidden(), torch.full((2, T), IGNORE))
    assert torch.equal(nats, torch.zeros(2, T, dtype=torch.float64))


@over_heads
def test_nats_under_autocast_are_in_float32(options: dict[str, Any]) -> None:
    found = backbone(**options).float()
    whole, logits = found.nats(hidden().float(), tokens()), found.head(hidden().float())
    with torch.autocast("cpu", torch.bfloat16):
        assert_close(found.head(hidden().bfloat16()).float(), logits, atol=0.1, rtol=0)
        for targets in (tokens(), tokens().index_fill(1, torch.tensor([0, 3]), IGNORE)):
            nats = found.nats(hidden().bfloat16(), targets)
            assert nats.dtype == torch.float32
            assert_close(nats[:, 1], whole[:, 1], atol=0.1, rtol=0)  # logits around 1 with 8 bits


def test_adaptive_softmax_traces_whole_at_two_lengths() -> None:
    found = backbone(**HEADS["adaptive tied"])

    def run(given: Tensor) -> Tensor:
        return found.head(found.embed(given))

    torch._dynamo.reset()
    traced = torch.compile(run, backend="eager", fullgraph=True)
    for length in (T, 5):
        assert_close(traced(tokens(length=length)), run(tokens(length=length)))


# -- classes --------------------------------------------------------------------------------------------------------


def test_first_token_is_the_pool() -> None:
    found = backbone(ENCODER, n_classes=3, norm_position="post")
    assert torch.equal(found.pool(hidden()), hidden()[:, 0])
    assert_close(found.classes(hidden()), found.proj_out(hidden()[:, 0]))


def test_mean_is_over_the_real_tokens() -> None:
    found = backbone(n_classes=3, pooling="mean")
    padding = torch.ones(2, T, dtype=torch.bool)
    padding[0, 7:] = False
    spoilt = hidden()
    spoilt[0, 7:] = math.nan  # what stands at pads must not matter, whatever it is
    normed = F.layer_norm(hidden(), (D,))
    expected = torch.stack([normed[0, :7].mean(dim=0), normed[1].mean(dim=0)])
    assert_close(found.pool(spoilt, padding), expected)
    assert_close(found.classes(spoilt, padding), found.proj_out(expected))
    assert_close(found.pool(hidden()), normed.mean(dim=1))


def test_row_of_pads_alone_has_a_finite_mean() -> None:
    found = backbone(n_classes=3, pooling="mean")
    assert torch.equal(found.pool(hidden(), torch.zeros(2, T, dtype=torch.bool)), torch.zeros(2, D).double())


def test_transform_stands_before_the_classes_too() -> None:
    found = backbone(ENCODER, n_classes=3, head_transform=True)
    assert found.transform is not None
    assert_close(found.classes(hidden()), found.proj_out(found.transform(found.pool(hidden()))))


TAGS = torch.tensor([[0, IGNORE, 4, 1] * 3, [IGNORE] * 7 + [2, 3, 0, IGNORE, 1]])
over_pads = pytest.mark.parametrize("padded", [True, False], ids=["padded", "full"])


@over_pads
@pytest.mark.parametrize("options", [{}, {"head_transform": True}], ids=["plain", "transform"])
def test_nats_of_tokens_to_classify_are_the_cross_entropy_where_there_is_a_class(
    options: dict[str, Any], padded: bool
) -> None:
    found = backbone(ENCODER, n_classes=5, pooling="none", **options)
    padding = torch.arange(T) < torch.tensor([[7], [T]]) if padded else None
    targets = TAGS if padding is None else TAGS.masked_fill(~padding, IGNORE)
    logits = found.head(hidden())
    assert logits.shape == (2, T, 5)
    expected = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none", ignore_index=IGNORE)
    assert_close(found.nats(hidden(), targets, padding), expected)
    assert torch.equal(found.answers(hidden(), padding), logits.argmax(dim=-1))


@over_pads
@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_nats_and_answer_of_a_sequence_are_those_of_its_classes(pooling: str, padded: bool) -> None:
    found = backbone(ENCODER, n_classes=5, pooling=pooling)
    padding = torch.arange(T) < torch.tensor([[7], [T]]) if padded else None
    classes, targets = found.classes(hidden(), padding), torch.tensor([[3], [0]])
    nats = found.nats(hidden(), targets, padding)
    assert_close(nats, F.cross_entropy(classes, targets[:, 0], reduction="none")[:, None])
    assert torch.equal(found.answers(hidden(), padding), classes.argmax(dim=-1)[:, None])
    assert found.pools
    assert not backbone(ENCODER, n_classes=5, pooling="none").pools


def test_each_place_is_told_from_the_last_token_and_its_sinusoids() -> None:
    found = backbone(n_classes=3, pooling="unroll")
    assert found.transform is not None
    assert not found.pools
    at = sinusoids(torch.arange(T, dtype=torch.float64), D)
    places = [found.proj_out(found.transform(F.layer_norm(hidden()[:, -1] + each, (D,)))) for each in at]
    expected = torch.stack(places, dim=1)
    assert_close(found.head(hidden()), expected)
    assert torch.equal(found.answers(hidden()), expected.argmax(dim=-1))

    targets = torch.arange(2 * T).view(2, T) % 3
    targets[:, -1] = IGNORE
    nats = F.cross_entropy(expected.mT, targets, reduction="none", ignore_index=IGNORE)
    assert_close(found.nats(hidden(), targets), nats)


def test_unrolling_waits_for_the_number_of_classes() -> None:
    assert backbone(pooling="unroll").transform is None


# -- parameters -----------------------------------------------------------------------------------------------------

COUNTED: dict[str, dict[str, Any]] = {
    **HEADS,
    "adaptive tied, equal widths": {"cutoffs": CUTOFFS, "tied_head": True},
    "cutoffs beyond the vocabulary": {"cutoffs": (5, 99), "div_value": 4},
    "positions": {"position_embedding": "learned"},
    "sinusoids": {"position_embedding": "sinusoidal", "scaled_embedding": True},
    "types and norm": {"token_types": 2, "embedding_norm": True, "head_transform": True},
    "classes": {"n_classes": 5, "pooling": "mean", "tied_head": True},
    "classes of tokens": {"n_classes": 5, "pooling": "none", "head_transform": True},
    "classes of tokens behind clusters": {"n_classes": 2, "pooling": "none", "cutoffs": CUTOFFS, "div_value": 2},
    "classes of each place by the last token": {"n_classes": 5, "pooling": "unroll", "head_transform": True},
    "classes behind clusters": {"n_classes": 2, "pooling": "mean", "cutoffs": CUTOFFS, "div_value": 2},
}


@pytest.mark.parametrize("norm_position", ["pre", "post"])
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("positions", ["rotary", "transformer_xl"])
@pytest.mark.parametrize("options", COUNTED.values(), ids=COUNTED)
def test_formula_counts_what_is_built(options: dict[str, Any], positions: str, norm: str, norm_position: str) -> None:
    shape = replace(SHAPE, positions=positions)
    built = backbone(shape, norm, norm_position, **options)
    config = NetworkConfig(shape, V, (), norm, norm_position, BackboneConfig(**options))
    assert parameters(config) == sum(parameter.numel() for parameter in built.parameters())


# -- refusals -------------------------------------------------------------------------------------------------------


def test_unknown_norm_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^unknown norm 'batch'; known: layer, rms$"):
        make_norm("batch", 16)


def test_token_types_without_an_embedding_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^token_types are given, but the network's backbone has 0 of them$"):
        backbone().embed(tokens(), tokens())
