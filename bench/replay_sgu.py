"""gMLP's gating ablation, replayed small: does each step of the published order show at this size?

Liu et al. 2021 (arXiv:2105.08050), the ablation of the gate, as byte-level masked LM on Python's own sources: width 32,
32 bytes, 4 blocks, Toeplitz weights, with the controls the paper lacks: a split gate of equal weight, and another start
of the linear gate. Variants of a seed see the same crops and masks. Each finished run is kept in --results, and an
interrupted replay goes on from there.

    python bench/replay_sgu.py [--steps 500] [--seeds 3] [--lr 4e-3 2e-3 8e-3] [--results build/replay_sgu.json]

B batch, T bytes, V vocabulary.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from bench.kept import ROOT, fill, paired
from nas.blocks import block_classes
from nas.blocks.base import Block
from nas.blocks.sgu import SpatialGatingUnit
from nas.data.corpora import read_corpus
from nas.network import Network
from nas.options import BackboneConfig, NetworkConfig, SguOptions, Shape, SlotConfig

WIDTH, LENGTH, DEPTH, HEADS, BATCH = 32, 32, 4, 4, 64
VOCAB_SIZE, MASK = 128, 0  # ASCII; byte 0 does not occur in text
TUNING_BATCHES, TEST_BATCHES = 20, 40


@dataclass(frozen=True)
class ExactOptions(SguOptions):
    """An expanded width that is no multiple of D: e = 170 makes the split gate weigh what e = 128 does without it."""

    width: int = 170

    def expanded(self, shape: Shape) -> int:
        return self.width


class ExactSgu(SpatialGatingUnit):
    """The same block at `ExactOptions`."""

    Options = ExactOptions


@dataclass(frozen=True)
class Variant:
    """One row of the table.

    Args:
        slots: of the network.
        positions: inside attention.
        position_embedding: added to the bytes' embeddings.
        prepare: changes the fresh network, to start it elsewhere.
    """

    slots: tuple[SlotConfig, ...]
    positions: str = "none"
    position_embedding: str = "none"
    prepare: Callable[[Network], None] = lambda network: None


def gated(gate: str, ratio: int = 4) -> tuple[SlotConfig, ...]:
    return (SlotConfig("sgu", {"gate": gate, "ratio": ratio, "spatial": "toeplitz"}),) * DEPTH


def transformer(positions: str | None = None) -> tuple[SlotConfig, ...]:
    return (SlotConfig("attention", {"positions": positions}), SlotConfig("ffn")) * 2


def start_mixed(network: Network) -> None:
    """The control of the linear gate: W ~ N(0, 1/T) and no bias, so that it mixes from the first step."""
    for module in network.modules():
        if isinstance(module, SpatialGatingUnit):
            nn.init.normal_(module.weight, std=LENGTH**-0.5)
            nn.init.zeros_(module.bias)


VARIANTS = {
    "per-token FFN": Variant((SlotConfig("ffn"),) * DEPTH),
    "linear": Variant(gated("linear")),
    "linear, mixing from the start": Variant(gated("linear"), prepare=start_mixed),
    "additive": Variant(gated("additive")),
    "multiplicative": Variant(gated("multiplicative")),
    "split, equal weights": Variant((SlotConfig("sgu_exact", {"gate": "split", "spatial": "toeplitz"}),) * DEPTH),
    "split, paper's ratio": Variant(gated("split", ratio=6)),
    "attention, relative bias only": Variant(transformer("relative_bias_only"), positions="relative_bias"),
    "attention, relative bias": Variant(transformer(), positions="relative_bias"),
    "attention, learned positions": Variant(transformer(), position_embedding="learned"),
}
# The steps of the published order, each (worse, better) there, then two that the paper does not settle.
STEPS = (
    ("per-token FFN", "linear"),
    ("linear", "additive"),
    ("additive", "multiplicative"),
    ("multiplicative", "split, equal weights"),
    ("split, equal weights", "split, paper's ratio"),
    ("linear, mixing from the start", "linear"),
    ("attention, relative bias only", "attention, relative bias"),
    ("attention, learned positions", "attention, relative bias"),
)


def build(variant: Variant, seed: int) -> Network:
    """A fresh network whose weights come from `seed` alone."""
    shape = Shape(WIDTH, HEADS, LENGTH, causal=False, positions=variant.positions)
    backbone = BackboneConfig(position_embedding=variant.position_embedding)  # type: ignore[arg-type]
    config = NetworkConfig(shape, VOCAB_SIZE, variant.slots, backbone=backbone)
    classes: dict[str, type[Block]] = {**block_classes(["attention", "ffn", "sgu"]), "sgu_exact": ExactSgu}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Network(config, classes)
        variant.prepare(network)
    return network


def read_text() -> tuple[Tensor, Tensor, Tensor]:
    """Bytes to train on, to choose the learning rate by, and to report on: 90%, 5% and 5%, in the order of the text."""
    text = np.frombuffer(read_corpus("python-stdlib"), dtype=np.uint8)
    text = text[(text < VOCAB_SIZE) & (text != MASK)]
    train, tuning, test = np.split(text, [len(text) * 90 // 100, len(text) * 95 // 100])
    return torch.from_numpy(train), torch.from_numpy(tuning), torch.from_numpy(test)


def masked_crops(text: Tensor, generator: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random crops with 15% of the bytes to guess: of these 80% are masked, 10% replaced by any byte, 10% left.

    Returns:
        Inputs, targets, and whether a byte is to be guessed, each (B, T).
    """
    starts = torch.randint(len(text) - LENGTH + 1, (BATCH, 1), generator=generator)
    targets = text[starts + torch.arange(LENGTH)].long()
    chosen = torch.rand(targets.shape, generator=generator) < 0.15
    fate = torch.rand(targets.shape, generator=generator)
    replaced = torch.randint(1, VOCAB_SIZE, targets.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), MASK, targets)
    inputs = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), replaced, inputs)
    return inputs, targets, chosen


def loss_of(network: Network, inputs: Tensor, targets: Tensor, chosen: Tensor) -> Tensor:
    """Mean nats of the bytes to guess."""
    return F.cross_entropy(network(inputs)[chosen].float(), targets[chosen])


@torch.no_grad()
def evaluate(network: Network, text: Tensor, batches: int) -> float:
    """Mean nats per guessed byte over the same crops and masks at every call."""
    generator = Generator().manual_seed(2**31)
    network.eval()
    losses = [loss_of(network, *masked_crops(text, generator)).item() for _ in range(batches)]
    network.train()
    return float(np.mean(losses))


def train(network: Network, text: Tensor, *, steps: int, lr: float, seed: int) -> None:
    """AdamW with a tenth of the steps as warm-up, then a straight line to zero; decay on matrices only."""
    matrices = [each for each in network.parameters() if each.ndim >= 2]
    vectors = [each for each in network.parameters() if each.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=lr, eps=1e-6, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / (steps / 10), (steps - step) / (steps * 0.9))
    )
    generator = Generator().manual_seed(1000 + seed)  # of crops and masks: the same for all variants of a seed
    for _ in range(steps):
        torch.autograd.backward(loss_of(network, *masked_crops(text, generator)))
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)


def run(texts: tuple[Tensor, Tensor, Tensor], *, variant: str, steps: int, lr: float, seed: int) -> dict[str, float]:
    """Train one variant; what its row holds."""
    text, tuning, test = texts
    started = time.thread_time()
    network = build(VARIANTS[variant], seed)
    train(network, text, steps=steps, lr=lr, seed=seed)
    return {
        "parameters": sum(each.numel() for each in network.parameters()),
        "tuning_nats": round(evaluate(network, tuning, TUNING_BATCHES), 4),
        "test_nats": round(evaluate(network, test, TEST_BATCHES), 4),
        "seconds": round(time.thread_time() - started, 1),
    }


def report(rows: Sequence[dict[str, Any]], seeds: Sequence[int], rates: Sequence[float]) -> dict[str, Any]:
    """Print the tables; what the JSON line holds."""
    kept = {(row["variant"], row["lr"], row["seed"]): row for row in rows}
    best = {
        name: min(rates, key=lambda lr: sum(kept[name, lr, seed]["tuning_nats"] for seed in seeds)) for name in VARIANTS
    }

    def nats(name: str, lr: float) -> NDArray[np.float64]:  # by seed
        return np.array([kept[name, lr, seed]["test_nats"] for seed in seeds])

    print(f"\n{'variant':<30} {'parameters':>10} {'lr':>6}  test nats per guessed byte, by seed; mean")
    for name, lr in best.items():
        shown = " ".join(f"{value:.3f}" for value in nats(name, lr))
        parameters = kept[name, lr, seeds[0]]["parameters"]
        print(f"{name:<30} {parameters:>10,} {lr:>6g}  {shown}; {nats(name, lr).mean():.3f}")
    print("\nfirst minus second, nats: mean of the pairs, each at its own rate, and its standard error; at equal rates")
    steps = []
    for worse, better in STEPS:
        mean, error = paired(list(nats(worse, best[worse]) - nats(better, best[better])))
        at_rates = [float((nats(worse, lr) - nats(better, lr)).mean()) for lr in rates]
        agreed = all(each * mean > 0 for each in at_rates)
        verdict = "separated" if abs(mean) > 2 * error and agreed else "not separated"
        others = " ".join(f"{value:+.3f}" for value in at_rates)
        print(f"{worse:>30} - {better:<26} {mean:+.3f} +- {error:.3f}  {others}  {verdict}")
        step = {"first": worse, "second": better, "mean": round(mean, 4), "se": round(error, 4)}
        steps.append({**step, "at_equal_rates": [round(value, 4) for value in at_rates], "verdict": verdict})
    return {
        "bench": "replay_sgu",
        "commits": sorted({row["commit"] for row in rows}),
        "seconds": round(sum(row["seconds"] for row in rows)),
        "best_rate": best,
        "mean_nats": {name: round(float(nats(name, lr).mean()), 4) for name, lr in best.items()},
        "steps": steps,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lr", type=float, nargs="+", default=[4e-3, 2e-3, 8e-3])
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "replay_sgu.json")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    seeds = range(chosen.seeds)
    wanted = [
        {"variant": name, "lr": lr, "seed": seed, "steps": chosen.steps}
        for lr in chosen.lr
        for seed in seeds
        for name in VARIANTS
    ]
    rows = fill(chosen.results, wanted, partial(run, read_text()), ("test_nats", "seconds"))
    print(json.dumps(report(rows, seeds, chosen.lr)))


if __name__ == "__main__":
    main()
