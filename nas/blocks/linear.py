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

from nas.options import LINEAR_CHUNK


def features(x: Tensor) -> Tensor:
    """phi(x) = elu(x) + 1, never negative: equation 7 of the paper."""
    return F.elu(x) + 1


def linear_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, chunk: int = LINEAR_CHUNK) -> Tensor:
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
    groups = q.shape[1] // k.shape[1]
    q = torch.unflatten(q, 1, (-1, groups))  # (B, K, H / K, T, W)
    v = F.pad(v, (0, 1), value=1.0)  # a column of ones adds up the denominator
    if not causal:
        return divide(q @ (k.mT @ v)[:, :, None]).flatten(1, 2)
    memory = None
    if earlier:  # split, not sliced: the gradient of each slice would fill a tensor as large as k
        (memory_k, k), (memory_v, v) = (torch.split(each, [earlier, tokens], dim=2) for each in (k, v))
        memory = memory_k.mT @ memory_v  # (B, K, W, V + 1)
    size = min(chunk, tokens)
    q, k, v = by_chunks(q, 3, size).transpose(2, 3), by_chunks(k, 2, size), by_chunks(v, 2, size)
    rows = q.flatten(3, 4)  # (B, K, N chunks, H / K * C, W), as k and v are (B, K, N, C, ..)
    sums = torch.unflatten(rows @ k.mT, 3, (groups, size)).tril().flatten(3, 4) @ v
    if memory is not None or k.shape[2] > 1:
        own = k.mT @ v  # (B, K, N, W, V + 1)
        first = torch.zeros_like(own[:, :, 0]) if memory is None else memory
        before = torch.cat([first[:, :, None], own[:, :, :-1]], dim=2)
        # In bfloat16 a running sum would stop growing after some hundreds of chunks, unless a device adds in float32.
        before = before.cumsum(dim=2, dtype=torch.promote_types(before.dtype, torch.float32)).to(before.dtype)
        sums = sums + rows @ before
    mixed = torch.unflatten(divide(sums), 3, (groups, size)).transpose(2, 3)
    return mixed.flatten(3, 4)[:, :, :, :tokens].flatten(1, 2)


def by_chunks(x: Tensor, dim: int, size: int) -> Tensor:
    """Fold `dim` into (chunks, size), filled up with zeros; the last dimension follows it."""
    fill = -x.shape[dim] % size
    return torch.unflatten(F.pad(x, (0, 0, 0, fill)) if fill else x, dim, (-1, size))


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
    mixed, total = torch.split(sums, [sums.shape[-1] - 1, 1], dim=-1)
    return mixed / total.masked_fill(total == 0, 1.0)
