"""Softmax self-attention. B batch, T tokens, D model width, H heads, W head width."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks.base import Block, Context, allowed_keys, rotate
from nas.options import AttentionOptions, Shape


class Attention(Block):
    """softmax(q k^T / sqrt(W)) v per head, without biases. Vaswani et al. 2017 (arXiv:1706.03762), section 3.2."""

    Options = AttentionOptions

    def __init__(self, shape: Shape, options: AttentionOptions) -> None:
        super().__init__(shape, options)
        self.n_heads = options.heads(shape)
        self.rotary = shape.positions == "rotary"
        width = self.n_heads * shape.head_width
        self.proj_in = nn.Linear(shape.d_model, 3 * width, bias=False)
        self.proj_out = nn.Linear(width, shape.d_model, bias=False)

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        qkv = self.proj_in(x).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)  # (3, B, H, T, W)
        qk, v = qkv.split([2, 1])  # not slices: the gradient of each would fill a tensor as large as qkv
        q, k = (rotate(qk, context.positions) if self.rotary else qk).unbind()
        v = v.squeeze(0)
        if context.key_padding is None:  # without a mask tensor the fused kernel skips what causality hides
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=context.causal)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, allowed_keys(context, x.shape[1]))
        out: Tensor = self.proj_out(mixed.transpose(1, 2).flatten(2))
        return out
