"""The supernet: L slots, each a `MixedBlock` of the K candidates behind one norm and one residual.

A slot computes x + sum_k w_k block_k(norm(x)); identity adds nothing, so that alpha compares what each block adds
(par-search.md section 1.2, pre-norm form; Mandava et al. 2020, arXiv:2009.04534). B batch, T tokens, D model width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nas import catalog
from nas.backbone import Backbone, make_norm
from nas.blocks.base import Block, Context
from nas.config import SearchSpace


class MixedBlock(nn.Module):
    """One slot: a shared norm and every candidate block. Choices are arguments, never state."""

    def __init__(self, space: SearchSpace, classes: Mapping[str, type[Block]]) -> None:
        super().__init__()
        shape = space.shape()
        self.norm = make_norm(space.norm, space.d_model)
        self.labels = space.labels
        # Identity has no module: it costs nothing and computes nothing.
        self.blocks = nn.ModuleDict(
            {
                candidate.label: classes[candidate.block](
                    shape, catalog.block(candidate.block).options(**candidate.options)
                )
                for candidate in space.candidates
                if candidate.family != "identity"
            }
        )

    def one(self, x: Tensor, context: Context, choice: int, factor: Tensor | None = None) -> Tensor:
        """The slot with one candidate, (B, T, D); `factor` is single-path mode's exact 1 that carries a gradient."""
        label = self.labels[choice]
        if label not in self.blocks:
            return x
        added: Tensor = self.blocks[label](self.norm(x), context)
        return x + (added if factor is None else factor * added)

    def mixture(self, x: Tensor, context: Context, weights: Tensor, only: int | None = None) -> Tensor:
        """The slot with every candidate, weighted.

        Args:
            x: (B, T, D).
            context: from the backbone.
            weights: (K,) on the simplex.
            only: let the gradient with respect to x through this candidate alone. In straight-through mode the
                others have weight zero, so nothing is lost, and their activations need not be kept.

        Returns:
            (B, T, D).
        """
        normed = self.norm(x)
        total = torch.zeros_like(x)
        for index, label in enumerate(self.labels):
            if label not in self.blocks:
                continue
            with torch.set_grad_enabled(torch.is_grad_enabled() and (only is None or only == index)):
                added: Tensor = self.blocks[label](normed, context)
            total = total + weights[index] * added
        return x + total


class Supernet(nn.Module):
    """Every network of a space at once, over one backbone.

    Args:
        space: slots and candidates.
        vocab_size: token ids.
        classes: block name -> class.
    """

    def __init__(self, space: SearchSpace, vocab_size: int, classes: Mapping[str, type[Block]]) -> None:
        super().__init__()
        self.backbone = Backbone(space.shape(), vocab_size, space.norm)
        self.slots = nn.ModuleList(MixedBlock(space, classes) for _ in range(space.n_slots))

    def _enter(self, tokens: Tensor) -> tuple[Tensor, Context]:
        return self.backbone.embed(tokens), self.backbone.context(tokens)

    def forward_path(self, tokens: Tensor, path: Sequence[int], factors: Tensor | None = None) -> Tensor:
        """Run one candidate per slot.

        Args:
            tokens: (B, T) token ids.
            path: (L,) candidate indices.
            factors: (L,) of single-path mode, each exactly 1.

        Returns:
            (B, T, V) logits.
        """
        x, context = self._enter(tokens)
        for index, (slot, choice) in enumerate(zip(self.slots, path, strict=True)):
            x = _mixed(slot).one(x, context, choice, None if factors is None else factors[index])
        return self.backbone.head(x)

    def forward_mixture(self, tokens: Tensor, weights: Tensor, path: Sequence[int] | None = None) -> Tensor:
        """Run every candidate of every slot, weighted.

        Args:
            tokens: (B, T) token ids.
            weights: (L, K), rows on the simplex.
            path: (L,) the chosen candidates when the rows are one-hot (straight-through): the only ones whose
                activations are kept.

        Returns:
            (B, T, V) logits.
        """
        x, context = self._enter(tokens)
        for index, slot in enumerate(self.slots):
            x = _mixed(slot).mixture(x, context, weights[index], None if path is None else path[index])
        return self.backbone.head(x)


def _mixed(slot: nn.Module) -> MixedBlock:
    assert isinstance(slot, MixedBlock)
    return slot
