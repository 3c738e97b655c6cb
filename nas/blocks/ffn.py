"""Position-wise feed-forward network. B batch, T tokens, D model width."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks.base import Context, PositionWise
from nas.options import FfnOptions, Shape


class FeedForward(PositionWise):
    """Widen, activate, narrow: the mixer that mixes no positions. Vaswani et al. 2017 (arXiv:1706.03762), section 3.3.

    SwiGLU is Shazeer 2020 (arXiv:2002.05202), equation 6: silu(x W) * (x V), narrowed.
    """

    Options = FfnOptions

    def __init__(self, shape: Shape, options: FfnOptions) -> None:
        super().__init__(shape, options)
        hidden = options.hidden(shape)
        self.activation = options.activation
        self.dropout = shape.dropout
        gated = options.activation == "swiglu"
        self.proj_in = nn.Linear(shape.d_model, 2 * hidden if gated else hidden, bias=options.bias)
        self.proj_out = nn.Linear(hidden, shape.d_model, bias=options.bias)

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        hidden: Tensor = self.proj_in(x)
        if self.activation == "swiglu":
            gate, value = hidden.chunk(2, dim=-1)
            hidden = F.silu(gate) * value
        elif self.activation == "relu":
            hidden = F.relu(hidden)
        else:
            hidden = F.gelu(hidden, approximate="tanh")  # on a CPU it is markedly faster than the exact one
        out: Tensor = self.proj_out(F.dropout(hidden, self.dropout, self.training))
        return out
