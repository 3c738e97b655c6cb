"""What do the blocks cost beside the plainest correct PyTorch, beside each other, and one token at a time?

Forward and backward of each block alone, with a gradient for its input and every parameter, one thread. All that one
table compares is timed in turn in the same rounds, in an order that changes; a ratio is the median over the rounds of
two times from the same round, with its quartiles. The clock is this thread's processor time, so what other programs
take away in between does not count. Before any timing a block must agree with what it is measured against, weights
copied, to 1e-4.

    python bench/blocks.py [--quick] [--rounds 9] [--tables causal linear]

B batch, T tokens, D model width, H heads, W head width, M keys per position.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from bench.kept import commit
from nas.blocks import block_class
from nas.blocks.base import Block, Cache, Context
from nas.network import Network, NetworkCache
from nas.options import NetworkConfig, Shape, SlotConfig

LAST_STEPS = 32  # of the incremental path, timed together
LINEAR_GOAL = 1.15  # time per token at any length over that at the shortest; a quadratic form would be at 2 and more


@dataclass(frozen=True)
class Size:
    """How large and how often. Batches of the length tables hold batch * tokens tokens at every length."""

    batch: int = 16
    tokens: int = 512
    d_model: int = 256
    n_heads: int = 4
    toeplitz_lengths: tuple[int, ...] = (512, 1024, 2048)
    linear_lengths: tuple[int, ...] = (512, 1024, 2048, 4096)
    incremental: int = 1024
    rounds: int = 9
    untimed: int = 2

    def shape(self, max_len: int, *, causal: bool = True, positions: str = "none") -> Shape:
        return Shape(self.d_model, self.n_heads, max_len, causal=causal, positions=positions)


QUICK = Size(2, 32, 16, 2, (32, 64), (32, 64), 64, rounds=2, untimed=1)


class PlainAttention(nn.Module):
    """Projections around scaled_dot_product_attention; with rotary positions as the paper writes them."""

    def __init__(self, size: Size, causal: bool, rotary: bool) -> None:
        super().__init__()
        self.n_heads, self.causal, self.rotary = size.n_heads, causal, rotary
        width = size.d_model
        self.proj_q, self.proj_k, self.proj_v, self.proj_out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        q, k, v = (
            each(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for each in (self.proj_q, self.proj_k, self.proj_v)
        )
        if self.rotary:
            q, k = turned(q), turned(k)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        out: Tensor = self.proj_out(mixed.transpose(1, 2).flatten(2))
        return out


def turned(x: Tensor) -> Tensor:  # (B, H, T, W) -> (B, H, T, W)
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    first, second = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-1).flatten(-2)


class PlainMgk(nn.Module):
    """The mixture as it is defined: log-sum-exp over M of the squared distances, softmax over positions."""

    def __init__(self, size: Size, causal: bool, shifted: bool, n_keys: int = 2) -> None:
        super().__init__()
        self.n_heads, self.causal = size.n_heads, causal
        width, head_width = size.d_model, size.d_model // size.n_heads
        self.proj_q, self.proj_v, self.proj_out = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.proj_k = nn.Linear(width, width if shifted else n_keys * width, bias=False)
        self.shifts = nn.Parameter(torch.zeros(n_keys, size.n_heads, head_width)) if shifted else None
        self.logits = nn.Parameter(torch.zeros(size.n_heads, n_keys))

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        q, v = (each(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for each in (self.proj_q, self.proj_v))
        width = q.shape[-1]
        k = self.proj_k(x).unflatten(-1, (self.n_heads, -1, width)).permute(0, 2, 3, 1, 4)  # (B, H, M or 1, T, W)
        if self.shifts is not None:
            k = k + self.shifts.transpose(0, 1)[:, :, None]
        q = q[:, :, None]
        distances = q.square().sum(-1)[..., None] - 2 * q @ k.mT + k.square().sum(-1)[..., None, :]
        log_pi = self.logits.log_softmax(dim=-1)[..., None, None]
        scores = (log_pi - distances / (2 * width**0.5)).logsumexp(dim=2)  # (B, H, T, T)
        if self.causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
        out: Tensor = self.proj_out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))
        return out


class PlainFfn(nn.Module):
    """Linear, GELU, Linear."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.proj_in = nn.Linear(size.d_model, 4 * size.d_model)
        self.proj_out = nn.Linear(4 * size.d_model, size.d_model)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        out: Tensor = self.proj_out(F.gelu(self.proj_in(x), approximate="tanh"))
        return out


class PlainSgu(nn.Module):
    """Linear, GELU, halves, norm, one product with the T x T weights, Linear."""

    def __init__(self, size: Size, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.proj_in = nn.Linear(size.d_model, 4 * size.d_model)
        self.norm = nn.LayerNorm(2 * size.d_model)
        self.weight = nn.Parameter(torch.zeros(1, size.tokens, size.tokens))
        self.bias = nn.Parameter(torch.ones(size.tokens))
        self.proj_out = nn.Linear(2 * size.d_model, size.d_model)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        z1, z2 = F.gelu(self.proj_in(x), approximate="tanh").chunk(2, dim=-1)
        weight = self.weight.tril() if self.causal else self.weight
        out: Tensor = self.proj_out(z1 * (weight @ self.norm(z2) + self.bias[:, None]))
        return out


@dataclass(frozen=True)
class Ratio:
    """One line of a table: how many times the second's time the first takes.

    Args:
        first: what is measured.
        second: what it is measured against.
        median: of the ratios of the rounds.
        low: their lower quartile.
        high: their upper quartile.
        ms: medians of both.
        goal: largest ratio that is wanted; None: it is printed for information.
    """

    first: str
    second: str
    median: float
    low: float
    high: float
    ms: tuple[float, float]
    goal: float | None = None

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.median <= self.goal

    def show(self) -> None:
        verdict = "" if self.goal is None else f"goal {self.goal:g}: {'met' if self.met else 'NOT MET'}"
        times = f"{self.ms[0]:9.2f} {self.ms[1]:9.2f} ms"
        quartiles = f"({self.low:.3f} to {self.high:.3f})"
        line = f"  {self.first:<34} / {self.second:<30} {times}  {self.median:6.3f} {quartiles}  {verdict}"
        print(line.rstrip(), flush=True)


def in_turn(calls: Mapping[str, Callable[[], object]], size: Size) -> dict[str, NDArray[np.float64]]:
    """Milliseconds of this thread for each call in each round, (rounds,), in a new order every round."""
    shuffle = random.Random(0).shuffle
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-size.untimed, size.rounds):
        shuffle(names)
        for name in names:
            before = time.thread_time()
            calls[name]()
            if number >= 0:
                times[name].append(1e3 * (time.thread_time() - before))
    return {name: np.array(each) for name, each in times.items()}


def compare(
    calls: Mapping[str, Callable[[], object]],
    pairs: Sequence[tuple[str, str, float | None]],
    size: Size,
    repeated: Mapping[str, int] | None = None,
) -> list[Ratio]:
    """Time the calls in turn, print and return a ratio for each (first, second, goal).

    Args:
        calls: by name.
        pairs: names of two calls, and the largest ratio wanted.
        size: says how many rounds.
        repeated: calls that do their work several times; reported is the time of one.
    """
    times = {name: each / (repeated or {}).get(name, 1) for name, each in in_turn(calls, size).items()}
    ratios = []
    for first, second, goal in pairs:
        low, median, high = (
            round(float(each), 4) for each in np.quantile(times[first] / times[second], (0.25, 0.5, 0.75))
        )
        ms = (round(float(np.median(times[first])), 3), round(float(np.median(times[second])), 3))
        ratios.append(Ratio(first, second, median, low, high, ms, goal))
        ratios[-1].show()
    return ratios


def training(module: nn.Module, batch: int, tokens: int, width: int, causal: bool = True) -> Callable[[], object]:
    """Forward and backward of a block or a plain module, with gradients of the input and of every parameter."""
    x = torch.randn(batch, tokens, width, requires_grad=True)
    upstream = torch.randn(batch, tokens, width)
    wanted = [x, *module.parameters()]
    arguments = (x, Context(causal, torch.arange(tokens))) if isinstance(module, Block) else (x,)
    return lambda: torch.autograd.grad(module(*arguments), wanted, upstream)


def make(name: str, shape: Shape, **options: Any) -> Block:
    found = block_class(name)
    return found(shape, found.Options(**options))


@torch.no_grad()
def agree(block: Block, plain: nn.Module, x: Tensor, causal: bool) -> None:
    """Give the plain module the block's weights by name; both must answer alike."""
    plain.load_state_dict(block.state_dict())
    torch.testing.assert_close(plain(x), block(x, Context(causal, torch.arange(x.shape[1]))), rtol=1e-4, atol=1e-4)


def blocks_table(size: Size, causal: bool) -> list[Ratio]:
    """Each block against the plain module, and mixtures of keys against attention of the same inner width."""
    torch.manual_seed(0)
    shape = size.shape(size.tokens, causal=causal)
    rotary = replace(shape, positions="rotary")
    beside = {
        "attention": (make("attention", shape), PlainAttention(size, causal, rotary=False)),
        "rotary attention": (make("attention", rotary), PlainAttention(size, causal, rotary=True)),
        "MGK": (make("mgk", shape, n_heads=size.n_heads), PlainMgk(size, causal, shifted=False)),
        "sMGK": (make("mgk", shape, n_heads=size.n_heads, keys="shifted"), PlainMgk(size, causal, shifted=True)),
        "ffn": (make("ffn", shape), PlainFfn(size)),
        "sgu": (make("sgu", shape), PlainSgu(size, causal)),
    }
    modules: dict[str, nn.Module] = {
        "attention again": make("attention", shape),
        "GK": make("mgk", shape, n_heads=size.n_heads, n_keys=1),
        "rotary MGK": make("mgk", rotary, n_heads=size.n_heads),
        "rotary sMGK": make("mgk", rotary, n_heads=size.n_heads, keys="shifted"),
    }
    for name, (block, plain) in beside.items():
        agree(block, plain, torch.randn(2, size.tokens, size.d_model), causal)
        modules |= {name: block, f"plain {name}": plain}
    calls = {name: training(module, size.batch, size.tokens, size.d_model, causal) for name, module in modules.items()}
    pairs = [
        ("attention again", "attention", None),  # two of a kind: how far a ratio strays
        ("attention", "plain attention", 1.05),
        ("rotary attention", "plain rotary attention", 1.05),
        ("rotary attention", "plain attention", None),
        ("MGK", "attention", 1.8),
        ("rotary MGK", "rotary attention", 1.8),
        ("sMGK", "attention", 1.7),
        ("rotary sMGK", "rotary attention", 1.7),
        ("GK", "attention", None),
        ("MGK", "plain MGK", None),
        ("sMGK", "plain sMGK", None),
        ("ffn", "plain ffn", None),
        ("sgu", "plain sgu", None),
    ]
    return compare(calls, pairs, size)


def toeplitz_table(size: Size) -> list[Ratio]:
    """Toeplitz weights, applied as the block chooses, against N x N weights."""
    ratios = []
    for tokens in size.toeplitz_lengths:
        batch = max(1, size.batch * size.tokens // tokens)
        for causal in (True, False):
            shape = size.shape(tokens, causal=causal)
            kind = "causal" if causal else "both sides"
            names = {spatial: f"{spatial}, {kind}, T {tokens}" for spatial in ("free", "toeplitz")}
            calls = {
                name: training(make("sgu", shape, spatial=spatial), batch, tokens, size.d_model, causal)
                for spatial, name in names.items()
            }
            goal = 1.0 if tokens >= 1024 else None
            ratios += compare(calls, [(names["toeplitz"], names["free"], goal)], size)
    return ratios


def linear_table(size: Size) -> list[Ratio]:
    """Linear forms at growing length and shrinking batch: linear cost is a ratio of 1 to the shortest."""
    calls, pairs = {}, []
    for name, block, options in (
        ("linear attention", "attention", {"kind": "linear"}),
        ("MLK", "mgk", {"kind": "linear", "n_heads": size.n_heads}),
    ):
        for tokens in size.linear_lengths:
            batch = max(1, size.batch * size.tokens // tokens)
            module = make(block, size.shape(tokens), **options)
            calls[f"{name}, T {tokens}"] = training(module, batch, tokens, size.d_model)
            if tokens > size.linear_lengths[0]:
                pairs.append((f"{name}, T {tokens}", f"{name}, T {size.linear_lengths[0]}", LINEAR_GOAL))
    return compare(calls, pairs, size)


@torch.inference_mode()
def incremental_table(size: Size) -> list[Ratio]:
    """The last of `size.incremental` tokens by the incremental path against a full forward of them all; batch 1."""
    tokens, width = size.incremental, size.d_model
    shape = size.shape(tokens, positions="rotary")
    blocks = {
        "attention": make("attention", shape),
        "attention, linear": make("attention", shape, kind="linear"),
        "MGK": make("mgk", shape, n_heads=size.n_heads),
        "sMGK": make("mgk", shape, n_heads=size.n_heads, keys="shifted"),
        "MLK": make("mgk", shape, n_heads=size.n_heads, kind="linear"),
        "ffn": make("ffn", shape),
        "sgu": make("sgu", shape),
        "sgu, toeplitz": make("sgu", shape, spatial="toeplitz"),
    }
    calls: dict[str, Callable[[], object]] = {}
    for name, block in blocks.items():
        x, context = torch.randn(1, tokens, width), Context(True, torch.arange(tokens))
        calls[f"{name}, whole"] = partial(block.eval(), x, context)
        calls[f"{name}, one token"] = last_steps(block.step, x, block.new_cache(1, tokens, context))
    slots = tuple(SlotConfig(name) for name in ("attention", "ffn", "sgu", "mgk", "ffn", "attention", "ffn", "sgu"))
    classes = {slot.block: block_class(slot.block) for slot in slots}
    network = Network(NetworkConfig(shape, 256, slots), classes).eval()
    ids = torch.randint(256, (1, tokens))
    calls["network of 8 slots, whole"] = partial(network, ids)
    calls["network of 8 slots, one token"] = last_steps(network.step, ids, network.new_cache(1, tokens))
    names = [*blocks, "network of 8 slots"]
    pairs = [(f"{name}, one token", f"{name}, whole", 1 / 20) for name in names]
    return compare(calls, pairs, size, {f"{name}, one token": LAST_STEPS for name in names})


def last_steps(
    step: Callable[[Tensor, Any], Tensor], inputs: Tensor, cache: Cache | NetworkCache
) -> Callable[[], None]:
    """Read all of (1, T, ...) inputs once; the call then reads the last LAST_STEPS again, each time anew."""
    tokens = inputs.shape[1]
    caches = [cache, *(cache.slots.values() if isinstance(cache, NetworkCache) else ())]

    def call(start: int = tokens - LAST_STEPS) -> None:
        for each in caches:
            each.position = start
        for at in range(start, tokens):
            step(inputs[:, at : at + 1], cache)

    call(0)
    return call


TABLES: dict[str, tuple[str, Callable[[Size], list[Ratio]]]] = {
    "causal": ("forward and backward, causal", partial(blocks_table, causal=True)),
    "both_sides": ("forward and backward, both sides", partial(blocks_table, causal=False)),
    "toeplitz": ("SGU: Toeplitz weights against N x N, as many tokens at each length", toeplitz_table),
    "linear": ("linear forms, as many tokens at each length", linear_table),
    "incremental": ("the last token by the incremental path against all by a full forward, batch 1", incremental_table),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs; its ratios mean nothing")
    parser.add_argument("--rounds", type=int, help="timed rounds of each table")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    chosen = parser.parse_args(arguments)
    size = QUICK if chosen.quick else Size()
    size = replace(size, rounds=chosen.rounds or size.rounds)
    torch.set_num_threads(1)
    print(f"B {size.batch}, T {size.tokens}, D {size.d_model}, {size.n_heads} heads, 1 thread, {size.rounds} rounds")
    tables: dict[str, list[Ratio]] = {}
    for name in chosen.tables:
        title, table = TABLES[name]
        print(f"\n{title}", flush=True)
        tables[name] = table(size)
    goals = [each for rows in tables.values() for each in rows if each.met is not None]
    missed = [f"{each.first} / {each.second} is {each.median:.2f}" for each in goals if not each.met]
    print(f"\n{len(goals) - len(missed)} of {len(goals)} goals met; missed: {', '.join(missed) or 'none'}")
    print(
        json.dumps(
            {
                "bench": "blocks",
                "commit": commit(),
                "size": asdict(size),
                **{name: [asdict(each) for each in rows] for name, rows in tables.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
