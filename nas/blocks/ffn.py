"""Position-wise feed-forward network. B batch, T tokens, D model width."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks.base import Block, Context
from nas.options import FfnOptions, Shape


class FeedForward(Block):
    """Widen, GELU, narrow: the mixer that mixes no positions. Vaswani et al. 2017 (arXiv:1706.03762), section 3.3."""

    Options = FfnOptions

    def __init__(self, shape: Shape, options: FfnOptions) -> None:
        super().__init__(shape, options)
        hidden = options.ratio * shape.d_model
        self.proj_in = nn.Linear(shape.d_model, hidden)
        self.proj_out = nn.Linear(hidden, shape.d_model)

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        # The tanh form: on a CPU it is markedly faster than the exact one.
        out: Tensor = self.proj_out(F.gelu(self.proj_in(x), approximate="tanh"))
        return out
