"""Attention's entry in the catalogue."""

from __future__ import annotations

from nas.options import AttentionOptions, Shape
from nas.specs.base import BlockSpec


def parameters(shape: Shape, options: AttentionOptions) -> int:
    return 4 * shape.d_model * options.heads(shape) * shape.head_width


def flops(shape: Shape, options: AttentionOptions, tokens: int, memory: int) -> int:
    width = options.heads(shape) * shape.head_width
    return 8 * tokens * shape.d_model * width + 4 * tokens * tokens * width


SPEC = BlockSpec(
    name="attention",
    description="softmax or linear self-attention",
    family="attention",
    letter="A",
    colour="#4477AA",
    options=AttentionOptions,
    parameters=parameters,
    flops=flops,
    class_path="nas.blocks.attention:Attention",
)
