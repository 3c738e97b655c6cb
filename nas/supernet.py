"""The supernet: L slots, each a `MixedBlock` of the K candidates.

In pre-norm a slot computes x + sum_k w_k block_k(norm(x)), with one norm; identity adds nothing, so that alpha compares
what each block adds. In post-norm it computes sum_k w_k F_k with F_k = norm_k(x + block_k(x)), and F = x for identity
(par-search.md section 1.2; Mandava et al. 2020, arXiv:2009.04534). B batch, T tokens, M of memory, D model width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas import catalog
from nas.backbone import Backbone, check_tokens, make_norm
from nas.blocks.base import Block, Context
from nas.config.space import SearchSpace
from nas.network import Memory, remember, seeing, shortest, unpacked_memory
from nas.options import NetworkConfig
from nas.recompute import Conditions, credited, weighted_sum


class MixedBlock(nn.Module):
    """One slot: every candidate block, behind one shared norm or each with its own. Choices are arguments, never state.

    `blocks`, and in post-norm `norms`, hold the candidates by their number in the space: a label may be no module name.
    """

    def __init__(self, space: SearchSpace, classes: Mapping[str, type[Block]]) -> None:
        super().__init__()
        shape = space.shape()
        self.dropout = space.dropout
        own = any(catalog.block(candidate.block).own is not None for candidate in space.candidates)
        self.drops = space.dropout > 0 or space.attention_dropout > 0 or own  # an own block may draw what it likes
        self.n_candidates = len(space.candidates)
        self.norm = make_norm(space.norm, space.d_model) if space.norm_position == "pre" else None
        # Identity has no module: it costs nothing and computes nothing.
        self.blocks = nn.ModuleDict(
            {
                str(number): classes[candidate.block](
                    shape, catalog.block(candidate.block).options(**candidate.options)
                )
                for number, candidate in enumerate(space.candidates)
                if candidate.family != "identity"
            }
        )
        self.norms = nn.ModuleDict()
        if space.norm_position == "post":
            self.norms.update({number: make_norm(space.norm, space.d_model) for number in self.blocks})

    @property
    def uses_memory(self) -> bool:
        return any(isinstance(block, Block) and block.uses_memory for block in self.blocks.values())

    @property
    def longest(self) -> int | None:
        return shortest(block.longest for block in self.blocks.values() if isinstance(block, Block))

    def one(
        self,
        x: Tensor,
        context: Context,
        choice: int,
        factor: Tensor | None = None,
        memory: Tensor | None = None,
    ) -> Tensor:
        """The slot with one candidate.

        Args:
            x: (B, T, D).
            context: from the backbone.
            choice: number of the candidate.
            factor: single-path mode's exact 1 that carries a gradient.
            memory: (B, M, D) raw inputs of earlier tokens.

        Returns:
            (B, T, D).
        """
        if self.norm is None:
            out = self._whole(x, seeing(context, memory, None), choice)
            return out if factor is None else factor * out
        if str(choice) not in self.blocks:
            return x
        added = self._added(self.norm(x), seeing(context, memory, self.norm), choice)
        return x + (added if factor is None else factor * added)

    def mixture(
        self,
        x: Tensor,
        context: Context,
        weights: Tensor,
        only: int | None = None,
        memory: Tensor | None = None,
        run: Sequence[int] | None = None,
    ) -> Tensor:
        """The slot with every candidate, weighted. All of them drop the same random numbers.

        Where the slot's own weights are frozen, memory does not grow with candidates (nas.recompute); otherwise all
        activations are kept, and gradients of everything come out the same.

        Args:
            x: (B, T, D).
            context: from the backbone.
            weights: (K,) on the simplex.
            only: let the gradient with respect to x through this candidate alone. In straight-through mode the
                others have weight zero, so nothing is lost, and their activations need not be kept.
            memory: (B, M, D) raw inputs of earlier tokens.
            run: numbers of the candidates to evaluate at all; None: every one. Others must have weight zero, and get
                no gradient.

        Returns:
            (B, T, D).
        """
        given = x if self.norm is None else self.norm(x)
        context = seeing(context, memory, self.norm)

        def part(number: int, given: Tensor) -> Tensor:
            return self._whole(given, context, number) if self.norm is None else self._added(given, context, number)

        run = range(self.n_candidates) if run is None else run
        if self.norm is not None:
            run = [number for number in run if str(number) in self.blocks]  # identity adds nothing
        conditions = Conditions.now(x.device, self.training and self.drops)
        frozen = torch.is_grad_enabled() and not any(each.requires_grad for each in self.parameters())
        if frozen and only is None:
            total = weighted_sum(weights, given, part, run, conditions)
        elif frozen and only is not None:
            with conditions.again():
                chosen = part(only, given) if only in run else torch.zeros_like(x)
            total = credited(chosen, weights, given, part, only, run, conditions)
        else:
            total = torch.zeros_like(x)
            for number in run:
                with torch.set_grad_enabled(torch.is_grad_enabled() and only in (None, number)), conditions.again():
                    found = part(number, given)
                total = total + weights[number] * found
        return total if self.norm is None else x + total

    def _added(self, normed: Tensor, context: Context, number: int) -> Tensor:
        """What a candidate adds to the residual stream."""
        return F.dropout(self.blocks[str(number)](normed, context), self.dropout, self.training)

    def _whole(self, x: Tensor, context: Context, number: int) -> Tensor:
        """F_k of the post-norm form."""
        if str(number) not in self.blocks:
            return x
        out: Tensor = self.norms[str(number)](x + self._added(x, context, number))
        return out


class Supernet(nn.Module):
    """Every network of a space at once, over one backbone.

    Args:
        space: slots and candidates.
        vocab_size: token ids.
        classes: block name -> class.
    """

    def __init__(self, space: SearchSpace, vocab_size: int, classes: Mapping[str, type[Block]]) -> None:
        super().__init__()
        config = NetworkConfig(space.shape(), vocab_size, (), space.norm, space.norm_position, space.backbone)
        self.backbone = Backbone(config)
        self.slots = nn.ModuleList(MixedBlock(space, classes) for _ in range(space.n_slots))

    @property
    def longest(self) -> int | None:
        """Tokens that an input may have: what the shortest of all candidates and the position embeddings take."""
        return shortest([self.backbone.longest, *(_mixed(slot).longest for slot in self.slots)])

    @property
    def _kept_tokens(self) -> int:
        return self.backbone.shape.kept_tokens(self.training)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Inside, no gradient of the network's weights is computed, nor is anything kept for one: for alpha steps.

        Both passes belong inside: the backward one runs candidates again.
        """
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        for parameter in learning:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in learning:
                parameter.requires_grad_(True)

    def forward_path(
        self,
        tokens: Tensor,
        path: Sequence[int],
        factors: Tensor | None = None,
        *,
        memory: Memory | None = None,
        key_padding: Tensor | None = None,
    ) -> tuple[Tensor, Memory | None]:
        """Run one candidate per slot.

        Args:
            tokens: (B, T) token ids.
            path: (L,) candidate numbers.
            factors: (L,) of single-path mode, each exactly 1.
            memory: of the segment before, whatever path it took.
            key_padding: (B, T) bool, True where a token is real; None when all are.

        Returns:
            (B, T, D) for the backbone's head, and the memory for the next segment; None where the space has no memory,
            and behind padding.

        Raises:
            ValueError: the input is not (B, T) or is longer than `longest`, or memory does not fit the supernet.
        """
        x, context, earlier = self._enter(tokens, memory, key_padding)
        kept: Memory = []
        for index, (slot, choice) in enumerate(zip(self.slots, path, strict=True)):
            kept.append(self._remember(slot, earlier[index], x))
            factor = None if factors is None else factors[index]
            x = _mixed(slot).one(x, context, choice, factor, earlier[index])
        return x, kept if self._kept_tokens and key_padding is None else None

    def forward_mixture(
        self,
        tokens: Tensor,
        weights: Tensor,
        path: Sequence[int] | None = None,
        *,
        run: Sequence[Sequence[int]] | None = None,
        memory: Memory | None = None,
        key_padding: Tensor | None = None,
    ) -> tuple[Tensor, Memory | None]:
        """Run the candidates of every slot, weighted; inside `frozen` only gradients of the weights given come out.

        Args:
            tokens: (B, T) token ids.
            weights: (L, K), rows on the simplex.
            path: (L,) the chosen candidates when the rows are one-hot (straight-through): the only ones whose
                activations are kept.
            run: for each slot the candidates that are evaluated at all; None: all. The weights of others must be
                zero, and get no gradient.
            memory: of the segment before.
            key_padding: (B, T) bool, True where a token is real; None when all are.

        Returns:
            (B, T, D) for the backbone's head, and the memory for the next segment; None where the space has no memory,
            and behind padding.

        Raises:
            ValueError: as `forward_path`.
        """
        x, context, earlier = self._enter(tokens, memory, key_padding)
        kept: Memory = []
        for index, slot in enumerate(self.slots):
            kept.append(self._remember(slot, earlier[index], x))
            only = None if path is None else path[index]
            evaluated = None if run is None else run[index]
            x = _mixed(slot).mixture(x, context, weights[index], only, earlier[index], evaluated)
        return x, kept if self._kept_tokens and key_padding is None else None

    def _enter(
        self, tokens: Tensor, memory: Memory | None, key_padding: Tensor | None
    ) -> tuple[Tensor, Context, Sequence[Tensor | None]]:
        check_tokens(tokens, self.longest)
        earlier = unpacked_memory(memory, len(self.slots), self._kept_tokens, key_padding)
        return self.backbone.embed(tokens), self.backbone.context(tokens, key_padding), earlier

    def _remember(self, slot: nn.Module, earlier: Tensor | None, x: Tensor) -> Tensor | None:
        """Every slot keeps its inputs while any of its candidates may need them, whichever is chosen now."""
        if not self._kept_tokens or not _mixed(slot).uses_memory:
            return None
        return remember(earlier, x, self._kept_tokens)


def _mixed(slot: nn.Module) -> MixedBlock:
    assert isinstance(slot, MixedBlock)
    return slot
