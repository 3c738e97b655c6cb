"""Self-attention: softmax or linear, with positions of five kinds, grouped keys, a window and memory.

B batch, T tokens, S = memory + T keys, D model width, H query heads, K heads of keys and values, W head width.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks.base import Block, Cache, Context, allowed_keys, key_positions, rotate, sinusoids, with_memory
from nas.blocks.linear import features, linear_attention, linear_step
from nas.options import T5_BUCKETS, T5_FARTHEST, AttentionOptions, Shape


class Attention(Block):
    """softmax(q k^T / sqrt(W) + position term) v per head: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.

    Keys and values are made of memory and tokens alike. Positions come in by one of:

    - "none";
    - "rotary": q and k are turned (Su et al. 2021, arXiv:2104.09864);
    - "relative_bias": a learned number for each head and bucket of distances is added to the scores (T5: Raffel et al.
      2020, arXiv:1910.10683, section 2.1); T5 shares the table between layers, here each block has its own;
    - "relative_bias_only": these numbers are the scores, without q and k (the ablation of gMLP: Liu et al. 2021,
      arXiv:2105.08050);
    - "transformer_xl": the scores are ((q_i + u) . k_j + (q_i + v) . r_(i - j)) / sqrt(W), with r a projection of the
      distance's sinusoid (Dai et al. 2019, arXiv:1901.02860, section 3.3). u and v are shared by all layers: the
      context brings them. r has no bias: q_i . bias is the same for all keys, so the softmax would cancel it.

    Kind "linear" sums over keys by features (nas.blocks.linear). With rotary positions q and k are turned before their
    features are taken, so that weights stay positive (ours); the price is that they depend on the positions themselves,
    not on distances alone. It has no probabilities to drop, and neither a window nor `context.span` bounds its sums.
    """

    Options = AttentionOptions
    uses_memory = True

    def __init__(self, shape: Shape, options: AttentionOptions) -> None:
        super().__init__(shape, options)
        self.options = options
        self.where = options.where(shape)
        width, kv_width = (heads * shape.head_width for heads in (options.heads(shape), options.kv_heads(shape)))
        # Not one fused projection: memory needs no q, and the gradient of a fused output has to be put together first.
        if self.where != "relative_bias_only":
            self.proj_q = nn.Linear(shape.d_model, width, bias=options.bias)
            self.proj_k = nn.Linear(shape.d_model, kv_width, bias=options.bias)
        self.proj_v = nn.Linear(shape.d_model, kv_width, bias=options.bias)
        self.proj_out = nn.Linear(width, shape.d_model, bias=options.bias)
        if self.where in ("relative_bias", "relative_bias_only"):
            start = torch.randn(T5_BUCKETS, options.heads(shape)) * shape.d_model**-0.5  # as T5 starts
            self.table = nn.Parameter(start)
        if self.where == "transformer_xl":
            self.proj_position = nn.Linear(shape.d_model, width, bias=False)

    @property
    def longest(self) -> int | None:
        return None

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        tokens, window = x.shape[1], self.options.window
        if window is not None and context.memory is not None:  # earlier memory is in no query's window
            context = replace(context, memory=context.memory[:, max(0, context.memory.shape[1] - window + 1) :])
        seen = with_memory(x, context)
        earlier = seen.shape[1] - tokens
        q, k, v = self.project(x, seen, context.positions, key_positions(context))
        if self.options.kind == "linear":
            mixed = self.attend_linearly(q, k, v, context)
        elif (size := self.options.chunk(self.shape, tokens, earlier)) is not None:
            mixed = self.attend_by_chunks(q, k, v, size, context)
        else:
            bias = self.position_term(q, tokens, earlier, seen.shape[1], context)
            spans = [each for each in (window, context.span) if each is not None and each < seen.shape[1]]
            # Without a mask tensor the fused kernel may skip what causality hides.
            plain = context.causal and context.key_padding is None and not (earlier or spans or bias is not None)
            allowed = None if plain else allowed_keys(context, tokens, window)
            mixed = self.attend(q, k, v, allowed, bias, context, is_causal=plain)
        return self.merge(mixed)

    def project(self, x: Tensor, seen: Tensor, at: Tensor, seen_at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q (B, H, T, W) of x, at positions `at` (T,); k and v (B, K, S, W) of `seen`, at `seen_at` (S,).

        In relative_bias_only q and k have no width.
        """
        v = self.split(self.proj_v(seen))
        if self.where == "relative_bias_only":
            return v[:, :, -x.shape[1] :, :0], v[..., :0], v
        q, k = self.split(self.proj_q(x)), self.split(self.proj_k(seen))
        return (rotate(q, at), rotate(k, seen_at), v) if self.where == "rotary" else (q, k, v)

    def split(self, x: Tensor) -> Tensor:  # (B, T, heads * W) -> (B, heads, T, W)
        return torch.unflatten(x, 2, (-1, self.shape.head_width)).transpose(1, 2)

    def merge(self, mixed: Tensor) -> Tensor:  # (B, H, T, W) -> (B, T, D)
        out: Tensor = self.proj_out(mixed.transpose(1, 2).flatten(2))
        return out

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        allowed: Tensor | None,
        bias: Tensor | None,
        context: Context,
        is_causal: bool = False,
    ) -> Tensor:
        """Softmax attention.

        Args:
            q: (B, H, T, W).
            k: (B, K, S, W).
            v: (B, K, S, W).
            allowed: bool, broadcast to (B, H, T, S), True where a query may see a key; None: where is_causal allows.
            bias: added to the scores, broadcast to (B, H, T, S).
            context: brings u.
            is_causal: query i sees keys up to i alone; with neither allowed nor bias.

        Returns:
            (B, H, T, W); zeros for a query that may see nothing.
        """
        dropout = self.shape.attention_dropout if self.training else 0.0
        if self.where == "relative_bias_only":
            assert bias is not None
            return average(bias, v, allowed, dropout)
        if self.where == "transformer_xl":
            assert context.biases is not None
            q = q + context.biases[0][:, None].to(q.dtype)
        if bias is not None:
            allowed = bias if allowed is None else bias.masked_fill(~allowed, -torch.inf)
            allowed = allowed.to(q.dtype)  # under autocast the table is wider than q
        grouped = q.shape[1] != k.shape[1]
        return F.scaled_dot_product_attention(q, k, v, allowed, dropout, is_causal, enable_gqa=grouped)

    def attend_by_chunks(self, q: Tensor, k: Tensor, v: Tensor, size: int, context: Context) -> Tensor:
        """Softmax attention in a window at a cost linear in T: each chunk of C queries against the keys near it.

        The N chunks move into the batch: queries are (B N, H, C, W), and the keys before a chunk are as its memory.

        Args:
            q: (B, H, T, W).
            k: (B, K, S, W).
            v: (B, K, S, W).
            size: C.
            context: of the forward pass.
        """
        window = self.options.window
        assert window is not None
        batch, device = v.shape[0], v.device
        tokens = len(context.positions)
        earlier, n_chunks = v.shape[2] - tokens, -(-tokens // size)
        before, after = window - 1, 0 if context.causal else window - 1
        keys = before + size + after
        fill = (before - earlier, n_chunks * size - tokens + after)  # beside the keys, none of them real

        def chunks(each: Tensor) -> Tensor:  # (B, K, S, W) -> (B N, K, before + C + after, W)
            return F.pad(each, (0, 0, *fill)).unfold(2, keys, size).permute(0, 2, 1, 4, 3).flatten(0, 1)

        real = torch.ones(1, earlier + tokens, dtype=torch.bool, device=device)
        if context.key_padding is not None:
            real = torch.cat([real[:, :earlier].expand(batch, -1), context.key_padding], dim=1)
        real = F.pad(real, fill).unfold(1, keys, size)  # (B or 1, N, keys)
        distance = before + torch.arange(size, device=device)[:, None] - torch.arange(keys, device=device)
        near = distance.abs() < (window if context.span is None else min(window, context.span))
        if context.causal:
            near &= distance >= 0
        allowed = (real[:, :, None, None] & near).expand(batch, -1, -1, -1, -1).flatten(0, 1)  # (B N, 1, C, keys)
        q = F.pad(q, (0, 0, 0, n_chunks * size - tokens))
        q = torch.unflatten(q, 2, (n_chunks, size)).transpose(1, 2).flatten(0, 1)  # (B N, H, C, W)
        bias = self.position_term(q, size, before, keys, context)
        mixed = self.attend(q, chunks(k), chunks(v), allowed, bias, context)
        return torch.unflatten(mixed, 0, (batch, n_chunks)).transpose(1, 2).flatten(2, 3)[:, :, :tokens]

    def attend_linearly(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        """(B, H, T, W), (B, K, S, W), (B, K, S, W) -> (B, H, T, W)."""
        k = features(k)
        if context.key_padding is not None:
            earlier = k.shape[2] - q.shape[2]
            k = k * F.pad(context.key_padding, (earlier, 0), value=True)[:, None, :, None]
        return linear_attention(features(q), k, v, causal=context.causal)

    def position_term(self, q: Tensor, tokens: int, earlier: int, keys: int, context: Context) -> Tensor | None:
        """What positions add to the scores, for queries behind `earlier` of the keys.

        Args:
            q: (B, H, T, W); read by transformer_xl alone.
            tokens: T.
            earlier: keys before the first query's own.
            keys: S.
            context: brings v and clamp_len.

        Returns:
            (1, H, T, S) or (B, H, T, S); None where positions add nothing.
        """
        device = context.positions.device
        if self.where in ("relative_bias", "relative_bias_only"):
            distance = torch.arange(earlier + tokens - 1, earlier - keys, -1, device=device)  # of all pairs, each once
            by_distance = self.table[t5_bucket(distance, context.causal)].t()  # (H, T + S - 1)
            return by_distance.unfold(1, keys, 1).flip(1)[None]  # row i begins at distance earlier + i
        if self.where == "transformer_xl":
            distance = torch.arange(keys - 1, -1, -1, device=device)
            return shift(self.position_scores(q, self.position_keys(distance, context), context))
        return None

    def position_keys(self, distance: Tensor, context: Context) -> Tensor:
        """Transformer-XL's r of each distance: (S,) integers -> (H, S, W).

        Released code has dropout on the sinusoids, one draw for all layers; here each layer draws its own.
        """
        if context.clamp_len is not None:
            distance = distance.clamp(max=context.clamp_len)
        dtype = self.proj_position.weight.dtype
        precise = torch.promote_types(dtype, torch.float32)
        sinusoid = sinusoids(distance.to(precise), self.shape.d_model).to(dtype)
        sinusoid = F.dropout(sinusoid, self.shape.dropout, self.training)
        return self.split(self.proj_position(sinusoid)[None])[0]

    @staticmethod
    def position_scores(q: Tensor, r: Tensor, context: Context) -> Tensor:
        """(q + v) . r / sqrt(W), per distance: (B, H, T, W), (H, S, W) -> (B, H, T, S)."""
        assert context.biases is not None
        scores: Tensor = ((q + context.biases[1][:, None].to(q.dtype)) * q.shape[-1] ** -0.5) @ r.mT
        return scores

    def new_cache(self, batch: int, capacity: int, context: Context) -> Cache:
        """Keys and values of the tokens read, of the newest alone where there is a window; in the linear form sums.

        What positions add is looked up by distance, so that it is computed here once.

        Raises:
            ValueError: the context is not causal.
        """
        self.check_causal(context)
        like, width, kv_heads = self.proj_v.weight, self.shape.head_width, self.options.kv_heads(self.shape)
        if self.options.kind == "linear":
            return Cache(context, capacity, tensors={"sums": like.new_zeros(batch, kv_heads, width, width + 1)})
        size = min(self.options.window or capacity, capacity)
        key_width = 0 if self.where == "relative_bias_only" else width
        tensors = {
            "k": like.new_zeros(batch, kv_heads, size, key_width),
            "v": like.new_zeros(batch, kv_heads, size, width),
        }
        distance = torch.arange(size, device=like.device)
        if self.where in ("relative_bias", "relative_bias_only"):
            tensors["bias"] = self.table[t5_bucket(distance, causal=True)].t().detach().contiguous()  # (H, size)
        if self.where == "transformer_xl":
            tensors["position_keys"] = self.position_keys(distance, context).detach().contiguous()  # (H, size, W)
        return Cache(context, capacity, tensors=tensors)

    def step(self, x: Tensor, cache: Cache) -> Tensor:  # (B, 1, D) -> (B, 1, D)
        at, context, tensors = cache.take(), cache.context, cache.tensors
        position = torch.tensor([at], device=x.device)
        q, k, v = self.project(x, x, position, position)
        if self.options.kind == "linear":
            return self.merge(linear_step(features(q), features(k), v, tensors["sums"]))
        size = tensors["v"].shape[2]
        seen = min(at + 1, size)
        for name, new in (("k", k), ("v", v)):
            tensors[name][:, :, at % size] = new[:, :, 0]  # over the oldest, which has left the window
        k, v = (tensors[name][:, :, :seen] for name in ("k", "v"))
        distance = (at - torch.arange(seen, device=x.device)) % size  # of each place of the ring from this token
        bias = None
        if "bias" in tensors:
            bias = tensors["bias"][:, distance][None, :, None]  # (1, H, 1, seen)
        elif "position_keys" in tensors:
            bias = self.position_scores(q, tensors["position_keys"][:, distance], context)
        allowed = None if context.span is None or context.span >= seen else (distance < context.span)[None]
        return self.merge(self.attend(q, k, v, allowed, bias, context))


def average(bias: Tensor, v: Tensor, allowed: Tensor | None, dropout: float) -> Tensor:
    """softmax(bias) v: weights that no token changes, so that all sequences share them where none has padding.

    Args:
        bias: (1, H, T, S).
        v: (B, H, S, W).
        allowed: bool, broadcast to (B, H, T, S); None: all.
        dropout: rate, of the weights of each sequence.

    Returns:
        (B, H, T, W); zeros where nothing is allowed.
    """
    if allowed is not None:  # the least finite number, not -inf: a row with nothing allowed must not become NaN
        bias = bias.masked_fill(~allowed, torch.finfo(bias.dtype).min)
    weights = bias.softmax(dim=-1)
    if allowed is not None:
        weights = weights.masked_fill(~allowed, 0.0)
    if dropout:
        weights = F.dropout(weights.expand(len(v), -1, -1, -1), dropout)
    return weights @ v


def shift(scores: Tensor) -> Tensor:
    """Move row i of (.., T, S) left by T - 1 - i: from columns by distance S - 1, .., 0 to columns by key.

    Dai et al. 2019 (arXiv:1901.02860), appendix B. With m keys before the first query, columns after m + i hold what
    was left over from the next row; they are later keys, which a causal mask hides.
    """
    tokens, keys = scores.shape[-2:]
    padded = F.pad(scores, (1, 0)).flatten(-2)[..., tokens:]
    return torch.unflatten(padded, -1, (tokens, keys))


def t5_bucket(distance: Tensor, causal: bool) -> Tensor:
    """T5's bucket of each distance, query's position minus key's: of 32 causal ones, or 16 for either side.

    Of the n buckets of a side, n / 2 hold one distance each; in the others distances grow geometrically up to 128. A
    causal query puts later keys, which it cannot see, with its own.

    Args:
        distance: (..) integers.
        causal: whether all buckets are for earlier keys; else the upper half is for later ones.

    Returns:
        (..) integers in [0, 32).
    """
    side = T5_BUCKETS if causal else T5_BUCKETS // 2
    exact = side // 2
    growth = (T5_FARTHEST / exact) ** (1 / exact)
    # The definition's floor of a logarithm, turned into the first distance of each bucket: no rounding at powers of 2.
    firsts = [*range(1, exact + 1), *(math.ceil(exact * growth**step - 1e-9) for step in range(1, exact))]
    far = distance.clamp(min=0) if causal else distance.abs()
    bucket = torch.bucketize(far, torch.tensor(firsts, device=distance.device), right=True)
    return bucket if causal else bucket + (distance < 0) * side
