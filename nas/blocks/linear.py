"""Linear attention: softmax's kernel replaced by a product of positive features, so that sums over keys are shared.

Katharopoulos et al. 2020 (arXiv:2006.16236), section 3: out_i is phi(q_i) sum_j phi(k_j) v_j^T over
phi(q_i) sum_j phi(k_j), with j <= i where causal.

B batch, T tokens, S = memory + T keys, W width of features, V of values, H query heads, K heads of keys and values,
each serving H / K query heads.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def features(x: Tensor) -> Tensor:
    """phi(x) = elu(x) + 1, never negative: equation 7 of the paper."""
    return F.elu(x) + 1


def linear_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, chunk: int = 64) -> Tensor:
    """Average v by weights proportional to q_i . k_j, without a (T, S) matrix.

    Causal sums are taken by chunks of tokens: those inside a chunk as a masked product, those of earlier chunks and of
    memory from a running sum of k v^T. Cost is linear in T.

    Args:
        q: (B, H, T, W) features of the queries.
        k: (B, K, S, W) features of the keys; zeros where a key is padding.
        v: (B, K, S, V); the S - T first are memory, which every query sees.
        causal: whether token i sees tokens up to i alone.
        chunk: tokens per chunk; changes rounding and speed, nothing else.

    Returns:
        (B, H, T, V); zeros where all products q_i . k_j are zero.
    """
    tokens, earlier = q.shape[2], k.shape[2] - q.shape[2]
    v = F.pad(v, (0, 1), value=1.0)  # a column of ones adds up the denominator
    groups = q.shape[1] // k.shape[1]
    q = torch.unflatten(q, 1, (-1, groups))  # (B, K, H / K, T, W)
    if not causal:
        return divide(q @ (k.mT @ v)[:, :, None]).flatten(1, 2)
    size = min(chunk, tokens)
    fill = -tokens % size
    q = torch.unflatten(F.pad(q, (0, 0, 0, fill)), 3, (-1, size)).transpose(2, 3)  # (B, K, N chunks, H / K, C, W)
    inside_k = torch.unflatten(F.pad(k[:, :, earlier:], (0, 0, 0, fill)), 2, (-1, size))  # (B, K, N, C, W)
    inside_v = torch.unflatten(F.pad(v[:, :, earlier:], (0, 0, 0, fill)), 2, (-1, size))
    memory = k[:, :, :earlier].mT @ v[:, :, :earlier]  # (B, K, W, V + 1), zeros without memory
    sums = torch.cat([memory[:, :, None], inside_k[:, :, :-1].mT @ inside_v[:, :, :-1]], dim=2)
    # A running sum in bfloat16 would stop growing after some hundreds of chunks.
    sums = sums.cumsum(dim=2, dtype=torch.promote_types(sums.dtype, torch.float32)).to(sums.dtype)
    rows = q.flatten(3, 4)  # (B, K, N, H / K * C, W)
    products = torch.unflatten(rows @ inside_k.mT, 3, (groups, size)).tril().flatten(3, 4)
    mixed = torch.unflatten(divide(rows @ sums + products @ inside_v), 3, (groups, size))
    return mixed.transpose(2, 3).flatten(3, 4)[:, :, :, :tokens].flatten(1, 2)


def linear_step(q: Tensor, k: Tensor, v: Tensor, sums: Tensor) -> Tensor:
    """The last row of causal `linear_attention`, from the sums over the tokens before it.

    Args:
        q: (B, H, 1, W) features of the query.
        k: (B, K, 1, W) features of its own key.
        v: (B, K, 1, V).
        sums: (B, K, W, V + 1), zeros before the first token; updated in place.

    Returns:
        (B, H, 1, V).
    """
    sums += k.mT @ F.pad(v, (0, 1), value=1.0)
    rows = q.reshape(q.shape[0], k.shape[1], -1, q.shape[3])  # (B, K, H / K, W)
    return divide(rows @ sums).flatten(1, 2)[:, :, None]


def divide(sums: Tensor) -> Tensor:
    """(..., V + 1) -> (..., V): all columns by the last; zeros where it is zero, for then so are they."""
    total = sums[..., -1:]
    return sums[..., :-1] / total.masked_fill(total == 0, 1.0)
