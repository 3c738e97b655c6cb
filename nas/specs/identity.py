"""Identity's entry in the catalogue: it costs nothing."""

from __future__ import annotations

from nas.options import IdentityOptions
from nas.specs.base import BlockSpec, Reach

SPEC = BlockSpec(
    name="identity",
    description="no block at all: the slot is skipped",
    family="identity",
    letter=".",
    colour="#BBBBBB",
    options=IdentityOptions,
    parameters=lambda shape, options: 0,
    flops=lambda shape, options, tokens, memory: 0,
    class_path="nas.blocks.identity:Identity",
    cache_bytes=lambda shape, options, tokens, batch: 0,
    reach=lambda shape, options: Reach(None, "it does nothing, at any length"),
)
