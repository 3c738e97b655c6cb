"""The block's entry in the catalogue: words and formulas. No torch here: the service reads this file, and has none."""

from __future__ import annotations

from blockwright_conv.options import ConvolutionOptions
from nas.options import Shape
from nas.specs.base import BlockSpec, Reach


def parameters(shape: Shape, options: ConvolutionOptions) -> int:
    projections = 2 * (shape.d_model**2 + shape.d_model)
    return projections + shape.d_model * options.kernel + shape.d_model


def flops(shape: Shape, options: ConvolutionOptions, tokens: int, memory: int) -> int:
    return 4 * tokens * shape.d_model**2 + 2 * tokens * shape.d_model * options.kernel


def cache_bytes(shape: Shape, options: ConvolutionOptions, tokens: int, batch: int) -> int:
    return 4 * batch * (options.kernel - 1) * shape.d_model


def reach(shape: Shape, options: ConvolutionOptions) -> Reach:
    return Reach(None, f"each output sees {options.kernel} tokens wherever they stand, so any length will do")


SPEC = BlockSpec(
    name="conv",
    description="depth-wise convolution over the last tokens",
    family="conv",
    letter="C",
    colour="#66CCEE",
    options=ConvolutionOptions,
    parameters=parameters,
    flops=flops,
    class_path="blockwright_conv.conv:DepthwiseConvolution",
    cache_bytes=cache_bytes,
    reach=reach,
)
