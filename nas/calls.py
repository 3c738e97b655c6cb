"""One call of each serve mode, as it is timed: of a whole network, and of one slot alone.

prefill reads whole sequences; decode reads one token more, behind a cache of those that were read; training is a
forward and a backward pass, with the gradients of all weights. B batch, T tokens, D model width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from nas.blocks.base import Cache, Context
from nas.config.task import ServeMode
from nas.network import Memory, Network, NetworkCache, Slot, remember

Call = Callable[[], object]


def network_call(network: Network, serve: ServeMode) -> Call:
    """Whole networks, embedding and head included; in training the loss too.

    Args:
        network: in evaluation, or for the training mode in training.
        serve: batch and lengths; random tokens and memory are drawn from the global generator.

    Raises:
        ValueError: the network cannot decode, or not that far.
    """
    tokens = _tokens(network, serve)
    if serve.mode == "decode":
        cache = network.new_cache(serve.batch, serve.query_length + 1)
        return partial(_decode, network, tokens[:, :1], cache, serve.query_length)
    memory = _memory(network, serve)
    if serve.mode == "training":
        targets = torch.zeros(
            serve.batch, 1 if network.backbone.pools else serve.query_length, dtype=torch.long, device=tokens.device
        )
        return partial(_train, network, tokens, targets, memory)
    return partial(network, tokens, memory)


def slot_calls(network: Network, serve: ServeMode) -> dict[int, Call]:
    """Each slot that is built, by its number in the config, with norm and residual; arguments as of `network_call`."""
    tokens = _tokens(network, serve)
    if serve.mode == "decode":
        context, x = network.backbone.context(tokens[:, :1]), network.backbone.embed(tokens[:, :1])
        return {
            number: partial(
                _decode_slot,
                slot,
                x,
                slot.block.new_cache(serve.batch, serve.query_length + 1, context),
                serve.query_length,
            )
            for number, slot in _slots(network).items()
        }
    context, x = network.backbone.context(tokens), network.backbone.embed(tokens).detach()
    memory = _memory(network, serve) or [None] * len(network.config.slots)
    run = _train_slot if serve.mode == "training" else _run_slot
    return {number: partial(run, slot, x, context, memory[number]) for number, slot in _slots(network).items()}


def _tokens(network: Network, serve: ServeMode) -> Tensor:
    """Drawn on the processor, so that they are the same wherever the network lives."""
    return torch.randint(0, network.config.vocab_size, (serve.batch, serve.query_length)).to(_device(network))


def _device(network: Network) -> torch.device:
    return next(network.parameters()).device


def _memory(network: Network, serve: ServeMode) -> Memory | None:
    """Full memory of random inputs for each slot that reads it; None where the mode has none."""
    if not serve.memory_length:
        return None
    size = (serve.batch, serve.memory_length, network.config.shape.d_model)
    memory: Memory = [None] * len(network.config.slots)
    for number, slot in _slots(network).items():
        if slot.block.uses_memory:
            memory[number] = torch.randn(size).to(_device(network))
    return memory


def _slots(network: Network) -> dict[int, Slot]:
    return {int(number): slot for number, slot in network.slots.items() if isinstance(slot, Slot)}


def _decode(network: Network, token: Tensor, cache: NetworkCache, read: int) -> None:
    """The token behind `read` others; the cache is put back to them, whatever it holds of them."""
    cache.position = read
    for each in cache.slots.values():
        each.position = read
    network.step(token, cache)


def _decode_slot(slot: Slot, x: Tensor, cache: Cache, read: int) -> None:
    cache.position = read
    slot.step(x, cache)


def _train(network: Network, tokens: Tensor, targets: Tensor, memory: Memory | None) -> None:
    hidden, _ = network.body(tokens, memory)
    everywhere = torch.arange(targets.numel(), device=targets.device)
    torch.autograd.grad(
        network.backbone.nats(hidden, targets, places=everywhere).mean(), [*network.parameters()], allow_unused=True
    )  # a token type that no token has, as one example, has no gradient


def _train_slot(slot: Slot, x: Tensor, context: Context, memory: Tensor | None) -> None:
    """Forward and backward, to the weights and to the slot before."""
    x = x.detach().requires_grad_()
    out = _run_slot(slot, x, context, memory)
    torch.autograd.grad(out, [x, *slot.parameters()], torch.ones_like(out), allow_unused=True)


def _run_slot(slot: Slot, x: Tensor, context: Context, memory: Tensor | None) -> Tensor:
    """One slot's part of a forward pass."""
    if memory is not None:
        remember(memory, x, slot.block.shape.kept_tokens(slot.training))
    out: Tensor = slot(x, context, memory)
    return out
