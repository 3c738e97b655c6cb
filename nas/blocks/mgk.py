"""Attention with a mixture of Gaussian keys: Nguyen et al. 2022 (arXiv:2110.08678), the distance form.

B batch, T tokens, D model width, H heads, W head width, M keys per position.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks.base import Block, Context, allowed_keys, rotate
from nas.options import MgkOptions, Shape


class MixtureOfGaussianKeys(Block):
    """Each position is M Gaussians around its keys; a query attends by the posterior of the position.

        a_ij = sum_r pi_r exp(-|q_i - k_jr|^2 / (2 sigma^2)) / (the same summed over j),   sigma^2 = sqrt(W)

    The mixing weights pi = softmax(logits) are learned per head, from equal ones; sigma is fixed and shared. The M keys
    come from independent projections: equal ones would be a symmetric point that training cannot leave.
    """

    Options = MgkOptions

    def __init__(self, shape: Shape, options: MgkOptions) -> None:
        super().__init__(shape, options)
        self.n_heads = options.heads(shape)
        self.n_keys = options.n_keys
        self.rotary = shape.positions == "rotary"
        width = self.n_heads * shape.head_width
        self.proj_in = nn.Linear(shape.d_model, (2 + self.n_keys) * width, bias=False)  # q, the M keys, v
        self.logits = nn.Parameter(torch.zeros(self.n_heads, self.n_keys))
        self.proj_out = nn.Linear(width, shape.d_model, bias=False)

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        projected = self.proj_in(x).unflatten(-1, (2 + self.n_keys, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
        qk, v = projected.split([1 + self.n_keys, 1])  # (1 + M, B, H, T, W), (1, B, H, T, W)
        if self.rotary:
            qk = rotate(qk, context.positions)  # keeps the norms, so distances stay those of the spec
        allowed = allowed_keys(context, x.shape[1])
        if allowed is not None:
            allowed = torch.cat([allowed] * self.n_keys, dim=-1)  # (.., T, M * T)
        q, keys = qk.split([1, self.n_keys])
        mixed = mix(q[0], keys, v[0], self.logits.log_softmax(dim=-1), allowed)
        out: Tensor = self.proj_out(mixed.transpose(1, 2).flatten(2))
        return out


def mix(q: Tensor, keys: Tensor, v: Tensor, log_pi: Tensor, allowed: Tensor | None) -> Tensor:
    """The mixture as one softmax over M * T key slots, exactly, in the fused kernel.

    -|q - k|^2 / (2 sigma^2) is q.k / sigma^2 - |k|^2 / (2 sigma^2) and a term of q that the softmax cancels. The part
    that depends on the key rides in an extra channel, against a 1 in the query, so no (T, M * T) bias is ever built.

    Args:
        q: (B, H, T, W).
        keys: (M, B, H, T, W).
        v: (B, H, T, W), one value for the M keys of a position.
        log_pi: (H, M).
        allowed: bool, broadcast to (B, H, T, M * T), the M copies of the positions one after the other; None: all.

    Returns:
        (B, H, T, W).
    """
    width, n_keys = q.shape[-1], keys.shape[0]
    precision = width**-0.5  # 1 / sigma^2
    bias = log_pi.t()[:, None, :, None] - keys.square().sum(dim=-1) * (precision / 2)  # (M, B, H, T)
    q = F.pad(q * precision, (0, 1), value=1.0)
    slots = torch.cat([keys, bias[..., None]], dim=-1).movedim(0, 2).flatten(2, 3)  # (B, H, M * T, W + 1)
    values = torch.cat([F.pad(v, (0, 1))] * n_keys, dim=2)  # the kernel wants values as wide as keys
    return F.scaled_dot_product_attention(q, slots, values, allowed, scale=1.0)[..., :width]
