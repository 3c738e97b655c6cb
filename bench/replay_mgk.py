"""Mixtures of Gaussian keys against softmax, replayed small: Nguyen et al. 2022 (arXiv:2110.08678), with its controls.

Two probes. `capacity`: can one narrow head spread its attention over the tokens that match a code in either of two
attributes? It shows what a head can express, nothing of a language model. `listops`: short nested expressions, read by
two layers of 4 heads of MGK or of 8, 6, 5 or 4 of softmax, all 8 wide. softmax-5 has MGK-4's parameters, softmax-6 its
products, and softmax-4 the parameters of sMGK-4; GK is MGK with one key: the key-norm term without a mixture. Arms of a
seed see the same expressions in the same order. Each finished run is kept in --results, and an interrupted replay goes
on from there.

    python bench/replay_mgk.py [--steps 2000] [--seeds 3] [--results build/replay_mgk.json]

B batch, N tokens, C codes, W head width, M keys per token.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import t as student
from torch import Generator, Tensor, nn

from bench import listops
from bench.kept import ROOT, fill, paired
from nas.blocks import block_classes
from nas.blocks.attention import Attention
from nas.blocks.mgk import MixtureOfGaussianKeys
from nas.network import Network
from nas.options import AttentionOptions, BackboneConfig, MgkOptions, NetworkConfig, Shape, SlotConfig

N_CODES, N_TOKENS, EMBEDDING = 8, 16, 24
PROBE_STEPS, PROBE_BATCH, PROBE_TEST, PROBE_LR = 600, 16, 1000, 2e-2
PROBE_ARMS = ("softmax", "GK", "sMGK", "MGK")
PROBE_WIDTHS = (2, 3, 4, 8)

D_MODEL, HEAD_WIDTH, BATCH, LR, WARMUP = 64, 8, 64, 1e-3, 100
TRAIN, TEST = 20_000, 10_000
IGNORE = -100
MARGIN = 0.01  # accuracy that MGK-4 may lose to softmax-8 and still not be worse, fixed before the first run
ARMS: dict[str, SlotConfig] = {
    "softmax-8": SlotConfig("attention", {"n_heads": 8}),
    "softmax-6": SlotConfig("attention", {"n_heads": 6}),
    "softmax-5": SlotConfig("attention", {"n_heads": 5}),
    "softmax-4": SlotConfig("attention", {"n_heads": 4}),
    "GK-4": SlotConfig("mgk", {"n_heads": 4, "n_keys": 1}),
    "MGK-4": SlotConfig("mgk", {"n_heads": 4, "n_keys": 2}),
    "sMGK-4": SlotConfig("mgk", {"n_heads": 4, "n_keys": 2, "keys": "shifted"}),
}


class Probe(nn.Module):
    """One head that is to attend from each code, evenly, to the tokens that have it as their first or second attribute.

    Projections, keys and scores are those of our blocks; there are no values and no positions.

    Args:
        arm: one of PROBE_ARMS.
        width: W of the head.
    """

    def __init__(self, arm: str, width: int) -> None:
        super().__init__()
        shape = Shape(EMBEDDING, EMBEDDING // width, N_TOKENS, causal=False, positions="none")
        self.first, self.second, self.codes = (nn.Embedding(N_CODES, EMBEDDING) for _ in range(3))
        self.block: Attention | MixtureOfGaussianKeys
        if arm == "softmax":
            self.block = Attention(shape, AttentionOptions(n_heads=1))
        else:
            options = MgkOptions(1, n_keys=1 if arm == "GK" else 2, keys="shifted" if arm == "sMGK" else "free")
            self.block = MixtureOfGaussianKeys(shape, options)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:  # (B, N), (B, N) -> (B, C, N) log-probabilities
        seen = self.first(first) + self.second(second)
        asking = self.codes.weight.expand(len(seen), -1, -1)
        nowhere = torch.arange(0)
        q, k, _ = self.block.project(asking, seen, nowhere, nowhere)  # q (B, 1, C, W)
        if isinstance(self.block, Attention):
            scores = q @ k.mT * q.shape[-1] ** -0.5
        elif self.block.options.keys == "shifted":
            q, k, (base, rows, columns) = self.block.shifted(q, k[:, :, 0])
            nearest = (q @ k.mT + base[:, :, None])[:, :, None]
            others = nearest + rows[..., None] + columns[:, :, :, None]
            scores = torch.cat([nearest, others], dim=2).logsumexp(dim=2)
        else:
            q, slots = self.block.slots(q, k)
            scores = (q[:, :, None] @ slots.mT).logsumexp(dim=2)
        out: Tensor = scores[:, 0].log_softmax(dim=-1)
        return out


def tokens_to_find(batch: int, generator: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random attributes, each (B, N), and the attention wanted from each code, (B, C, N); zeros if no token has it."""
    first, second = torch.randint(N_CODES, (2, batch, N_TOKENS), generator=generator)
    codes = torch.arange(N_CODES)[:, None]
    having = ((first[:, None] == codes) | (second[:, None] == codes)).float()
    return first, second, having / having.sum(dim=-1, keepdim=True).clamp_min(1)


def divergence(log_attention: Tensor, wanted: Tensor) -> Tensor:
    """Mean KL of the attention from the wanted one over the codes that some token has, nats."""
    rows: Tensor = torch.special.xlogy(wanted, wanted).sum(dim=-1) - (wanted * log_attention).sum(dim=-1)
    return rows.sum() / wanted.sum()


def run_capacity(*, probe: str, arm: str, width: int, seed: int) -> dict[str, float]:
    """Fit one head by Adam, cosine to zero; what its row holds."""
    started = time.thread_time()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = Probe(arm, width)
    optimiser = torch.optim.Adam(head.parameters(), lr=PROBE_LR, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, PROBE_STEPS)
    generator = Generator().manual_seed(1000 + seed)
    for _ in range(PROBE_STEPS):
        first, second, wanted = tokens_to_find(PROBE_BATCH, generator)
        torch.autograd.backward(divergence(head(first, second), wanted))
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
    first, second, wanted = tokens_to_find(PROBE_TEST, Generator().manual_seed(2**31))
    with torch.no_grad():
        kl = float(divergence(head(first, second), wanted))
    return {"kl_nats": round(kl, 4), "seconds": round(time.thread_time() - started, 1)}


@cache
def data() -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Expressions to train and to test on, disjoint, the same at every call."""
    found = listops.expressions(TRAIN + TEST, seed=0)
    return found[:TRAIN], found[TRAIN:]


def batches(
    expressions: Sequence[tuple[int, ...]], rng: random.Random | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Each expression once, in batches of one length, so that nothing is padded; shuffled with `rng`.

    Yields:
        Tokens (B, N), and at each operator the value of its bracket, elsewhere IGNORE, (B, N).
    """
    order = list(range(len(expressions)))
    if rng:
        rng.shuffle(order)
    of_length: dict[int, list[int]] = {}
    for index in order:
        of_length.setdefault(len(expressions[index]), []).append(index)
    chunks = [same[at : at + BATCH] for same in of_length.values() for at in range(0, len(same), BATCH)]
    if rng:
        rng.shuffle(chunks)
    for chunk in chunks:
        tokens = torch.tensor([expressions[index] for index in chunk])
        wanted = torch.full_like(tokens, IGNORE)
        for row, index in enumerate(chunk):
            for place, value in listops.values(expressions[index]).items():
                if expressions[index][place] in listops.OPERATORS:
                    wanted[row, place] = value
        yield tokens, wanted


def build(arm: str, seed: int) -> Network:
    """Two layers of the arm's attention and an FFN; weights come from `seed` alone."""
    shape = Shape(D_MODEL, D_MODEL // HEAD_WIDTH, listops.Rules().shorter_than - 1, causal=False, positions="none")
    slots = (ARMS[arm], SlotConfig("ffn", {"ratio": 2})) * 2
    backbone = BackboneConfig(position_embedding="learned")
    config = NetworkConfig(shape, listops.VOCAB_SIZE, slots, backbone=backbone)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network(config, block_classes(["attention", "ffn", "mgk"]))


@torch.no_grad()
def accuracy(network: Network) -> float:
    """Share of the test expressions whose value is read rightly at their first token."""
    right = sum(
        int((network(tokens)[:, 0].argmax(dim=-1) == wanted[:, 0]).sum()) for tokens, wanted in batches(data()[1])
    )
    return right / TEST


def run_listops(*, probe: str, arm: str, seed: int, steps: int) -> dict[str, float]:
    """Train one arm by AdamW, linear warm-up and cosine to zero; what its row holds."""
    started = time.thread_time()
    network = build(arm, seed)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LR, weight_decay=0.0, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / WARMUP, 0.5 + 0.5 * math.cos(math.pi * step / steps))
    )
    rng = random.Random(seed)
    endless = (batch for _ in count() for batch in batches(data()[0], rng))
    for tokens, wanted in islice(endless, steps):
        torch.autograd.backward(F.cross_entropy(network(tokens).flatten(0, 1), wanted.flatten(), ignore_index=IGNORE))
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
    network.eval()
    first = [each for name, each in network.named_parameters() if name.startswith("slots.0.block.")]
    return {
        "accuracy": accuracy(network),
        "attention_parameters": sum(each.numel() for each in first),
        "seconds": round(time.thread_time() - started, 1),
    }


def report_listops(rows: Sequence[dict[str, Any]], seeds: Sequence[int]) -> dict[str, Any]:
    """Print the table of the arms, the lines to clear and the verdict; what the JSON line holds."""
    kept = {(row["arm"], row["seed"]): row for row in rows}
    found = {arm: np.array([kept[arm, seed]["accuracy"] for seed in seeds]) for arm in ARMS}
    lines = listops.reference_lines(*data())
    print(f"\nlistops, {rows[0]['steps']} updates of {BATCH}; test accuracy, {TEST} expressions")
    for name, value in lines.items():
        print(f"  {name:<36} {100 * value:5.1f}")
    print(f"  {'arm':<10} {'parameters':>10}  by seed; mean; minus softmax-8, and its standard error")
    for arm, values in found.items():
        mean, error = paired(list(values - found["softmax-8"]))
        shown = " ".join(f"{100 * value:5.1f}" for value in values)
        difference = "" if arm == "softmax-8" else f"{100 * mean:+.1f} +- {100 * error:.1f}"
        parameters = kept[arm, seeds[0]]["attention_parameters"]
        print(f"  {arm:<10} {parameters:>10,}  {shown}; {100 * values.mean():5.1f}; {difference}")
    lower = {}
    for arm in ("MGK-4", "softmax-4"):
        mean, error = paired(list(found[arm] - found["softmax-8"]))
        lower[arm] = float(mean - student.ppf(0.95, len(seeds) - 1) * error) if len(seeds) > 1 else -math.inf
        verdict = "not inferior" if lower[arm] > -MARGIN else "cannot tell"
        print(
            f"  {arm} - softmax-8: lower 95% bound {100 * lower[arm]:+.1f} points, margin {-100 * MARGIN:g}: {verdict}"
        )
    if lower["softmax-4"] > -MARGIN:
        print("  softmax-4 is not inferior either: this task has heads to spare, and says nothing of MGK")
    cleared = [arm for arm, values in found.items() if values.min() > max(lines.values())]
    print(f"  clear every line at every seed: {', '.join(cleared) or 'none'}")
    return {
        "lines": {name: round(value, 4) for name, value in lines.items()},
        "accuracy": {arm: [round(float(value), 4) for value in values] for arm, values in found.items()},
        "lower_bounds": {arm: round(value, 4) for arm, value in lower.items()},
    }


def report_capacity(rows: Sequence[dict[str, Any]], seeds: Sequence[int]) -> dict[str, Any]:
    """Print the table of the capacity probe; what the JSON line holds."""
    kept = {(row["arm"], row["width"], row["seed"]): row["kl_nats"] for row in rows}
    print("\ncapacity, KL in nats of the attention from the wanted one, by seed")
    print(f"  {'width':<5} {''.join(f'{arm:<18}' for arm in PROBE_ARMS)}")
    for width in PROBE_WIDTHS:
        cells = [" ".join(f"{kept[arm, width, seed]:.3f}" for seed in seeds) for arm in PROBE_ARMS]
        print(f"  {width:<5} {''.join(f'{cell:<18}' for cell in cells)}")
    return {
        f"{arm}, {width}": [kept[arm, width, seed] for seed in seeds] for arm in PROBE_ARMS for width in PROBE_WIDTHS
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000, help="updates of each listops run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "replay_mgk.json")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    seeds = range(chosen.seeds)
    probes = [
        {"probe": "capacity", "arm": arm, "width": width, "seed": seed}
        for seed in seeds
        for arm in PROBE_ARMS
        for width in PROBE_WIDTHS
    ]
    runs = [{"probe": "listops", "arm": arm, "seed": seed, "steps": chosen.steps} for seed in seeds for arm in ARMS]
    capacity = fill(chosen.results, probes, run_capacity, ("kl_nats", "seconds"))
    nested = fill(chosen.results, runs, run_listops, ("accuracy", "seconds"))
    summary = {
        "bench": "replay_mgk",
        "commits": sorted({row["commit"] for row in (*capacity, *nested)}),
        "seconds": round(sum(row["seconds"] for row in (*capacity, *nested))),
        "capacity": report_capacity(capacity, seeds),
        "listops": report_listops(nested, seeds),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
