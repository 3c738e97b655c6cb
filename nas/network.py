"""The concrete model of an architecture, made of the same block classes as the supernet.

B batch, T tokens, M tokens in memory, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas.backbone import Backbone, check_tokens, make_norm
from nas.blocks.base import Block, Cache, Context
from nas.options import NetworkConfig

IDENTITY = "identity"

Memory = list[Tensor | None]
"""For each slot the (B, M, D) inputs that it had last, detached, before any norm; None where it keeps none."""


def remember(memory: Tensor | None, x: Tensor, length: int) -> Tensor:
    """The last `length` of memory's (B, M, D) and x's (B, T, D) positions, detached: it grows until it is full."""
    x = x.detach()
    older = length - x.shape[1]
    return x[:, -length:] if memory is None or older <= 0 else torch.cat([memory[:, -older:], x], dim=1)


def seeing(context: Context, memory: Tensor | None, norm: nn.Module | None) -> Context:
    """The context of a block with its slot's memory, normed as the block's input is; norm None: that is not."""
    if memory is None:
        return context
    return replace(context, memory=memory if norm is None else norm(memory))


def shortest(reaches: Iterable[int | None]) -> int | None:
    """The least of several longest inputs; None is no bound."""
    bounds = [each for each in reaches if each is not None]
    return min(bounds) if bounds else None


def unpacked_memory(
    memory: Memory | None, n_slots: int, length: int, key_padding: Tensor | None
) -> Sequence[Tensor | None]:
    """One entry for each slot.

    Raises:
        ValueError: there is memory where the shape's memory_length is 0, as an encoder's is, or of another number of
            slots, or beside padding.
    """
    if memory is None:
        return [None] * n_slots
    if not length:
        raise ValueError("memory is given, but the network's memory_length is 0; it must be None")
    if len(memory) != n_slots:
        raise ValueError(f"memory has {len(memory)} entries; the network has {n_slots} slots")
    if key_padding is not None:
        raise ValueError("memory and key_padding are both given; segments with memory must be full")
    return memory


class Slot(nn.Module):
    """One slot with its block fixed: x + block(norm(x)), or norm(x + block(x)) in post-norm; dropout on what is added.

    Args:
        norm: of the slot.
        block: of the slot.
        post: whether the norm is behind the sum.
        dropout: rate on what the block adds.
    """

    def __init__(self, norm: nn.Module, block: Block, *, post: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = norm
        self.block = block
        self.post = post
        self.dropout = dropout

    def forward(self, x: Tensor, context: Context, memory: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, D), with (B, M, D) raw inputs of earlier tokens."""
        context = seeing(context, memory, None if self.post else self.norm)
        return self._sum(x, self.block(self._block_input(x), context))

    def step(self, x: Tensor, cache: Cache) -> Tensor:  # (B, 1, D) -> (B, 1, D)
        return self._sum(x, self.block.step(self._block_input(x), cache))

    def _block_input(self, x: Tensor) -> Tensor:
        return x if self.post else self.norm(x)

    def _sum(self, x: Tensor, added: Tensor) -> Tensor:
        out = x + F.dropout(added, self.dropout, self.training)
        return self.norm(out) if self.post else out


@dataclass
class NetworkCache:
    """What a network keeps of the tokens it has read one by one.

    Args:
        capacity: tokens that fit.
        slots: each slot's cache, by its number in the config.
        position: tokens read so far, and so the position of the next.
    """

    capacity: int
    slots: dict[str, Cache]
    position: int = 0

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.slots.values())


class Network(nn.Module):
    """Embedding, slots, head. An identity slot is not built: it has neither parameters nor work.

    Parameters are named backbone.*, slots.<i>.norm.* and slots.<i>.block.*, with i the slot's number in the config.

    Args:
        config: everything but the classes.
        classes: the class of each block that the config names.

    Raises:
        ValueError: a block without a class, or a backbone that cannot be built.
    """

    def __init__(self, config: NetworkConfig, classes: Mapping[str, type[Block]]) -> None:
        super().__init__()
        self.config = config
        self.backbone = Backbone(config)
        self.slots = nn.ModuleDict()
        for number, slot in enumerate(config.slots):
            if slot.block == IDENTITY:
                continue
            if slot.block not in classes:
                raise ValueError(
                    f"slot {number + 1} has block {slot.block!r}; classes given: {', '.join(sorted(classes))}"
                )
            block_type = classes[slot.block]
            block = block_type(config.shape, block_type.Options(**slot.options))
            self.slots[str(number)] = Slot(
                make_norm(config.norm, config.shape.d_model),
                block,
                post=config.norm_position == "post",
                dropout=config.shape.dropout,
            )

    def _numbered(self) -> list[tuple[int, Slot]]:
        return [(int(number), slot) for number, slot in self.slots.items() if isinstance(slot, Slot)]

    @property
    def longest(self) -> int | None:
        """Tokens that an input may have: what the shortest of the blocks and the position embeddings take."""
        return shortest([self.backbone.longest, *(slot.block.longest for _, slot in self._numbered())])

    def body(
        self,
        tokens: Tensor,
        memory: Memory | None = None,
        *,
        key_padding: Tensor | None = None,
        token_types: Tensor | None = None,
    ) -> tuple[Tensor, Memory | None]:
        """All but the head.

        Args:
            tokens: (B, T) token ids.
            memory: of the segment before; None at the start of a text.
            key_padding: (B, T) bool, True where a token is real; None when all are.
            token_types: (B, T) type of each token; None: all are of type 0.

        Returns:
            (B, T, D), and the memory for the next segment; None where the shape has no memory, and behind padding,
            which memory would take for real tokens.

        Raises:
            ValueError: the input is not (B, T) or is longer than `longest`, or memory does not fit the network.
        """
        check_tokens(tokens, self.longest)
        length = self.config.shape.kept_tokens(self.training)
        earlier = unpacked_memory(memory, len(self.config.slots), length, key_padding)
        kept: Memory = [None] * len(self.config.slots)
        context = self.backbone.context(tokens, key_padding)
        x = self.backbone.embed(tokens, token_types)
        for number, slot in self._numbered():
            if length and slot.block.uses_memory:
                kept[number] = remember(earlier[number], x, length)
            x = slot(x, context, earlier[number])
        return x, kept if length and key_padding is None else None

    def forward(
        self,
        tokens: Tensor,
        memory: Memory | None = None,
        *,
        key_padding: Tensor | None = None,
        token_types: Tensor | None = None,
    ) -> Tensor:
        """(B, T, V) logits, or (B, n_classes) of whole sequences. Arguments and errors are those of `body`."""
        hidden, _ = self.body(tokens, memory, key_padding=key_padding, token_types=token_types)
        if self.backbone.pools:
            return self.backbone.classes(hidden, key_padding)
        return self.backbone.head(hidden)

    def new_cache(self, batch: int, capacity: int) -> NetworkCache:
        """What `step` needs before the first token, for `batch` sequences of at most `capacity` tokens.

        Raises:
            ValueError: an encoder or a classifier, or the capacity is beyond `longest`.
        """
        if not self.config.shape.causal:
            raise ValueError("an encoder has no incremental path: each token would change all outputs")
        if self.config.backbone.n_classes:
            raise ValueError("a classifier has no incremental path: it is run on whole sequences")
        if self.longest is not None and capacity > self.longest:
            raise ValueError(f"capacity is {capacity}; this network takes at most {self.longest} tokens")
        device = next(self.parameters()).device
        context = self.backbone.context(torch.zeros(batch, 1, dtype=torch.long, device=device))
        return NetworkCache(
            capacity, {str(number): slot.block.new_cache(batch, capacity, context) for number, slot in self._numbered()}
        )

    def step(self, tokens: Tensor, cache: NetworkCache) -> Tensor:
        """The logits for the next token alone, equal to the last of `forward` on all tokens so far.

        Args:
            tokens: (B, 1) token ids.
            cache: of `new_cache`, changed in place.

        Returns:
            (B, 1, V).

        Raises:
            ValueError: the cache is full.
        """
        if cache.position >= cache.capacity:
            raise ValueError(f"the cache is full: it was made for {cache.capacity} tokens")
        x = self.backbone.embed(tokens, start=cache.position)
        cache.position += 1
        for number, slot in self._numbered():
            x = slot.step(x, cache.slots[str(number)])
        return self.backbone.head(x)
