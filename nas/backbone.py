"""What is not searched: token embedding, last norm, head, and the context that blocks see.

B batch, T tokens, D model width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nas.blocks.base import Context
from nas.options import Shape

EMBEDDING_STD = 0.5  # measured: tied heads and embeddings of std 0.02 cost a small parent 0.1 bits per byte


def make_norm(norm: str, d_model: int) -> nn.Module:
    """The norm before a slot's block or the head.

    Raises:
        ValueError: unknown norm.
    """
    if norm not in ("layer", "rms"):
        raise ValueError(f"unknown norm {norm!r}; known: layer, rms")
    return nn.LayerNorm(d_model) if norm == "layer" else nn.RMSNorm(d_model)


class Backbone(nn.Module):
    """Embedding in, norm and untied head out. Positions are the blocks' own (rotary)."""

    def __init__(self, shape: Shape, vocab_size: int, norm: str) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(vocab_size, shape.d_model)
        nn.init.normal_(self.embedding.weight, std=EMBEDDING_STD)
        self.norm = make_norm(norm, shape.d_model)
        self.proj_out = nn.Linear(shape.d_model, vocab_size)

    def embed(self, tokens: Tensor) -> Tensor:  # (B, T) integers -> (B, T, D)
        """Raises: ValueError: the input is not (B, T) or longer than the shape's max_len."""
        if tokens.dim() != 2:
            raise ValueError(f"tokens have {tokens.dim()} axes; they must be (batch, tokens)")
        if tokens.shape[1] > self.shape.max_len:
            raise ValueError(f"input has {tokens.shape[1]} tokens; this network takes at most {self.shape.max_len}")
        out: Tensor = self.embedding(tokens)
        return out

    def context(self, tokens: Tensor, key_padding: Tensor | None = None) -> Context:
        """What the blocks may know of (B, T) tokens; key_padding: (B, T) bool, True where a token is real."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        lengths = None if key_padding is None else key_padding.sum(dim=1)
        return Context(causal=self.shape.causal, positions=positions, key_padding=key_padding, lengths=lengths)

    def head(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, V) logits
        out: Tensor = self.proj_out(self.norm(x))
        return out
