"""Attention with a mixture of Gaussian keys: Nguyen et al. 2022 (arXiv:2110.08678), the distance form.

B batch, T tokens, S = memory + T keys, D model width, H heads, W head width, M Gaussians per position.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nas.blocks.base import Block, Cache, Context, allowed_keys, key_positions, rotate, with_memory
from nas.blocks.linear import features, linear_attention, linear_step
from nas.options import MgkOptions, Shape

Blocks = list[tuple[int, int, int]]  # MgkOptions.blocks: first query, end of the queries, end of their keys

SCORES_AT_A_TIME = 2**18  # so many that what is made of them stays in a core's second-level cache


class MixtureOfGaussianKeys(Block):
    """Each position is M Gaussians around its keys; a query attends by the posterior of the position.

        a_ij = sum_r pi_r exp(-|q_i - k_jr|^2 / (2 sigma_r^2)) / (the same summed over j)

    The Gaussians' normalisers (2 pi sigma^2)^(-W/2) are left out, as in the paper. There is no dot-product form: with
    shifted keys it is plain attention. The weights pi = softmax(logits) are learned for each head, from equal ones;
    sigma^2 is sqrt(W), or learned from there as its logarithm. Scores are float32 at least, under autocast too, as the
    authors have it: the terms -|k|^2 / (2 sigma^2) have more digits than bfloat16.

    - Free keys: M independent projections (equal ones would be a symmetric point that training cannot leave). With
      M = 1 it is attention with the key-norm term alone, called GK.
    - Shifted keys (sMGK): k_jr = W_K x_j + b_r; b_0 starts at zero, the others at N(0, 0.5^2), as in released code.
      Rotary positions turn W_K x_j, and the shift is added behind, so the terms q_i . b_r and |k_jr|^2 depend on
      absolute positions. The paper has no rotary positions.
    - Hard assignment: the nearest of the M shifted keys alone counts. pi plays no role, so there are no logits.
    - Kind "linear" (MLK): linear attention by the key features sum_r pi_r phi(k_jr), mixed behind phi as in the paper's
      formula (its LRA code mixes before, which is but one projection). It has no probabilities to drop, and
      `context.span` does not bound its sums, as in linear attention.
    """

    Options = MgkOptions
    uses_memory = True

    def __init__(self, shape: Shape, options: MgkOptions) -> None:
        super().__init__(shape, options)
        self.options = options
        self.n_heads, self.n_keys = options.heads(shape), options.n_keys
        width = self.n_heads * shape.head_width
        self.proj_q = nn.Linear(shape.d_model, width, bias=False)
        self.proj_k = nn.Linear(shape.d_model, options.n_projected * width, bias=False)
        self.proj_v = nn.Linear(shape.d_model, width, bias=False)
        self.proj_out = nn.Linear(width, shape.d_model, bias=False)
        if options.keys == "shifted":
            shifts = 0.5 * torch.randn(self.n_keys, self.n_heads, shape.head_width)
            shifts[0] = 0
            self.shifts = nn.Parameter(shifts)
        if options.is_weighted:
            self.logits = nn.Parameter(torch.zeros(self.n_heads, self.n_keys))
        if options.variance == "learned":
            start = 0.5 * math.log(shape.head_width)
            self.log_variance = nn.Parameter(torch.full((self.n_heads, options.n_projected), start))

    @property
    def longest(self) -> int | None:
        return None

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        seen = with_memory(x, context)
        q, keys, v = self.project(x, seen, context.positions, key_positions(context))
        with torch.autocast(x.device.type, enabled=False):
            mixed = self.mix(q, keys, v, context)
        return self.merge(mixed)

    def mix(self, q: Tensor, keys: Tensor, v: Tensor, context: Context) -> Tensor:
        """What `project` gives -> (B, H, T, W); zeros for a query that may see nothing."""
        tokens, earlier = q.shape[2], v.shape[2] - q.shape[2]
        dropout = self.shape.attention_dropout if self.training else 0.0
        if self.options.kind == "linear":
            k = self.mixed_features(keys)
            if context.key_padding is not None:
                k = k * F.pad(context.key_padding, (earlier, 0), value=True)[:, None, :, None]
            return linear_attention(features(q), k, v, causal=context.causal)
        allowed = allowed_keys(context, tokens)
        blocks = self.options.blocks(tokens, earlier, context.causal)
        if self.options.keys == "free":
            return mix_slots(*self.slots(q, keys), v, allowed, blocks, dropout)
        hard = self.options.assignment == "hard"
        q, k, terms = self.shifted(q, keys[:, :, 0])
        # A compiler would unroll the loop over blocks, and has its own ways to save memory.
        if torch.is_grad_enabled() and not (dropout or torch.compiler.is_compiling()):
            return mix_shifted_by_blocks(q, k, v, *terms, allowed, blocks, hard)
        return mix_shifted(q, k, v, *terms, allowed, blocks, hard, dropout)

    def project(self, x: Tensor, seen: Tensor, at: Tensor, seen_at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys before shifts, values.

        Args:
            x: (B, T, D).
            seen: (B, S, D).
            at: (T,) positions of x.
            seen_at: (S,) positions of `seen`.

        Returns:
            (B, H, T, W); (B, H, M, S, W), of one key in place of M if keys are shifted; (B, H, S, W); float32 at least.
        """
        heads = (-1, self.shape.head_width)
        parts = self.proj_q(x), self.proj_k(seen), self.proj_v(seen)
        q, k, v = (each.to(torch.promote_types(each.dtype, torch.float32)) for each in parts)
        q, v = (torch.unflatten(each, 2, heads).transpose(1, 2) for each in (q, v))
        keys = torch.unflatten(k, 2, (self.n_heads, *heads)).permute(0, 2, 3, 1, 4)
        if self.options.where(self.shape) == "rotary":  # it keeps norms, so distances stay those of the formula
            return rotate(q, at), rotate(keys, seen_at), v
        return q, keys, v

    def merge(self, mixed: Tensor) -> Tensor:  # (B, H, T, W) -> (B, T, D)
        out: Tensor = self.proj_out(mixed.transpose(1, 2).flatten(2).to(self.proj_out.weight.dtype))
        return out

    def log_pi(self, like: Tensor) -> Tensor:
        """(H, M) of logarithms of the weights; zeros where there are none."""
        if self.options.is_weighted:
            return self.logits.to(like.dtype).log_softmax(dim=-1)
        return like.new_zeros(self.n_heads, self.n_keys)

    def precision(self, like: Tensor) -> Tensor:
        """1 / sigma^2: (H, M) of free keys with learned variance, else (H, 1)."""
        if self.options.variance == "learned":
            return (-self.log_variance.to(like.dtype)).exp()
        return like.new_full((self.n_heads, 1), self.shape.head_width**-0.5)

    def mixed_features(self, keys: Tensor) -> Tensor:
        """sum_r pi_r phi(k_r): (B, H, M or 1, S, W) -> (B, H, S, W)."""
        if self.options.keys == "shifted":
            keys = keys + self.shifts.transpose(0, 1)[:, :, None].to(keys.dtype)
        return (features(keys) * self.log_pi(keys).exp()[..., None, None]).sum(dim=2)

    def slots(self, q: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys whose dot product is log(pi_r exp(-|q - k_r|^2 / (2 sigma_r^2))), but for a term of q alone.

        -|q - k|^2 / (2 sigma^2) = q.k / sigma^2 - |k|^2 / (2 sigma^2) - |q|^2 / (2 sigma^2). What depends on the key
        rides in an extra channel, against a 1 in the query. The softmax cancels the last term; where variances differ,
        it cancels the first Gaussian's, and another channel has what the others' differ by, against |q|^2.

        Args:
            q: (B, H, T, W).
            keys: (B, H, M, S, W).

        Returns:
            (B, H, T, C) and (B, H, S, M, C), C = W + 1 or W + 2: all slots up to a position are one piece of memory.
        """
        precision = self.precision(q)[:, :, None]  # (H, M or 1, 1)
        first = precision[:, :1]
        bias = self.log_pi(q)[:, :, None] - squared_norm(keys) * (precision / 2)  # (B, H, M, S)
        queries = [q * first]
        if precision.shape[1] > 1:
            queries.append(squared_norm(q)[..., None])
            keys = keys * (precision / first)[..., None]
            bias = torch.stack([((first - precision) / 2).expand_as(bias), bias], dim=-1)
        else:
            bias = bias[..., None]
        queries.append(q.new_ones(*q.shape[:-1], 1))
        return torch.cat(queries, dim=-1), torch.cat([keys.transpose(2, 3), bias.transpose(2, 3)], dim=-1)

    def shifted(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
        """What the scores of shifted keys are made of, with one product of queries and keys for any M.

        With k_0 = k + b_0 and d_r = b_r - b_0, the score of Gaussian r is, but for a term of q alone,

            s_0 = q.k_0 / sigma^2 + base,                       base = log pi_0 - |k_0|^2 / (2 sigma^2)
            s_r = s_0 + rows_r + columns_r,                     columns_r = -k_0.d_r / sigma^2
            rows_r = q.d_r / sigma^2 + log(pi_r / pi_0) - |d_r|^2 / (2 sigma^2)

        Args:
            q: (B, H, T, W).
            k: (B, H, S, W).

        Returns:
            q / sigma^2; k_0; and (base (B, H, S), rows (B, H, M - 1, T), columns (B, H, M - 1, S)).
        """
        precision = self.precision(q)[..., None]  # (H, 1, 1)
        shifts = self.shifts.to(q.dtype).transpose(0, 1)  # (H, M, W)
        apart = shifts[:, 1:] - shifts[:, :1]
        log_pi = self.log_pi(q)[..., None]  # (H, M, 1)
        q, k = q * precision, k + shifts[:, :1]
        base = log_pi[:, 0] - squared_norm(k) * (precision[:, 0] / 2)
        ratio = log_pi[:, 1:] - log_pi[:, :1] - apart.square().sum(dim=-1, keepdim=True) * (precision / 2)
        return q, k, (base, apart @ q.mT + ratio, (-precision * apart) @ k.mT)

    def new_cache(self, batch: int, capacity: int, context: Context) -> Cache:
        """M keys with their terms (or one key and M numbers) and the value of each token; in the linear form sums.

        Raises:
            ValueError: the context is not causal.
        """
        self.check_causal(context)
        options, width = self.options, self.shape.head_width
        like = self.proj_v.weight.new_zeros((), dtype=torch.promote_types(self.proj_v.weight.dtype, torch.float32))
        if options.kind == "linear":
            return Cache(context, capacity, tensors={"sums": like.new_zeros(batch, self.n_heads, width, width + 1)})
        tensors = {"v": like.new_zeros(batch, self.n_heads, capacity, width)}
        if options.keys == "free":
            extra = 2 if options.variance == "learned" and self.n_keys > 1 else 1
            tensors["slots"] = like.new_zeros(batch, self.n_heads, capacity, self.n_keys, width + extra)
        else:
            tensors["k"] = like.new_zeros(batch, self.n_heads, capacity, width)
            tensors["terms"] = like.new_zeros(batch, self.n_heads, self.n_keys, capacity)
        return Cache(context, capacity, tensors=tensors)

    def step(self, x: Tensor, cache: Cache) -> Tensor:  # (B, 1, D) -> (B, 1, D)
        position = torch.tensor([cache.take()], device=x.device)
        q, keys, v = self.project(x, x, position, position)
        with torch.autocast(x.device.type, enabled=False):
            if self.options.kind == "linear":
                mixed = linear_step(features(q), self.mixed_features(keys), v, cache.tensors["sums"])
            else:
                mixed = self.mix_last(q, keys, v, cache)
        return self.merge(mixed)

    def mix_last(self, q: Tensor, keys: Tensor, v: Tensor, cache: Cache) -> Tensor:
        """Put the newest token's keys and value into the cache, and mix all that its query may see.

        Args:
            q: (B, H, 1, W).
            keys: (B, H, M or 1, 1, W).
            v: (B, H, 1, W).
            cache: whose position is behind the token.

        Returns:
            (B, H, 1, W).
        """
        tensors, end, span = cache.tensors, cache.position, cache.context.span
        seen = slice(0 if span is None else max(0, end - span), end)
        tensors["v"][:, :, end - 1] = v[:, :, 0]
        if self.options.keys == "free":
            q, slots = self.slots(q, keys)
            tensors["slots"][:, :, end - 1] = slots[:, :, 0]
            scores = q @ tensors["slots"][:, :, seen].flatten(2, 3).mT  # (B, H, 1, seen * M)
            scores = torch.unflatten(scores, 3, (-1, self.n_keys)).movedim(4, 2)
        else:
            q, k, (base, rows, columns) = self.shifted(q, keys[:, :, 0])
            tensors["k"][:, :, end - 1] = k[:, :, 0]
            tensors["terms"][:, :, :, end - 1] = torch.cat([base[:, :, None], columns], dim=2)[..., 0]
            base, columns = torch.split(tensors["terms"][..., seen], [1, self.n_keys - 1], dim=2)
            scores = q @ tensors["k"][:, :, seen].mT + base
            scores = torch.cat([scores, scores + (rows + columns)], dim=2)[:, :, :, None]
        hard = self.options.assignment == "hard"  # scores are (B, H, M, 1, seen)
        scores = scores.amax(dim=2) if hard else scores.logsumexp(dim=2)
        return scores.softmax(dim=-1) @ tensors["v"][:, :, seen]


def mix_slots(
    q: Tensor, slots: Tensor, v: Tensor, allowed: Tensor | None, blocks: Blocks, dropout: float = 0.0
) -> Tensor:
    """One softmax over M S slots in the fused kernel; slots of a position share its value.

    Dropout is of slots, not of positions.

    Args:
        q: (B, H, T, C), C > W, as `MixtureOfGaussianKeys.slots` makes them.
        slots: (B, H, S, M, C).
        v: (B, H, S, W).
        allowed: bool, broadcast to (B, H, T, S); None: all.
        blocks: of queries.
        dropout: rate.

    Returns:
        (B, H, T, W); zeros for a query that may see nothing.
    """
    width, n_keys, channels = v.shape[-1], slots.shape[3], q.shape[-1]
    if q.device.type != "cpu":  # fused kernels of accelerators want multiples of 8; the CPU's would only lose time
        channels += -channels % 8
        q, slots = F.pad(q, (0, channels - q.shape[-1])), F.pad(slots, (0, channels - slots.shape[-1]))
    slots = slots.flatten(2, 3)
    fill = v.new_zeros(1).expand(*v.shape[:3], n_keys, channels - width)  # the kernel wants values as wide as keys
    values = torch.cat([v[:, :, :, None].expand(-1, -1, -1, n_keys, -1), fill], dim=-1).flatten(2, 3)
    ends = [n_keys * keys for _, _, keys in blocks]
    # Split, not sliced: the gradient of each slice would fill a tensor as large as what it is cut from.
    parts = torch.split(q, [end - first for first, end, _ in blocks], 2), first_of(slots, ends), first_of(values, ends)
    mixed = []
    for part, near, near_values, (first, end, keys) in zip(*parts, blocks, strict=True):
        mask = None if allowed is None else allowed[..., first:end, :keys].repeat_interleave(n_keys, dim=-1)
        mixed.append(F.scaled_dot_product_attention(part, near, near_values, mask, dropout, scale=1.0))
    return torch.split(torch.cat(mixed, dim=2), [width, channels - width], dim=-1)[0]


def squared_norm(x: Tensor) -> Tensor:  # (.., W) -> (..)
    if torch.compiler.is_compiling():  # a compiler joins passes by itself
        return x.square().sum(dim=-1)
    out: Tensor = SquaredNorm.apply(x)  # type: ignore[no-untyped-call]
    return out


class SquaredNorm(torch.autograd.Function):
    """The sum of squares in one pass over x, its gradient in one more; autograd's own takes three times as long."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        out: Tensor = torch.linalg.vector_norm(x, dim=-1).square()
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x: Tensor = ctx.saved_tensors[0]
        return (2 * grad)[..., None] * x


def first_of(x: Tensor, ends: list[int]) -> tuple[Tensor, ...]:
    """The first `end` positions of (B, H, S, C) for each of the rising ends, of which the last is S."""
    if torch.compiler.is_compiling():
        return tuple(x[:, :, :end] for end in ends)
    out: tuple[Tensor, ...] = Prefixes.apply(x, ends)  # type: ignore[no-untyped-call]
    return out


class Prefixes(torch.autograd.Function):
    """Slices whose gradients are added into the last one's, without a tensor of zeros for each."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ends: list[int]) -> tuple[Tensor, ...]:
        ctx.ends = ends
        return tuple(x[:, :, :end] for end in ends)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        total = grads[-1].clone()
        for end, grad in zip(ctx.ends[:-1], grads[:-1], strict=True):
            total[:, :, :end] += grad
        return total, None


def mix_shifted(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    base: Tensor,
    rows: Tensor,
    columns: Tensor,
    allowed: Tensor | None,
    blocks: Blocks,
    hard: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Attention with shifted keys: all but the product of queries and keys comes to the fused kernel as a mask.

    Args:
        q: (B, H, T, W), this and the next ones as `MixtureOfGaussianKeys.shifted` makes them.
        k: (B, H, S, W).
        v: (B, H, S, W).
        base: (B, H, S).
        rows: (B, H, M - 1, T).
        columns: (B, H, M - 1, S).
        allowed: bool, broadcast to (B, H, T, S); None: all.
        blocks: of queries.
        hard: take the largest of the M scores instead of their log-sum-exp.
        dropout: rate.

    Returns:
        (B, H, T, W); zeros for a query that may see nothing.
    """
    join = torch.maximum if hard else torch.logaddexp
    mixed = []
    for first, end, keys in blocks:
        gain = q.new_zeros(())  # of the M scores joined, over s_0
        for row, column in zip(rows[..., first:end].unbind(2), columns[..., :keys].unbind(2), strict=True):
            gain = join(gain, row[..., None] + column[:, :, None])
        mask = gain + base[:, :, None, :keys]
        if allowed is not None:
            mask = mask.masked_fill(~allowed[..., first:end, :keys], -torch.inf)
        part = q[:, :, first:end], k[:, :, :keys], v[:, :, :keys]
        mixed.append(F.scaled_dot_product_attention(*part, mask, dropout, scale=1.0))
    return torch.cat(mixed, dim=2)


def mix_shifted_by_blocks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    base: Tensor,
    rows: Tensor,
    columns: Tensor,
    allowed: Tensor | None,
    blocks: Blocks,
    hard: bool = False,
) -> Tensor:
    """`mix_shifted` without dropout, for training: it keeps no (T, S) scores for the gradient.

    A mask that needs a gradient would keep the fused kernel from being used at all.
    """
    mask = None
    if allowed is not None:
        mask = torch.zeros_like(allowed, dtype=q.dtype).masked_fill(~allowed, -torch.inf)
    mixed: Tensor = ShiftedMixture.apply(  # type: ignore[no-untyped-call]
        *(each.flatten(0, 1) for each in (q, k, v, base[:, :, None], rows[..., None], columns[:, :, :, None])),
        mask,
        blocks,
        hard,
        q.shape[1],
    )
    return torch.unflatten(mixed, 0, q.shape[:2])


class ShiftedMixture(torch.autograd.Function):
    """Attention with shifted keys in blocks of scores, which are computed again for the gradient.

    As in FlashAttention (Dao et al. 2022, arXiv:2205.14135), of the scores only the logarithm of each query's
    denominator is kept, and sum_j a_ij (da)_ij is out_i . (dout)_i. N = B H; hidden, (T, S) or (B, 1, T, S), is -inf
    where a query may not see a key and 0 elsewhere.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,  # (N, T, W)
        k: Tensor,  # (N, S, W)
        v: Tensor,  # (N, S, W)
        base: Tensor,  # (N, 1, S)
        rows: Tensor,  # (N, M - 1, T, 1)
        columns: Tensor,  # (N, M - 1, 1, S)
        hidden: Tensor | None,
        blocks: Blocks,
        hard: bool,
        n_heads: int,
    ) -> Tensor:  # (N, T, W)
        out, norm = torch.empty_like(q), torch.empty_like(q[..., :1])
        ctx.parts = parts_of(q, blocks, n_heads)
        for part, (first, end, keys) in ctx.parts:
            scores = scores_of(q, k, base, rows, columns, hidden, part, (first, end, keys), n_heads)
            if hard:
                scores = [functools.reduce(torch.maximum, scores)]
            top = scores[0].amax(dim=-1, keepdim=True)
            for each in scores[1:]:
                top = torch.maximum(top, each.amax(dim=-1, keepdim=True))
            top.clamp_(min=torch.finfo(top.dtype).min)  # a query that sees nothing must not become NaN
            weights = scores[0].sub_(top).exp_()
            for each in scores[1:]:
                weights += each.sub_(top).exp_()
            total = weights.sum(dim=-1, keepdim=True)
            total.masked_fill_(total == 0, 1.0)
            out[part, first:end] = torch.bmm(weights, v[part, :keys]).div_(total)
            norm[part, first:end] = top.add_(total.log_())
        ctx.save_for_backward(q, k, v, base, rows, columns, hidden, out, norm)
        ctx.hard, ctx.n_heads = hard, n_heads
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, base, rows, columns, hidden, out, norm = ctx.saved_tensors
        mean = (grad * out).sum(dim=-1, keepdim=True)
        dq, dk, dv, dbase, drows, dcolumns = (torch.zeros_like(each) for each in (q, k, v, base, rows, columns))
        for part, (first, end, keys) in ctx.parts:
            scores = scores_of(q, k, base, rows, columns, hidden, part, (first, end, keys), ctx.n_heads)
            if ctx.hard:
                top, nearest = torch.stack(scores).max(dim=0)
                weights = top.sub_(norm[part, first:end]).exp_()
                others = [weights * (nearest == r) for r in range(1, len(scores))]
            else:
                weights, *others = (each.sub_(norm[part, first:end]).exp_() for each in scores)
                for each in others:
                    weights += each
            near = grad[part, first:end]
            dv[part, :keys] += torch.bmm(weights.mT, near)
            slope = torch.bmm(near, v[part, :keys].mT).sub_(mean[part, first:end])
            for r, each in enumerate(others):
                each *= slope
                drows[part, r, first:end] = each.sum(dim=-1, keepdim=True)
                dcolumns[part, r, :, :keys] += each.sum(dim=-2, keepdim=True)
            weights *= slope
            dbase[part, :, :keys] += weights.sum(dim=-2, keepdim=True)
            dq[part, first:end] = torch.bmm(weights, k[part, :keys])
            dk[part, :keys] += torch.bmm(weights.mT, q[part, first:end])
        return dq, dk, dv, dbase, drows, dcolumns, None, None, None, None


def parts_of(q: Tensor, blocks: Blocks, n_heads: int) -> list[tuple[slice, tuple[int, int, int]]]:
    """Rows of the batch, all heads of each, with a block of queries, so that some SCORES_AT_A_TIME are in hand."""
    widest = max(((end - first) * keys for first, end, keys in blocks), default=1)
    size = n_heads * max(1, SCORES_AT_A_TIME // (n_heads * widest))
    return [(slice(n, n + size), block) for n in range(0, len(q), size) for block in blocks]


def scores_of(
    q: Tensor,
    k: Tensor,
    base: Tensor,
    rows: Tensor,
    columns: Tensor,
    hidden: Tensor | None,
    part: slice,
    block: tuple[int, int, int],
    n_heads: int,
) -> list[Tensor]:
    """M tensors of scores, (rows of the batch in `part`, queries of the block, keys)."""
    first, end, keys = block
    own = torch.baddbmm(base[part, :, :keys], q[part, first:end], k[part, :keys].mT)
    if hidden is not None:
        near = hidden[..., first:end, :keys]
        if near.ndim > 2:
            near = near[part.start // n_heads : part.stop // n_heads].repeat_interleave(n_heads, 1).flatten(0, 1)
        own += near
    return [own, *((own + columns[part, r, :, :keys]).add_(rows[part, r, first:end]) for r in range(rows.shape[1]))]
