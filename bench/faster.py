"""Do compiled blocks, bfloat16 and a fused optimiser pay on this processor? Each against what is plain, in turn.

Forward and backward of each kind of block alone, plain, by `torch.compile` and under bfloat16 autocast; one AdamW step
over the weights of a model of six slots, fused, grouped (`foreach`) and tensor by tensor. One thread, its processor
time, in the same rounds in a new order each; a ratio is the median over the rounds, with its quartiles. Compiling is
timed apart. Blocks are not compiled, AdamW is fused and float32 is the default for what this says (docs/benchmarks.md).

    python -m bench.faster [--quick] [--rounds 9]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import torch
from torch import Tensor, nn

from bench.blocks import QUICK, Ratio, Size, compare, make
from bench.kept import commit
from nas.blocks.base import Block, Context

KINDS = ("attention", "ffn", "sgu", "mgk")
SIZE = Size(batch=16, tokens=128, d_model=128, n_heads=4)  # of bench/search_step.py

Runs = Callable[[Tensor, Context], Tensor]
"""A block's forward pass, (B, T, D) to (B, T, D)."""


def in_bfloat16(block: Block) -> Runs:
    """As `method.precision: bfloat16` runs it."""

    def run(x: Tensor, context: Context) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            found = block(x, context)
        return found.float()

    return run


def training(block: Block, runs: Runs, size: Size) -> Callable[[], tuple[Tensor, ...]]:
    """Forward as `runs` has it, and backward, with gradients of the input and of every parameter of the block."""
    x = torch.randn(size.batch, size.tokens, size.d_model, requires_grad=True)
    upstream, context = torch.randn_like(x), Context(True, torch.arange(size.tokens))
    return lambda: torch.autograd.grad(runs(x, context), [x, *block.parameters()], upstream)


def blocks_table(size: Size) -> tuple[list[Ratio], dict[str, float]]:
    """Ratios, and seconds of compiling each kind, forward and backward."""
    torch.manual_seed(0)
    shape = replace(size.shape(size.tokens), positions="rotary")
    calls: dict[str, Callable[[], object]] = {}
    seconds = {}
    for name in KINDS:
        block = make(name, shape)
        calls |= {
            name: training(block, block, size),
            f"{name} compiled": training(block, torch.compile(block, fullgraph=True), size),
            f"{name} in bfloat16": training(block, in_bfloat16(block), size),
        }
        began = time.perf_counter()
        calls[f"{name} compiled"]()
        seconds[name] = round(time.perf_counter() - began, 1)
    pairs = [(f"{name} {how}", name, None) for name in KINDS for how in ("compiled", "in bfloat16")]
    return compare(calls, pairs, size), seconds


def optimiser_table(size: Size) -> list[Ratio]:
    """A step of AdamW over six slots, gradients standing."""
    shape = replace(size.shape(size.tokens), positions="rotary")
    calls: dict[str, Callable[[], object]] = {}
    for name, options in {
        "fused": {"fused": True}, "grouped": {"foreach": True}, "one by one": {"foreach": False}
    }.items():  # fmt: skip
        torch.manual_seed(0)
        model = nn.ModuleList([make(kind, shape) for kind in ("sgu", "sgu", "mgk", "attention", "ffn", "attention")])
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        calls[name] = torch.optim.AdamW(model.parameters(), lr=1e-3, **options).step
    return compare(calls, [("fused", "one by one", None), ("grouped", "one by one", None)], size)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs; its ratios mean nothing")
    parser.add_argument("--rounds", type=int, help="timed rounds")
    chosen = parser.parse_args(arguments)
    size = QUICK if chosen.quick else SIZE
    size = replace(size, rounds=chosen.rounds or size.rounds)
    torch.set_num_threads(1)
    print(f"B {size.batch}, T {size.tokens}, D {size.d_model}, {size.n_heads} heads, 1 thread, {size.rounds} rounds")
    print("\nforward and backward", flush=True)
    blocks, seconds = blocks_table(size)
    print(f"  seconds to compile: {', '.join(f'{name} {each}' for name, each in seconds.items())}")
    print("\na step of AdamW, six slots", flush=True)
    steps = optimiser_table(size)
    rows = {"blocks": [asdict(each) for each in blocks], "optimiser": [asdict(each) for each in steps]}
    print(json.dumps({"bench": "faster", "commit": commit(), "size": asdict(size), **rows, "compile_s": seconds}))


if __name__ == "__main__":
    main()
