"""A depth-wise convolution over time between two projections. B batch, T tokens, D model width, K kernel.

A depth-wise convolution as token mixer as in Wu et al. 2019 (arXiv:1901.10430), without tying or normalising kernels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from blockwright_conv.options import ConvolutionOptions
from nas.blocks.base import Block, Cache, Context
from nas.options import Shape


class DepthwiseConvolution(Block):
    """Each channel is filtered over the last K tokens: proj_out(gelu(conv(proj_in(x))))."""

    Options = ConvolutionOptions

    def __init__(self, shape: Shape, options: ConvolutionOptions) -> None:
        super().__init__(shape, options)
        self.kernel = options.kernel
        self.proj_in = nn.Linear(shape.d_model, shape.d_model)
        self.weight = nn.Parameter(torch.empty(shape.d_model, 1, options.kernel))
        bound = options.kernel**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        self.bias = nn.Parameter(torch.zeros(shape.d_model))
        self.dropout = nn.Dropout(shape.dropout)
        self.proj_out = nn.Linear(shape.d_model, shape.d_model)

    @property
    def longest(self) -> int | None:
        return None

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        hidden = self.proj_in(x)
        if context.key_padding is not None:  # as the edges of a sequence, behind which there are zeros
            hidden = hidden * context.key_padding[:, :, None]
        before = self.kernel - 1 if context.causal else (self.kernel - 1) // 2
        padded = F.pad(hidden.transpose(1, 2), (before, self.kernel - 1 - before))  # (B, D, T + K - 1)
        mixed = F.conv1d(padded, self.weight, self.bias, groups=self.shape.d_model)  # (B, D, T)
        return self._out(mixed.transpose(1, 2))

    def _out(self, mixed: Tensor) -> Tensor:
        out: Tensor = self.proj_out(self.dropout(F.gelu(mixed)))
        return out

    def new_cache(self, batch: int, capacity: int, context: Context) -> Cache:
        """The last K - 1 hidden rows, whatever the capacity."""
        self.check_causal(context)
        recent = self.weight.new_zeros(batch, self.kernel - 1, self.shape.d_model)
        return Cache(context, capacity, tensors={"recent": recent})

    def step(self, x: Tensor, cache: Cache) -> Tensor:  # (B, 1, D) -> (B, 1, D)
        cache.take()
        recent = cache.tensors["recent"]
        window = torch.cat([recent, self.proj_in(x)], dim=1)  # (B, K, D)
        recent.copy_(window[:, 1:])
        mixed = (window * self.weight[:, 0].T).sum(dim=1, keepdim=True) + self.bias  # (B, 1, D)
        return self._out(mixed)
