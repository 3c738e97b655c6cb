"""Tied heads and the adaptive softmax: par-search.md section 7.4 and section 9, item 33."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from nas.heads import PROJECTION_STD, WEIGHT_STD, AdaptiveEmbedding, AdaptiveSoftmax, TiedLinear

V, D = 60, 16
CUTOFFS = (10, 30, 31)

over_ties = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
over_widths = pytest.mark.parametrize("div_value", [1, 2], ids=["equal", "narrower"])


def softmax(tied: bool, div_value: int, cutoffs: Sequence[int] = CUTOFFS) -> AdaptiveSoftmax:
    torch.manual_seed(0)
    head = AdaptiveSoftmax(AdaptiveEmbedding(V, D, cutoffs, div_value), tied=tied).double()
    if tied:
        embedding_of(head).double()
    with torch.no_grad():  # biases start at 0, and projections too small to see
        for parameter in [*head.parameters(), *embedding_of(head).parameters()]:
            parameter.normal_(std=0.5)
    return head


def embedding_of(head: AdaptiveSoftmax) -> AdaptiveEmbedding:
    found: AdaptiveEmbedding = head.get_submodule("head").source[0]
    return found


def hidden(n: int = 40) -> Tensor:
    return torch.randn(n, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@over_ties
@over_widths
def test_probabilities_sum_to_one(tied: bool, div_value: int) -> None:
    total = softmax(tied, div_value).log_prob(hidden()).exp().sum(dim=-1)
    assert_close(total, torch.ones(40, dtype=torch.float64))


@over_ties
@over_widths
def test_log_probabilities_are_the_definition(tied: bool, div_value: int) -> None:
    """log p(w) in the shortlist; log p(cluster) + log p(w in the cluster) behind it."""
    head = softmax(tied, div_value)
    embedding = embedding_of(head)
    shortlist, *tail = [head.get_submodule("head"), *head.get_submodule("tail").children()]
    x = hidden()

    def scores(cluster: int, rows: Tensor, bias: Tensor) -> Tensor:
        projection = None
        if div_value > 1:
            projection = embedding.projections[cluster]
            if tied and cluster == 0:  # the one that Transformer-XL does not tie
                projection = shortlist.projection
        return (x if projection is None else x @ projection.T) @ rows.T + bias

    first = scores(0, torch.cat([embedding.tables[0], shortlist.clusters]), shortlist.bias).log_softmax(dim=-1)
    parts = [first[:, : CUTOFFS[0]]]
    for cluster, each in enumerate(tail, start=1):
        inside = scores(cluster, embedding.tables[cluster], each.bias).log_softmax(dim=-1)
        parts.append(first[:, CUTOFFS[0] + cluster - 1, None] + inside)
    assert_close(head.log_prob(x), torch.cat(parts, dim=-1))


@over_ties
@over_widths
def test_loss_path_gives_the_log_probabilities_of_the_targets(tied: bool, div_value: int) -> None:
    head = softmax(tied, div_value)
    targets = torch.arange(V)[torch.randperm(V, generator=torch.Generator().manual_seed(2))[:40]]
    assert_close(head(hidden(), targets).output, head.log_prob(hidden()).gather(1, targets[:, None])[:, 0])


def test_one_cluster_of_one_token_is_a_plain_softmax_with_the_bias_of_both() -> None:
    """Where no cluster has to share, the adaptive softmax is the plain one: p(cluster) is p(its token)."""
    head = softmax(False, 1, cutoffs=(V - 1,))
    shortlist = head.get_submodule("head")
    rows = torch.cat([embedding_of(head).tables[0], shortlist.clusters])
    assert_close(head.log_prob(hidden()), F.linear(hidden(), rows, shortlist.bias).log_softmax(dim=-1))


@over_widths
def test_embedding_looks_up_each_token_in_its_cluster(div_value: int) -> None:
    embedding = embedding_of(softmax(True, div_value))
    tokens = torch.arange(V).view(4, 15)
    found = embedding(tokens)
    bounds = (0, *CUTOFFS, V)
    for token in range(V):
        cluster = max(each for each in range(4) if bounds[each] <= token)
        expected = embedding.tables[cluster][token - bounds[cluster]]
        if div_value > 1:
            expected = expected @ embedding.projections[cluster]
        assert_close(found[token // 15, token % 15], expected)


@over_widths
def test_only_the_tokens_that_were_read_get_a_gradient(div_value: int) -> None:
    """The look-up reads a row of every cluster and drops all but one: the dropped must not learn."""
    embedding = embedding_of(softmax(True, div_value))
    embedding(torch.tensor([[3, 12, 12]])).sum().backward()
    touched = [table.grad.abs().sum(dim=-1).nonzero().flatten().tolist() for table in embedding.tables]
    assert touched == [[3], [2], [], []]


@pytest.mark.parametrize(("div_value", "widths"), [(1, [16] * 4), (2, [16, 8, 4, 2])], ids=["equal", "narrower"])
def test_clusters_have_the_widths_of_the_paper(div_value: int, widths: list[int]) -> None:
    embedding = AdaptiveEmbedding(V, D, CUTOFFS, div_value)
    assert [list(table.shape) for table in embedding.tables] == [
        [size, width] for size, width in zip([10, 20, 1, 29], widths, strict=True)
    ]
    expected = [] if div_value == 1 else [[width, D] for width in widths]
    assert [list(projection.shape) for projection in embedding.projections] == expected


def test_tied_head_reads_the_embeddings_storage_and_does_not_own_it() -> None:
    head = softmax(True, 2)
    embedding = embedding_of(head)
    before = head.log_prob(hidden())
    with torch.no_grad():
        for each in [*embedding.tables, *list(embedding.projections)[1:]]:
            each.mul_(2)
    assert not torch.allclose(head.log_prob(hidden()), before)
    tables = {table.data_ptr() for table in embedding.parameters()}
    assert not tables & {parameter.data_ptr() for parameter in head.parameters()}


def test_untied_head_owns_its_tables() -> None:
    head = softmax(False, 1)
    owned = {parameter.data_ptr() for parameter in head.parameters()}
    assert {table.data_ptr() for table in embedding_of(head).tables} <= owned


def test_shortlists_projection_is_not_tied() -> None:
    head = softmax(True, 2)
    before = head.log_prob(hidden())
    with torch.no_grad():
        embedding_of(head).projections[0].mul_(2)
    assert torch.equal(head.log_prob(hidden()), before)


def test_tables_and_projections_start_as_in_transformer_xl() -> None:
    torch.manual_seed(0)
    embedding = AdaptiveEmbedding(2000, 64, (1000,), 2)
    head = AdaptiveSoftmax(embedding, tied=True)
    # 32,000 draws or more each: the deviation of a sample's deviation is below half a percent.
    assert embedding.tables[1].std().item() == pytest.approx(WEIGHT_STD, rel=0.02)
    assert embedding.projections[0].std().item() == pytest.approx(PROJECTION_STD, rel=0.05)  # 4,096 draws
    assert all((bias == 0).all() for name, bias in head.named_parameters() if name.endswith("bias"))


def test_tied_linear_is_linear_with_the_embeddings_weight() -> None:
    embedding = torch.nn.Embedding(V, D)
    head = TiedLinear(embedding)
    x = hidden().float()
    assert torch.equal(head(x), F.linear(x, embedding.weight, head.bias))
    assert [name for name, _ in head.named_parameters()] == ["bias"]


@pytest.mark.parametrize("adaptive", [True, False], ids=["adaptive", "plain"])
def test_copy_of_a_model_is_tied_to_its_own_embedding(adaptive: bool) -> None:
    model = torch.nn.ModuleDict()
    model["embedding"] = AdaptiveEmbedding(V, D, CUTOFFS, 1) if adaptive else torch.nn.Embedding(V, D)
    model["head"] = AdaptiveSoftmax(model["embedding"], tied=True) if adaptive else TiedLinear(model["embedding"])
    twin = copy.deepcopy(model)
    head = twin["head"].get_submodule("head") if adaptive else twin["head"]
    assert head.source[0] is twin["embedding"]
    assert head.source[0] is not model["embedding"]
