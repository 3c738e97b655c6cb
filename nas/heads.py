"""From hidden states to tokens: a tied head, and the adaptive softmax with its embeddings.

Adaptive softmax: Grave et al. 2017 (arXiv:1609.04309); adaptive embeddings and their ties as in Transformer-XL, Dai et
al. 2019 (arXiv:1901.02860). N positions, D model width, V vocabulary, C clusters behind the shortlist.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

IGNORE = -100  # the target of a position that is not scored; what torch's own losses skip

WEIGHT_STD = 0.02  # of tables that are tied or scaled, and of all else that a backbone adds
PROJECTION_STD = 0.01  # of projections between a cluster's width and D; both figures are Transformer-XL's


def drawn(*size: int, std: float = WEIGHT_STD) -> nn.Parameter:
    """A parameter from N(0, std^2)."""
    return nn.Parameter(torch.empty(size).normal_(std=std))


def at_least_float32(x: Tensor) -> Tensor:
    """What softmax is taken of: half precision would lose the tails of a vocabulary."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class TiedLinear(nn.Module):
    """Scores by the embedding's own rows, with a bias: (.., D) -> (.., V)."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.source = (embedding,)  # in a tuple, so that it is not registered, and saved, a second time
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.source[0].weight, self.bias)


class AdaptiveEmbedding(nn.Module):
    """One table for each cluster of tokens, rarer ones narrower, with projections to D where they are.

    Args:
        vocab_size: V; token ids must be sorted by falling frequency.
        d_model: D.
        cutoffs: first token id of each cluster behind the shortlist, all below V.
        div_value: cluster c is D / div_value^c wide, which is at least 1; with 1 there are no projections.
        std: of the tables' entries.
    """

    def __init__(
        self, vocab_size: int, d_model: int, cutoffs: Sequence[int], div_value: int, std: float = WEIGHT_STD
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.bounds = (0, *cutoffs, vocab_size)
        widths = [d_model // div_value**cluster for cluster in range(len(cutoffs) + 1)]
        sizes = [end - start for start, end in zip(self.bounds, self.bounds[1:], strict=False)]
        self.tables = nn.ParameterList(drawn(*each, std=std) for each in zip(sizes, widths, strict=True))
        projected = widths if div_value > 1 else []
        self.projections = nn.ParameterList(drawn(width, d_model, std=PROJECTION_STD) for width in projected)

    def forward(self, tokens: Tensor) -> Tensor:  # (..) integers -> (.., D)
        out = self._of_cluster(tokens, 0)
        for cluster in range(1, len(self.tables)):
            inside = (tokens >= self.bounds[cluster])[..., None]
            out = torch.where(inside, self._of_cluster(tokens, cluster), out)
        return out

    def _of_cluster(self, tokens: Tensor, cluster: int) -> Tensor:
        """The embeddings of the cluster's tokens; of others, anything. No selection: compilers need fixed shapes."""
        start, end = self.bounds[cluster : cluster + 2]
        out = F.embedding(tokens.clamp(start, end - 1) - start, self.tables[cluster])
        return out @ self.projections[cluster] if len(self.projections) else out


class ClusterScores(nn.Module):
    """Scores of one cluster's tokens by the rows of its table: (N, D) -> (N, size + n_clusters).

    Args:
        embedding: whose table and projection are used.
        cluster: its number; 0 is the shortlist.
        n_clusters: C for the shortlist, which also scores each cluster as a whole; else 0.
        own_projection: do not use the embedding's projection (Transformer-XL ties all but the shortlist's).
    """

    def __init__(
        self, embedding: AdaptiveEmbedding, cluster: int, n_clusters: int = 0, *, own_projection: bool = False
    ) -> None:
        super().__init__()
        self.source = (embedding,)  # in a tuple, so that it is not registered, and saved, a second time
        self.cluster = cluster
        size, width = embedding.tables[cluster].shape
        self.clusters = drawn(n_clusters, width) if n_clusters else None
        self.projection = drawn(width, embedding.d_model, std=PROJECTION_STD) if own_projection else None
        self.bias = nn.Parameter(torch.zeros(size + n_clusters))

    def forward(self, x: Tensor) -> Tensor:
        embedding = self.source[0]
        if self.projection is not None:
            x = F.linear(x, self.projection)
        elif len(embedding.projections):
            x = F.linear(x, embedding.projections[self.cluster])
        rows: Tensor = embedding.tables[self.cluster]
        rows = rows if self.clusters is None else torch.cat([rows, self.clusters])
        return at_least_float32(F.linear(x, rows, self.bias))  # under autocast too, where the product is not


class AdaptiveSoftmax(nn.AdaptiveLogSoftmaxWithLoss):
    """torch's adaptive softmax over the rows of an adaptive embedding, with biases on all scores.

    Args:
        embedding: the input's, or the head's own.
        tied: whether it is the input's.
    """

    def __init__(self, embedding: AdaptiveEmbedding, *, tied: bool) -> None:
        cutoffs, vocab_size = embedding.bounds[1:-1], embedding.bounds[-1]
        # Only the arithmetic is torch's: its modules, which cannot be tied, take no memory on this device and go.
        super().__init__(embedding.d_model, vocab_size, cutoffs, div_value=1.0, device="meta")
        own_projection = tied and len(embedding.projections) > 0
        self.add_module("head", ClusterScores(embedding, 0, len(cutoffs), own_projection=own_projection))
        tail = [ClusterScores(embedding, cluster) for cluster in range(1, len(cutoffs) + 1)]
        self.add_module("tail", nn.ModuleList(tail))
        self.embedding = None if tied else embedding
