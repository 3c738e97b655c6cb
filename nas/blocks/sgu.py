"""Spatial gating unit of gMLP: Liu et al. 2021, "Pay Attention to MLPs" (arXiv:2105.08050).

B batch, T tokens, D model width, G width of each half.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks.base import Block, Context
from nas.options import SguOptions, Shape


class SpatialGatingUnit(Block):
    """Mix tokens by a learned static gate: Z1 * (W norm(Z2) + b), section 2.1 of the paper.

    W holds max_len x max_len weights and b one bias a position; shorter inputs use the leading part of both.
    """

    Options = SguOptions

    def __init__(self, shape: Shape, options: SguOptions) -> None:
        super().__init__(shape, options)
        width = options.ratio * shape.d_model // 2  # G
        self.proj_in = nn.Linear(shape.d_model, 2 * width)
        self.norm = nn.LayerNorm(width)
        # W near 0 and b = 1 open the gate: the block starts as a plain FFN, so that early updates
        # of alpha do not punish it for an untrained token mixer.
        self.weight = nn.Parameter(torch.empty(shape.max_len, shape.max_len).uniform_(-1, 1) * 1e-3 / shape.max_len)
        self.bias = nn.Parameter(torch.ones(shape.max_len))
        self.proj_out = nn.Linear(width, shape.d_model)

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        tokens = x.shape[1]
        weight = self.weight[:tokens, :tokens]
        weight = weight.tril() if context.causal else weight
        # Two products with the halves of one matrix: halves of one product would be strided, and copied at each use.
        halves = zip(self.proj_in.weight.chunk(2), self.proj_in.bias.chunk(2), strict=True)
        z1, z2 = (F.gelu(F.linear(x, *half), approximate="tanh") for half in halves)  # (B, T, G) each
        z2 = self.norm(z2)
        if context.key_padding is not None:
            # After the norm: the norm of a zero vector is its shift, which is not zero once trained.
            z2 = z2 * context.key_padding[:, :, None]
        gate = torch.baddbmm(self.bias[:tokens, None], weight.expand(len(x), tokens, tokens), z2)  # (B, T, G)
        out: Tensor = self.proj_out(z1 * gate)  # annotated: calling a module returns Any
        return out
