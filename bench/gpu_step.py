"""What share of a GPU's measured matmul peak do the steps of a search reach?

Weight steps and alpha steps of a large space (d 1024, T 1024, 32 slots, bfloat16), each against the arithmetic that
the formulas of the catalogue count for it: a weight step is three forward passes of its path, an alpha step by
straight-through two of its path and one of every other candidate. The peak is that of a square bfloat16 product,
measured in the same run. Goal: 45% for weight steps. Beside it what bench/search_step.py shows on a processor: both
against derived models alone, and how the peak of memory grows from 3 to 8 candidates of the same kinds.

    python bench/gpu_step.py
    python bench/gpu_step.py --device cpu --tiny    # toy sizes in float32, to see that it runs
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from bench.search_step import ALPHA_STEPS, FEW, KINDS, MANY, alone, data, labelled, table
from nas.allocations import peak_bytes
from nas.config.request import SearchRequest
from nas.cost import flops
from nas.search import Search

GOAL = 0.45


def sized(tiny: bool, batch: int, candidates: Sequence[Any] = KINDS) -> SearchRequest:
    """The request; alpha stays where it is, and every K weight steps run each candidate of each slot once."""
    size = {"n_slots": 2, "d_model": 32, "n_heads": 2} if tiny else {"n_slots": 32, "d_model": 1024, "n_heads": 16}
    length = 32 if tiny else 1024
    endless = {"n_steps": 10**6, "settle_share": 0, "uniform_share": 1, "alpha_lr": 1e-12, "prune_steps": 0}
    method = {**endless, "batch_size": batch, "precision": "float32" if tiny else "bfloat16", "alpha_share": 0.5}
    return SearchRequest.model_validate(
        {
            "name": "gpu-step",
            "space": {**size, "max_len": length, "candidates": list(candidates)},
            "task": {"train_length": length, "serve": [{"batch": 1, "query_length": length}]},
            "method": {**method, "eval_windows": 2},
            "trials": {"n_seeds": 1},
            "retrain": {"n_steps": 10**6},
        }
    )


def seconds(run: Callable[[], object], device: str, n: int) -> float:
    """Of one run, over n in a row: a device is only waited for at both ends."""
    run()
    wait(device)
    began = time.perf_counter()
    for _ in range(n):
        run()
    wait(device)
    return (time.perf_counter() - began) / n


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def matmul_peak(device: str, size: int, dtype: torch.dtype) -> float:
    """FLOP/s of the best of five rounds of square products."""
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    return 2 * size**3 / min(seconds(lambda: a @ b, device, 10) for _ in range(5))


def forward_flops(request: SearchRequest) -> float:
    """Of a batch through a fair path, mean over the candidates, head included."""
    space, task = request.space, request.task
    each = [flops([label] * space.n_slots, space, task.train_length) for label in space.labels]
    head = 2 * task.train_length * space.d_model * task.vocab_size
    return float(request.method.batch_size * (np.mean(each) + head))


def others_flops(request: SearchRequest) -> float:
    """Of a batch through all candidates but one in each slot, forward alone."""
    space = request.space
    each = [flops([label] * space.n_slots, space, request.task.train_length) for label in space.labels]
    return float(request.method.batch_size * sum(each) * (len(each) - 1) / len(each))


def measure(request: SearchRequest, device: str, rounds: int) -> dict[str, Any]:
    """Milliseconds of both kinds of step, their arithmetic, and the memory that the larger holds."""

    def search(warmup_share: float) -> Search:
        method = request.method.model_copy(update={"warmup_share": warmup_share})
        changed = request.model_copy(update={"method": method})
        return Search(changed, parts=data(request), table=table(request), device=device)

    n = rounds * len(request.space.labels)
    weights = search(0.9)
    weight_s = seconds(weights.advance, device, n)
    del weights
    both = search(0.0)
    alpha_s = seconds(both.advance, device, n) - weight_s
    peak, _ = peak_bytes(both.advance, device)
    weights_bytes = sum(each.nbytes for each in both.weights.values())
    del both  # a model alone has the room that the search had
    model_s = [seconds(model.advance, device, rounds) for model in alone(request, device)]
    forward = forward_flops(request)
    return {
        **{"weight_ms": 1e3 * weight_s, "weight_flops": 3 * forward},
        **{"alpha_ms": 1e3 * alpha_s, "alpha_flops": 2 * forward + others_flops(request)},
        **{"activations_bytes": peak, "weights_bytes": weights_bytes},
        "model_ms": 1e3 * float(np.mean(model_s)),
    }


def step_peak(request: SearchRequest, device: str) -> int:
    """Bytes that a weight and an alpha step hold beside weights and moments, mean over a fair round."""
    each = Search(request, parts=data(request), table=table(request), device=device)
    for _ in request.space.labels:  # so that all moments stand
        each.advance()
    return int(np.mean([peak_bytes(each.advance, device)[0] for _ in request.space.labels]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="toy sizes")
    parser.add_argument("--batch", type=int, default=8, help="windows per step")
    parser.add_argument("--rounds", type=int, default=4, help="fair rounds of K steps that are timed")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("no GPU here: nothing is measured; --device cpu --tiny shows that the bench runs", file=sys.stderr)
        sys.exit(1)
    torch.set_num_threads(1)
    request = sized(arguments.tiny, arguments.batch)
    size, dtype = (256, torch.float32) if arguments.tiny else (8192, torch.bfloat16)
    peak = matmul_peak(arguments.device, size, dtype)
    found = measure(request, arguments.device, arguments.rounds)
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"
    print(f"{name}: {peak / 1e12:,.2f} TFLOP/s in a product of {size} x {size}")
    print(f"{'step':<8} {'ms':>10} {'TFLOP':>8} {'share of the peak':>18}")
    for kind in ("weight", "alpha"):
        ms, work = found[f"{kind}_ms"], found[f"{kind}_flops"]
        found[f"{kind}_share"] = work / (ms / 1e3) / peak
        goal = f", goal {GOAL:.0%}" if kind == "weight" and not arguments.tiny else ""
        print(f"{kind:<8} {ms:10.1f} {work / 1e12:8.3f} {found[f'{kind}_share']:18.1%}{goal}")
    megabytes = found["activations_bytes"] / 1e6, found["weights_bytes"] / 1e6
    print(f"a step holds {megabytes[0]:,.0f} MB at its peak beside {megabytes[1]:,.0f} MB of weights and their moments")
    of_alone = {"weight": found["weight_ms"], "whole": found["weight_ms"] + ALPHA_STEPS * found["alpha_ms"]}
    for kind, ms in of_alone.items():
        found[f"{kind}_of_models_alone"] = ms / found["model_ms"]
    told = f"{found['weight_of_models_alone']:.2f}, with alpha at 20% {found['whole_of_models_alone']:.2f}"
    print(f"a model alone takes {found['model_ms']:.1f} ms a step; a weight step of the search {told} of it")
    few, many = (
        step_peak(sized(arguments.tiny, arguments.batch, labelled(kinds)), arguments.device) for kinds in (FEW, MANY)
    )
    found["growth_from_3_to_8_candidates"] = many / few - 1
    print(f"from 3 to 8 candidates of the same kinds a step's peak grows by {many / few - 1:+.1%}")
    print(json.dumps({**found, "peak_flops_per_s": peak, "device": name, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
