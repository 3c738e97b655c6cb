"""The spatial gating unit's entry in the catalogue."""

from __future__ import annotations

from nas.options import SguOptions, Shape
from nas.specs.base import BlockSpec


def parameters(shape: Shape, options: SguOptions) -> int:
    gate = options.gated(shape)
    projections = shape.d_model * 2 * gate + 2 * gate + gate * shape.d_model + shape.d_model
    return projections + 2 * gate + shape.max_len**2 + shape.max_len


def flops(shape: Shape, options: SguOptions, tokens: int, memory: int) -> int:
    gate = options.gated(shape)
    return 6 * tokens * shape.d_model * gate + 2 * tokens * tokens * gate


SPEC = BlockSpec(
    name="sgu",
    description="spatial gating unit of gMLP: a learned static mix over positions gates the channels",
    family="sgu",
    letter="S",
    colour="#228833",
    options=SguOptions,
    parameters=parameters,
    flops=flops,
    class_path="nas.blocks.sgu:SpatialGatingUnit",
)
