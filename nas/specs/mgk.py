"""The entry of attention with Gaussian keys in the catalogue."""

from __future__ import annotations

from nas.options import MgkOptions, Shape
from nas.specs.base import BlockSpec


def parameters(shape: Shape, options: MgkOptions) -> int:
    heads = options.heads(shape)
    return (3 + options.n_keys) * shape.d_model * heads * shape.head_width + heads * options.n_keys


def flops(shape: Shape, options: MgkOptions, tokens: int, memory: int) -> int:
    width = options.heads(shape) * shape.head_width
    return 2 * (3 + options.n_keys) * tokens * shape.d_model * width + 4 * options.n_keys * tokens * tokens * width


SPEC = BlockSpec(
    name="mgk",
    description="attention with a mixture of Gaussian keys, half the heads",
    family="mgk",
    letter="M",
    colour="#AA3377",
    options=MgkOptions,
    parameters=parameters,
    flops=flops,
    class_path="nas.blocks.mgk:MixtureOfGaussianKeys",
)
