"""The contract of a block, what a backbone tells it, and rotary positions.

B batch, T tokens, D model width, H heads, W head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nas.options import Shape


@dataclass(frozen=True)
class Context:
    """What a block may know besides its input; made once per forward by the backbone.

    Args:
        causal: whether a position sees only itself and earlier ones.
        key_padding: (B, T) bool, True where a token is real; None when all are.
        memory: (B, M, D) normalised inputs of earlier tokens, detached; None without memory.
        positions: (T,) integer positions of the tokens.
        lengths: (B,) real tokens per row; None when all rows are full.
    """

    causal: bool
    positions: Tensor
    key_padding: Tensor | None = None
    memory: Tensor | None = None
    lengths: Tensor | None = None


class Block(nn.Module):
    """One candidate: projection in, mixer, projection out.

    A slot computes x + block(norm(x), context): the residual and the norm are the slot's, never the block's.
    Subclasses set `Options` and take (shape, options).
    """

    Options: type[Any]

    def __init__(self, shape: Shape, options: Any) -> None:
        super().__init__()

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        raise NotImplementedError


def rotate(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary positions: turn channel pairs (c, c + W/2) by position * 10000^(-2c/W).

    Su et al. 2021 (arXiv:2104.09864), section 3.2.2, with the two halves as the pairs.

    Args:
        x: (..., T, W), W even.
        positions: (T,) integers.

    Returns:
        (..., T, W), of the norm of x.
    """
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = positions.to(torch.float32)[:, None] * frequencies  # (T, W/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)  # not two slices: the gradient of each slice would fill a tensor as large as x
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def allowed_keys(context: Context, tokens: int) -> Tensor | None:
    """Which keys each query may see: (T, T) or (B, 1, T, T) bool, True where it may; None when every one.

    A query whose keys are all padding sees nothing; scaled_dot_product_attention answers it with zeros.
    """
    allowed = None
    if context.causal:
        allowed = torch.ones(tokens, tokens, dtype=torch.bool, device=context.positions.device).tril()
    if context.key_padding is not None:
        keys = context.key_padding[:, None, None, :]  # (B, 1, 1, T)
        allowed = keys.expand(-1, 1, tokens, -1) if allowed is None else keys & allowed
    return allowed
