"""A user's own block straight from Python: the `BlockSpec` of a class, and what the class must hold before a search.

What a spec's author would write as formulas is counted on the meta device, which computes shapes and no numbers.
B batch, T tokens, D model width.
"""

from __future__ import annotations

import string
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nas import catalog
from nas.blocks.base import Block, Context
from nas.config.space import Candidate
from nas.errors import InvalidInput
from nas.options import Shape
from nas.specs.base import BlockSpec, Reach, at_most_max_len
from nas.specs.probe import blame, check_options

# Of further families, in this order: Tol's "bright" colours that the built-in families left, then "muted" and "vibrant"
# ones of his that resemble none of those.
COLOURS = ("#66CCEE", "#EE6677", "#332288", "#44AA99", "#882255", "#999933", "#EE7733")

_CHECKED_TOKENS = 64  # enough to see whether a token sees later ones


def describe(name: str, found: Any) -> BlockSpec:
    """The catalogue's entry of a class: a family of its own, a free letter and colour, costs counted when asked for.

    Args:
        name: what requests will call it; the family as well.
        found: a subclass of `nas.blocks.base.Block` with its Options.

    Raises:
        InvalidInput: it is no such class, its Options cannot be read from JSON, or the name is malformed.
    """
    if not (isinstance(found, type) and issubclass(found, Block)):
        what = found.__name__ if isinstance(found, type) else repr(found).splitlines()[0]
        raise InvalidInput(f"block {name!r} is {what}, which is no subclass of nas.blocks.base.Block")
    options = getattr(found, "Options", None)
    if options is None:
        raise InvalidInput(
            f"class {found.__name__} of block {name!r} has no Options; it needs a frozen dataclass, which may be empty"
        )

    def parameters(shape: Shape, options: Any) -> int:
        return sum(parameter.numel() for parameter in _weightless(name, found, shape, options).parameters())

    def flops(shape: Shape, options: Any, tokens: int, memory: int) -> int:
        block = _weightless(name, found, shape, options)
        context = _context(shape, tokens, memory if block.uses_memory else 0)
        # The plain kernel, of matrix products that the counter sees: a fused one is a single call to it.
        with blame(name, "count its FLOPs"), FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            block(torch.zeros(1, tokens, shape.d_model, device="meta"), context)
        counted: int = counter.get_total_flops()
        return counted

    def cache_bytes(shape: Shape, options: Any, tokens: int, batch: int) -> int:
        block = _weightless(name, found, shape, options)
        with blame(name, "make its cache"), torch.device("meta"):
            return block.new_cache(batch, tokens, _context(shape, tokens, 0)).nbytes

    def reach(shape: Shape, options: Any) -> Reach:
        longest = _weightless(name, found, shape, options).longest
        if longest is None:
            return Reach(None, "its class takes inputs of any length")
        if longest == shape.max_len:
            return at_most_max_len(shape, options)
        return Reach(longest, f"its class takes at most {longest} tokens")

    spec = BlockSpec(
        name=name,
        description=_summary(found),
        family=name,
        letter=_free_letter(str(name)),
        colour=_free_colour(name),
        options=options,
        parameters=parameters,
        flops=flops,
        class_path=f"{found.__module__}:{found.__qualname__}",
        cache_bytes=cache_bytes,
        reach=reach,
        own=found,
    )
    check_options(name, options)
    return spec


def check(candidate: Candidate, shape: Shape) -> None:
    """Build a candidate once and run it on a few tokens, so that a mistake is told before the training.

    Raises:
        InvalidInput: it cannot be built, run or trained, its output is not (B, T, D) or not finite, or a token sees
            later ones in a causal shape.
    """
    name = candidate.block
    tokens = min(shape.max_len, _CHECKED_TOKENS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        with blame(name, f"be built with {candidate.options}"), torch.no_grad():
            found = catalog.block(name).own
            assert found is not None
            block: Block = found(shape, candidate.built_options()).eval()
            for parameter in block.parameters():  # as if trained: weights that start at zero would hide what they do
                parameter.add_(0.1 * torch.randn_like(parameter))
        x = torch.randn(2, tokens, shape.d_model)
        later = x.clone()
        later[:, tokens // 2 :] = torch.randn(2, tokens - tokens // 2, shape.d_model)
        with blame(name, f"run {tokens} tokens"), torch.no_grad():
            context = _context(shape, tokens, 0, device="cpu")
            out, changed = block(x.clone(), context), block(later, context)
        _check_output(name, out, x)
        if shape.memory_length and block.uses_memory:
            memory = min(shape.memory_length, _CHECKED_TOKENS) - 1 or 1  # another number than that of the tokens
            with blame(name, f"run {tokens} tokens behind {memory} of memory"), torch.no_grad():
                behind = block(x.clone(), _context(shape, tokens, memory, batch=2, device="cpu"))
            _check_output(name, behind, x)
        with blame(name, "be trained"):
            # Through a product, whose gradient needs its result as it was: a slot's norm is such a step too.
            hidden = (x.requires_grad_() * 1.0).tanh()
            (hidden + block.train()(hidden, context)).sum().backward()
    before, after = out[:, : tokens // 2], changed[:, : tokens // 2]
    # Sums in another order differ by some 1e-6 of their size.
    if shape.causal and not torch.allclose(before, after, rtol=1e-3, atol=1e-4 * float(out.abs().max())):
        raise InvalidInput(
            f"block {name!r} lets a token see later ones, though the space is causal; heed context.causal, or such a "
            "model predicts what it has read"
        )


def _check_output(name: str, out: Any, x: torch.Tensor) -> None:
    if not isinstance(out, torch.Tensor) or out.shape != x.shape:
        got = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise InvalidInput(f"block {name!r} answers {tuple(x.shape)} with {got}; it must keep the shape (B, T, D)")
    if not torch.isfinite(out).all():
        raise InvalidInput(f"block {name!r} answers random tokens with numbers that are not finite")


def _weightless(name: str, found: type[Block], shape: Shape, options: Any) -> Block:
    """The block on the meta device: its shapes, without memory for its numbers."""
    with blame(name, f"be built with {options}"), torch.device("meta"):
        return found(shape, options).eval()


def _context(shape: Shape, tokens: int, memory: int, batch: int = 1, device: str = "meta") -> Context:
    width = (shape.n_heads, shape.head_width)
    has_biases = shape.positions == "transformer_xl"
    return Context(
        causal=shape.causal,
        positions=torch.arange(tokens, device=device),
        memory=torch.zeros(batch, memory, shape.d_model, device=device) if memory else None,
        biases=(torch.zeros(width, device=device), torch.zeros(width, device=device)) if has_biases else None,
    )


def _summary(found: type[Block]) -> str:
    """The first line of the class's own docstring."""
    lines = str(vars(found).get("__doc__") or "").strip().splitlines()
    return lines[0] if lines else "a block of your own"


def _free_letter(name: str) -> str:
    """A letter of the name where one is free, else any; that of the class before, where the name is taken up again."""
    others = {spec.letter for spec in catalog.blocks().values() if spec.name != name}
    wanted = "".join(each for each in name.upper() if each in string.ascii_uppercase)
    return next(each for each in wanted + string.ascii_letters[::-1] + string.digits if each not in others)


def _free_colour(name: str) -> str:
    others = {spec.colour for spec in catalog.blocks().values() if spec.name != name}
    return next((each for each in COLOURS if each not in others), COLOURS[-1])
