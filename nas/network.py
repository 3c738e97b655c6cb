"""The concrete model of an architecture, made of the same block classes as the supernet.

B batch, T tokens, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from nas.backbone import Backbone, make_norm
from nas.blocks.base import Block, Context
from nas.options import NetworkConfig

IDENTITY = "identity"


class Slot(nn.Module):
    """One slot with its block fixed: x + block(norm(x))."""

    def __init__(self, norm: nn.Module, block: Block) -> None:
        super().__init__()
        self.norm = norm
        self.block = block

    def forward(self, x: Tensor, context: Context) -> Tensor:  # (B, T, D) -> (B, T, D)
        out: Tensor = x + self.block(self.norm(x), context)
        return out


class Network(nn.Module):
    """Embedding, slots, head. An identity slot is not built: it has neither parameters nor work.

    Parameters are named backbone.*, slots.<i>.norm.* and slots.<i>.block.*, with i the slot's number in the config.

    Args:
        config: everything but the classes.
        classes: the class of each block that the config names.

    Raises:
        ValueError: a block without a class, or unknown norm.
    """

    def __init__(self, config: NetworkConfig, classes: Mapping[str, type[Block]]) -> None:
        super().__init__()
        self.config = config
        self.backbone = Backbone(config.shape, config.vocab_size, config.norm)
        self.slots = nn.ModuleDict()
        for number, slot in enumerate(config.slots):
            if slot.block == IDENTITY:
                continue
            if slot.block not in classes:
                raise ValueError(f"slot {number} has block {slot.block!r}; classes given: {', '.join(sorted(classes))}")
            block_type = classes[slot.block]
            block = block_type(config.shape, block_type.Options(**slot.options))
            self.slots[str(number)] = Slot(make_norm(config.norm, config.shape.d_model), block)

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) integers -> (B, T, V) logits
        """Raises: ValueError: the input is not (B, T) or longer than max_len."""
        x = self.backbone.embed(tokens)
        context = self.backbone.context(tokens)
        for slot in self.slots.values():
            x = slot(x, context)
        return self.backbone.head(x)
