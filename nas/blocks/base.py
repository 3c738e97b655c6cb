"""The contract of a block, what a backbone tells it, what it remembers, rotary positions and sinusoids.

B batch, T tokens, S = memory + T keys, D model width, H heads, W head width.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from nas.options import Shape


@dataclass(frozen=True)
class Context:
    """What a block may know besides its input; made by the backbone once per forward, memory put in by each slot.

    Args:
        causal: whether a position sees only itself and earlier ones.
        positions: (T,) integer positions of the tokens; those of memory are before them.
        key_padding: (B, T) bool, True where a token is real; None when all are. Memory is all real.
        memory: (B, M, D) inputs of earlier tokens, normalised as x is, detached; None without memory.
        lengths: (B,) real tokens per row; None when all rows are full.
        biases: u and v of Transformer-XL, each (H, W), shared by all layers; None with other positions.
        clamp_len: largest distance that Transformer-XL positions tell apart; None: all.
        span: keys that a query sees at most, its own among them; None: all.
    """

    causal: bool
    positions: Tensor
    key_padding: Tensor | None = None
    memory: Tensor | None = None
    lengths: Tensor | None = None
    biases: tuple[Tensor, Tensor] | None = None
    clamp_len: int | None = None
    span: int | None = None


@dataclass
class Cache:
    """What a block keeps of the tokens it has read one by one.

    Args:
        context: of a sequence without memory or padding; its positions are not read.
        capacity: tokens that fit.
        position: tokens read so far, and so the position of the next.
        tensors: by name, allocated once; `step` writes into them.
    """

    context: Context
    capacity: int
    position: int = 0
    tensors: dict[str, Tensor] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.tensors.values())

    def take(self) -> int:
        """The position of the token that is read now.

        Raises:
            ValueError: the cache is full.
        """
        if self.position >= self.capacity:
            raise ValueError(f"the cache is full: it was made for {self.capacity} tokens")
        self.position += 1
        return self.position - 1


class Block(nn.Module):
    """One candidate: projection in, mixer, projection out.

    A slot computes x + block(norm(x), context): the residual, the norm and the dropout of what is added are the slot's,
    never the block's. Subclasses set `Options` and take (shape, options).
    """

    Options: type[Any]
    uses_memory = False  # whether `context.memory` changes the output; slots keep memory for such blocks only

    def __init__(self, shape: Shape, options: Any) -> None:
        super().__init__()
        check = getattr(options, "check", None)
        if check is not None:
            check(shape)
        self.shape = shape

    @property
    def longest(self) -> int | None:
        """Tokens that an input may have; None: any number, whatever length it was trained at."""
        return self.shape.max_len

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        raise NotImplementedError

    def new_cache(self, batch: int, capacity: int, context: Context) -> Cache:
        """What `step` needs before the first token, for `batch` sequences of at most `capacity` tokens.

        This one keeps all inputs, so that any causal block has an incremental path; blocks that can do better do.

        Raises:
            ValueError: the context is not causal.
        """
        self.check_causal(context)
        dtype, device = next(((each.dtype, each.device) for each in self.parameters()), (None, None))
        inputs = torch.zeros(batch, capacity, self.shape.d_model, dtype=dtype, device=device)
        return Cache(context, capacity, tensors={"inputs": inputs})

    def step(self, x: Tensor, cache: Cache) -> Tensor:  # (B, 1, D) -> (B, 1, D)
        """The output for the next token alone, equal to the last of `forward` on all tokens so far.

        Raises:
            ValueError: the cache is full.
        """
        at = cache.take()
        cache.tensors["inputs"][:, at] = x[:, 0]
        seen = Context(
            causal=True,
            positions=torch.arange(at + 1, device=x.device),
            biases=cache.context.biases,
            clamp_len=cache.context.clamp_len,
            span=cache.context.span,
        )
        out: Tensor = self(cache.tensors["inputs"][:, : at + 1], seen)
        return out[:, -1:]

    @staticmethod
    def check_causal(context: Context) -> None:
        """Raises: ValueError: the context is not causal."""
        if not context.causal:
            raise ValueError("a bidirectional block has no incremental path: each token would change all outputs")


class PositionWise(Block):
    """A block that mixes no positions: it needs no cache, and takes inputs of any length."""

    @property
    def longest(self) -> int | None:
        return None

    def new_cache(self, batch: int, capacity: int, context: Context) -> Cache:
        self.check_causal(context)
        return Cache(context, capacity)

    def step(self, x: Tensor, cache: Cache) -> Tensor:  # (B, 1, D) -> (B, 1, D)
        cache.take()
        out: Tensor = self(x, cache.context)
        return out


def key_positions(context: Context) -> Tensor:
    """(S,) positions of memory, then of the tokens."""
    if context.memory is None:
        return context.positions
    length = context.memory.shape[1]
    before = torch.arange(-length, 0, device=context.positions.device) + context.positions[:1]
    return torch.cat([before, context.positions])


def with_memory(x: Tensor, context: Context) -> Tensor:
    """(B, S, D): memory, then the tokens, from which keys and values are made."""
    return x if context.memory is None else torch.cat([context.memory, x], dim=1)


def rotate(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary positions: turn channel pairs (2c, 2c + 1) by position * 10000^(-2c/W).

    Su et al. 2021 (arXiv:2104.09864), equation 15. One product of complex numbers takes half the time of the four real
    ones. Other code pairs c with c + W/2: the same up to the order of the channels of q and k.

    Args:
        x: (..., T, W), W even.
        positions: (T,) integers.

    Returns:
        (..., T, W), of the norm of x.
    """
    precise = torch.promote_types(x.dtype, torch.float32)
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half, device=x.device, dtype=precise) / half)
    angles = positions[:, None] * frequencies  # (T, W/2)
    pairs = torch.view_as_complex(torch.unflatten(x.to(precise), -1, (half, 2)))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """All of sin(t f_c), then all of cos(t f_c), with f_c = 10000^(-2c/D).

    Vaswani et al. 2017 (arXiv:1706.03762), section 3.5, who interleave the two; the order is Transformer-XL's.

    Args:
        positions: (T,) t, as floats, of single precision at least: bfloat16 has no odd number above 256.
        width: D; of an odd one the last cosine is left out.

    Returns:
        (T, D), of the type of `positions`.
    """
    channels = torch.arange((width + 1) // 2, device=positions.device, dtype=positions.dtype)
    angles = positions[:, None] * 10000.0 ** (-2 / width * channels)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)[:, :width]


def allowed_keys(context: Context, tokens: int, window: int | None = None) -> Tensor | None:
    """Which keys each query may see: (T, S) or (B, 1, T, S) bool, True where it may; None when every one.

    A query whose keys are all padding sees nothing; scaled_dot_product_attention answers it with zeros.

    Args:
        context: of the forward pass.
        tokens: T.
        window: keys that a query sees on its side, its own among them; None: all.
    """
    device = context.positions.device
    earlier = 0 if context.memory is None else context.memory.shape[1]
    spans = [each for each in (window, context.span) if each is not None]
    allowed = None
    if context.causal or spans:
        query = torch.arange(earlier, earlier + tokens, device=device)[:, None]
        distance = query - torch.arange(earlier + tokens, device=device)  # (T, S), positive for earlier keys
        allowed = distance >= 0 if context.causal else None
        for span in spans:
            near = distance.abs() < span
            allowed = near if allowed is None else allowed & near
    if context.key_padding is not None:
        keys = context.key_padding[:, None, None, :]  # (B, 1, 1, T)
        if earlier:
            keys = torch.cat([keys.new_ones(*keys.shape[:-1], earlier), keys], dim=-1)
        allowed = keys.expand(-1, 1, tokens, -1) if allowed is None else keys & allowed
    return allowed
