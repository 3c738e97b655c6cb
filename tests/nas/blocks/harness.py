"""Small blocks, inputs and contexts for the tests of blocks. B batch, T tokens, D model width, H heads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from nas.blocks import block_class
from nas.blocks.base import Block, Context
from nas.options import Shape

B, T, D, H = 2, 12, 16, 4
SHAPE = Shape(D, H, max_len=T)


def shape_for(options: Any, *, causal: bool = True, max_len: int = T) -> Shape:
    """A shape at which the options can be built: Transformer-XL positions must be those of the whole space."""
    positions = "transformer_xl" if getattr(options, "positions", None) == "transformer_xl" else "rotary"
    return Shape(D, H, max_len=max_len, causal=causal, positions=positions)


def make(name: str, options: Any, shape: Shape = SHAPE) -> Block:
    """A fresh block in float64."""
    torch.manual_seed(0)
    return block_class(name)(shape, options).double()


def trained(block: Block) -> Block:
    """The block with every parameter moved, as if trained: a fresh SGU would hardly mix positions."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    return block


def context(
    tokens: int = T,
    *,
    causal: bool = True,
    key_padding: Tensor | None = None,
    memory: Tensor | None = None,
    shape: Shape = SHAPE,
    dtype: torch.dtype = torch.float64,
) -> Context:
    """What the backbone would tell of `tokens` tokens."""
    biases = None
    if shape.positions == "transformer_xl":
        generator = torch.Generator().manual_seed(3)
        u, v = torch.randn(2, shape.n_heads, shape.head_width, dtype=torch.float64, generator=generator).to(dtype)
        biases = (u, v)
    lengths = None if key_padding is None else key_padding.sum(dim=1)
    made = Context(causal, torch.arange(tokens), key_padding=key_padding, lengths=lengths, biases=biases)
    return replace(made, memory=memory)


def inputs(tokens: int = T, seed: int = 1) -> Tensor:
    return torch.randn(B, tokens, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
