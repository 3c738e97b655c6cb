"""No block: the slot passes its input on. B batch, T tokens, D model width."""

from __future__ import annotations

import torch
from torch import Tensor

from nas.blocks.base import Context, PositionWise
from nas.options import IdentityOptions


class Identity(PositionWise):
    """Returns zeros, so that x + block(norm(x)) is x. Networks and supernets skip it instead of running it."""

    Options = IdentityOptions

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        return torch.zeros_like(x)
