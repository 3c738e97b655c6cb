"""Spatial gating unit of gMLP and aMLP: Liu et al. 2021, "Pay Attention to MLPs" (arXiv:2105.08050).

B batch, T tokens, N max_len, D model width, E expanded width, G width of the gate, S spatial heads, A attention width.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks.base import Block, Cache, Context, allowed_keys
from nas.options import SguOptions, Shape

SPATIAL_START = 1e-3  # the first spatial weights lie within this / N; the paper says "near zero" and gives no range


class TinyAttention(nn.Module):
    """One softmax head that aMLP adds to the gate. It reads what the block reads.

    Args:
        shape: of the block.
        width: A, of the head.
        gate_width: G.
    """

    def __init__(self, shape: Shape, width: int, gate_width: int) -> None:
        super().__init__()
        self.dropout = shape.attention_dropout
        self.proj_qkv = nn.Linear(shape.d_model, 3 * width)
        self.proj_out = nn.Linear(width, gate_width)
        # Small, so that the gate starts near 1 here too.
        nn.init.normal_(self.proj_out.weight, std=0.02)
        nn.init.zeros_(self.proj_out.bias)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (B, T, A), of x (B, T, D)."""
        q, k, v = self.proj_qkv(x).chunk(3, dim=-1)
        return q, k, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, is_causal: bool = False) -> Tensor:
        """(B, T, G) from q (B, T, A), k and v (B, K, A); allowed (T, K) or (B, 1, T, K) as of `allowed_keys`."""
        mixed = F.scaled_dot_product_attention(
            q[:, None],
            k[:, None],
            v[:, None],
            attn_mask=allowed,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
        )
        out: Tensor = self.proj_out(mixed[:, 0])
        return out

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, G)
        tokens = x.shape[1]
        all_near = context.span is None or context.span >= tokens
        # Without a mask tensor the fused kernel may skip what causality hides.
        plain = context.causal and context.key_padding is None and all_near
        # The unit has no memory, so neither has its attention.
        allowed = None if plain else allowed_keys(replace(context, memory=None), tokens)
        return self.attend(*self.project(x), allowed, is_causal=plain)


class SpatialGatingUnit(Block):
    """Mix tokens by a learned static gate: V (Z1 * (W norm(Z2) + b)), Z = gelu(U x). Section 2.1 of the paper.

    W is "free", (S, N, N), of which a shorter input uses the leading part, or "toeplitz": a vector w for each head, in
    which w[k + N - 1] weighs the token k = i - j before the target i. A causal block holds no weights of later tokens:
    w has N entries, and w[k] is the weight of k tokens before. Tokens N or more apart do not mix. w and b are
    stored flat, over the heads too, so they are vectors to the optimiser, which decays matrices alone: decay of b would
    close the gate.

    It reads no memory: W has no rows for earlier segments.
    """

    Options = SguOptions

    def __init__(self, shape: Shape, options: SguOptions) -> None:
        super().__init__(shape, options)
        self.options = options
        self.heads = options.n_heads
        width, length = options.gated(shape), shape.max_len
        self.proj_in = nn.Linear(shape.d_model, options.expanded(shape))
        self.norm = nn.LayerNorm(width)
        sizes: tuple[int, ...] = (self.heads, length, length)
        if options.spatial == "toeplitz":
            sizes = (self.heads * (length if shape.causal else 2 * length - 1),)
        # W near 0 and b = 1 open the gate: the block starts as a plain FFN, so that early updates
        # of alpha do not punish it for an untrained token mixer.
        bound = SPATIAL_START / length
        self.weight = nn.Parameter(torch.empty(sizes).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.ones(self.heads * (length if options.bias == "vector" else 1)))
        self.proj_out = nn.Linear(width, shape.d_model)
        attention_width = options.attention_width
        self.attention = TinyAttention(shape, attention_width, width) if attention_width else None

    @property
    def longest(self) -> int | None:
        endless = self.options.spatial == "toeplitz" and self.options.bias == "scalar"
        return None if endless else self.shape.max_len

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        """Raises: ValueError: the input is longer than the weights reach."""
        self.check_length(x.shape[1])
        bypass, gated = self.expand(x)
        if context.key_padding is not None:
            # After the norm: the norm of a zero vector is its shift, which is not zero once trained.
            gated = gated * context.key_padding[:, :, None]
        mixed = self.spatial(gated, context.causal)
        if self.attention is not None:
            mixed = mixed + self.attention(x, context)
        return self.close(bypass, mixed)

    def new_cache(self, batch: int, capacity: int, context: Context) -> Cache:
        """The norm of each token's gate input, from which the spatial sum is taken, and the attention's k and v.

        Raises:
            ValueError: the context is not causal, or the weights do not reach over the capacity.
        """
        self.check_causal(context)
        self.check_length(capacity)
        widths = {"gated": self.options.gated(self.shape)}
        if self.attention is not None:
            widths |= {"k": self.options.attention_width, "v": self.options.attention_width}
        tensors = {name: self.bias.new_zeros(batch, capacity, width) for name, width in widths.items()}
        return Cache(context, capacity, tensors=tensors)

    def step(self, x: Tensor, cache: Cache) -> Tensor:  # (B, 1, D) -> (B, 1, D)
        at = cache.take()
        bypass, gated = self.expand(x)
        cache.tensors["gated"][:, at] = gated[:, 0]
        if self.options.spatial == "free":
            first = 0
            weight = self.weight[:, at : at + 1, : at + 1]
        else:
            first = max(0, at + 1 - self.shape.max_len)
            weight = self.past()[:, None, : at + 1 - first].flip(-1)
        mixed = self.mix(weight, self.bias_of(at, at + 1), cache.tensors["gated"][:, first : at + 1])
        if self.attention is not None:
            q, k, v = self.attention.project(x)
            cache.tensors["k"][:, at], cache.tensors["v"][:, at] = k[:, 0], v[:, 0]
            first = 0 if cache.context.span is None else max(0, at + 1 - cache.context.span)
            k, v = (cache.tensors[name][:, first : at + 1] for name in ("k", "v"))
            mixed = mixed + self.attention.attend(q, k, v, allowed=None)
        return self.close(bypass, mixed)

    def expand(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Z1, or all of Z where the gate does not split it, and the normed input of the spatial sum: (B, T, G) each."""
        if self.options.gate == "split":
            # Two products with halves of one matrix: halves of one product would be strided, and copied at each use.
            halves = zip(self.proj_in.weight.chunk(2), self.proj_in.bias.chunk(2), strict=True)
            bypass, gated = (F.gelu(F.linear(x, *half), approximate="tanh") for half in halves)
        else:
            bypass = gated = F.gelu(self.proj_in(x), approximate="tanh")
        return bypass, self.norm(gated)

    def close(self, bypass: Tensor, mixed: Tensor) -> Tensor:
        """The block's output (B, T, D): gate Z1 by the spatial sum and project."""
        if self.options.gate == "linear":
            gated = mixed
        elif self.options.gate == "additive":
            gated = bypass + mixed
        else:
            gated = bypass * mixed
        out: Tensor = self.proj_out(F.dropout(gated, self.shape.dropout, self.training))
        return out

    def spatial(self, gated: Tensor, causal: bool) -> Tensor:  # (B, T, G) -> (B, T, G)
        """W gated + b, in the way that is faster at this length."""
        tokens = gated.shape[1]
        bias, length = self.bias_of(0, tokens), self.options.fft_length(tokens)
        if length is None:
            return self.mix(self.matrix(tokens, causal), bias, gated)
        return self.convolve(self.kernel(tokens, causal), bias, gated, length)

    def past(self) -> Tensor:
        """(S, N) Toeplitz weights of the token itself and of those before it, nearest first."""
        return self.weight.view(self.heads, -1)[:, -self.shape.max_len :]

    def kernel(self, tokens: int, causal: bool) -> Tensor:
        """(S, 2 T - 1) Toeplitz weights at distances -(T - 1) to T - 1; zero beyond N - 1, and where unseen."""
        beyond = tokens - self.shape.max_len  # negative: as many entries are cut off
        if causal or self.shape.causal:
            return F.pad(self.past(), (tokens - 1, beyond))
        return F.pad(self.weight.view(self.heads, -1), (beyond, beyond))

    def matrix(self, tokens: int, causal: bool) -> Tensor:
        """(S, T, T) spatial weights of each target i and source j, zero for j > i where causal."""
        if self.options.spatial == "free":
            weight = self.weight[:, :tokens, :tokens]
            return weight.tril() if causal else weight
        # Entry (i, j) of the windows is kernel[i + j]; turned over, kernel[T - 1 + i - j]. Of the ways to gather it,
        # this is the fastest: 1.8 ms with its gradient at T = 1024; as_strided, a skewed view or indices take 3 to 7.
        return self.kernel(tokens, causal).unfold(-1, tokens, 1).flip(-1)

    def bias_of(self, first: int, last: int) -> Tensor:
        """(S, last - first, 1) of these positions, or (S, 1, 1) for all."""
        bias = self.bias.view(self.heads, -1, 1)
        return bias if self.options.bias == "scalar" else bias[:, first:last]

    def mix(self, weight: Tensor, bias: Tensor, gated: Tensor) -> Tensor:
        """Spatial sums by matrix products.

        Args:
            weight: (S, T, K) of T targets and K sources.
            bias: (S, T or 1, 1).
            gated: (B, K, G).

        Returns:
            (B, T, G).
        """
        batch = gated.shape[0]
        if self.heads > 1 and weight.shape[1] > 1:
            grouped = torch.unflatten(gated, -1, (self.heads, -1)).permute(2, 1, 0, 3)  # (S, K, B, G / S)
            mixed = torch.unflatten(torch.baddbmm(bias, weight, grouped.flatten(2)), -1, (batch, -1))
            return mixed.permute(2, 1, 0, 3).flatten(2)
        # For one target, regrouping the sources would take longer than the sum: 63 ms against 11 at (16, 1024, 512).
        each_head = zip(bias, weight, gated.chunk(self.heads, dim=-1), strict=True)
        parts = [torch.baddbmm(b, w.expand(batch, -1, -1), sources) for b, w, sources in each_head]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def convolve(self, kernel: Tensor, bias: Tensor, gated: Tensor, length: int) -> Tensor:
        """Spatial sums by FFT: the Toeplitz matrix is a part of a circulant one, so the result is exact.

        Half precision would not do: transforms run in float32 at least.

        Args:
            kernel: (S, 2 T - 1), as of `kernel`.
            bias: (S, T or 1, 1).
            gated: (B, T, G).
            length: of the transforms, at least 2 T - 1; a shorter one would wrap later tokens into earlier ones.

        Returns:
            (B, T, G).
        """
        tokens = gated.shape[1]
        dtype = torch.promote_types(gated.dtype, torch.float32)
        around = F.pad(kernel.to(dtype), (0, length + 1 - 2 * tokens)).roll(1 - tokens, -1)  # from distance 0 on
        spectrum = torch.fft.fft(around)[:, None]  # (S, 1, length)
        grouped = torch.unflatten(gated.to(dtype), -1, (self.heads, -1))  # (B, T, S, G / S)
        width = grouped.shape[-1]
        if width % 2:
            grouped = F.pad(grouped, (0, 1))
        # Two channels are one complex sequence, since the kernel is real. Not rfft: its gradient is a complex transform
        # of twice the work. One example at a time, which stays in the processor's cache: half the time of all at once.
        pairs = torch.view_as_complex(torch.unflatten(grouped, -1, (-1, 2)))  # (B, T, S, P)
        mixed = [
            torch.fft.ifft(torch.fft.fft(each.permute(1, 2, 0).contiguous(), length) * spectrum)[..., :tokens]
            for each in pairs.unbind()
        ]  # (S, P, T) each
        real = torch.view_as_real(torch.stack([each.permute(2, 0, 1) for each in mixed])).flatten(-2)[..., :width]
        return (real + bias.transpose(0, 1)).flatten(2)

    def check_length(self, tokens: int) -> None:
        """Raises: ValueError: the weights do not reach over so many tokens."""
        if self.longest is not None and tokens > self.longest:
            raise ValueError(
                f"length is {tokens} but max_len is {self.longest}; of spatial gating units only those with spatial "
                "'toeplitz' and bias 'scalar' run beyond it"
            )
