"""The spatial gating unit's entry in the catalogue. N max_len, T tokens, D model width."""

from __future__ import annotations

import math

from nas.options import SguOptions, Shape
from nas.specs.base import BlockSpec, Reach


def parameters(shape: Shape, options: SguOptions) -> int:
    expanded, gate, length = options.expanded(shape), options.gated(shape), shape.max_len
    projections = shape.d_model * expanded + expanded + gate * shape.d_model + shape.d_model
    norm = 2 * gate
    weights = length**2
    if options.spatial == "toeplitz":
        weights = length if shape.causal else 2 * length - 1
    spatial = options.n_heads * (weights + (length if options.bias == "vector" else 1))
    return projections + norm + spatial + _attention_parameters(shape, options)


def _attention_parameters(shape: Shape, options: SguOptions) -> int:
    width = options.attention_width
    return (shape.d_model + 1) * 3 * width + (width + 1) * options.gated(shape) if width else 0


def flops(shape: Shape, options: SguOptions, tokens: int, memory: int) -> int:
    gate, width = options.gated(shape), options.attention_width
    projections = 2 * tokens * shape.d_model * (options.expanded(shape) + gate)
    length = options.fft_length(tokens)
    spatial = 2 * tokens**2 * gate if length is None else fft_flops(shape, options, length)
    attention = 6 * tokens * shape.d_model * width + 4 * tokens**2 * width + 2 * tokens * width * gate
    return projections + spatial + attention


def fft_flops(shape: Shape, options: SguOptions, length: int) -> int:
    """Of the spatial sum of one sequence by FFT, which torch.utils.flop_counter does not count.

    A complex transform of m numbers takes 5 m log2 m. Every two channels of a head take two transforms and a product of
    6 m; the kernel of each head takes one transform more (it is the same for all sequences of a batch).

    Args:
        shape: of the block.
        options: of the block.
        length: m.
    """
    transform = 5 * length * math.log2(length)
    pairs = options.n_heads * -(-options.gated(shape) // options.n_heads // 2)
    return round(pairs * (2 * transform + 6 * length) + options.n_heads * transform)


def cache_bytes(shape: Shape, options: SguOptions, tokens: int, batch: int) -> int:
    """The gate's normed inputs, and keys and values of the tiny attention."""
    return 4 * batch * tokens * (options.gated(shape) + 2 * options.attention_width)


def reach(shape: Shape, options: SguOptions) -> Reach:
    if options.spatial == "free":
        why = "its spatial weights are one for each pair of positions, so it cannot run beyond max_len"
    elif options.bias == "vector":
        why = "its bias is one for each position, so it cannot run beyond max_len"
    else:
        return Reach(
            None, f"its weights go by distance, so any length will do, mixed up to {shape.max_len - 1} tokens apart"
        )
    return Reach(shape.max_len, f"{why}, {shape.max_len} tokens")


SPEC = BlockSpec(
    name="sgu",
    description="spatial gating unit of gMLP and aMLP: a learned static mix over positions gates the channels",
    family="sgu",
    letter="S",
    colour="#228833",
    options=SguOptions,
    parameters=parameters,
    flops=flops,
    class_path="nas.blocks.sgu:SpatialGatingUnit",
    cache_bytes=cache_bytes,
    reach=reach,
)
