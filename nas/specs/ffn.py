"""The feed-forward network's entry in the catalogue."""

from __future__ import annotations

from nas.options import FfnOptions, Shape
from nas.specs.base import BlockSpec, Reach


def parameters(shape: Shape, options: FfnOptions) -> int:
    hidden = options.hidden(shape)
    widened = 2 * hidden if options.activation == "swiglu" else hidden
    return shape.d_model * (widened + hidden) + (widened + shape.d_model if options.bias else 0)


def flops(shape: Shape, options: FfnOptions, tokens: int, memory: int) -> int:
    matrices = 3 if options.activation == "swiglu" else 2
    return 2 * matrices * tokens * shape.d_model * options.hidden(shape)


SPEC = BlockSpec(
    name="ffn",
    description="position-wise feed-forward network: GELU, ReLU or SwiGLU",
    family="ffn",
    letter="F",
    colour="#CCBB44",
    options=FfnOptions,
    parameters=parameters,
    flops=flops,
    class_path="nas.blocks.ffn:FeedForward",
    cache_bytes=lambda shape, options, tokens, batch: 0,
    reach=lambda shape, options: Reach(None, "it reads each token alone, so any length will do"),
)
