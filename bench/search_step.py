"""What does a search cost beside training one model, and beside NNI 3.0 on the same blocks?

Processor seconds of this thread per weight update, alpha updates included, in one run and in turn: (a) this project's
search, with alpha steps that try every candidate (straight-through; soft) and sampled ones (two paths); (b) NNI 3.0's
GumbelDARTS on the same block modules (bench/nni_search.py), as shipped with one alpha step per weight step, and with
alpha at this project's 20%; (c) derived models alone: K stacks in which each candidate is once in each slot. Ratios are
medians over rounds, with quartiles. Peaks are of bytes allocated in a step (nas/allocations.py) above what stood
before it, that is without weights and moments; gradients count while they are there.

The first run makes an environment for NNI under build/, which takes some minutes.

    python bench/search_step.py [--rounds 5] [--no-nni]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nas.allocations import peak_bytes
from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.cost import LatencyEntry, LatencyTable, entry_key
from nas.data.parts import Parts, split
from nas.retrain import Retraining
from nas.search import Search

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / "build" / "nni"
# What NNI 3.0 (2023) still runs with; torch is this project's own.
NNI = ("nni==3.0", "pytorch_lightning==2.6.6", "numpy==1.26.4", "setuptools==80.9.0", "pydantic>=2")
ESTIMATORS = {"straight_through": "straight-through, every candidate", "soft": "soft", "two_path": "two paths"}
ALPHA_SHARE = 0.2  # the paper's; one alpha step to four weight steps
ALPHA_STEPS = ALPHA_SHARE / (1 - ALPHA_SHARE)  # per weight step
KINDS = ["attention", "ffn", "identity", "sgu", "mgk"]
FEW, MANY = ["attention", "ffn", "sgu"], ["attention", "ffn", "sgu"] * 2 + ["attention", "ffn"]
GOALS = {
    "NNI as shipped / straight-through, every candidate": (4.5, "at least"),
    "NNI as shipped / two paths": (5.5, "at least"),
    "NNI with alpha at 20% / straight-through, every candidate": (3.5, "at least"),
    "NNI with alpha at 20% / two paths": (4.0, "at least"),
    "weight step / models alone": (1.15, "at most"),
    "straight-through, every candidate / models alone": (2.0, "at most"),
    "two paths / models alone": (2.0, "at most"),
    "soft / models alone": (2.6, "at most"),
}


def sized(candidates: Sequence[Any], tiny: bool, **method: Any) -> SearchRequest:
    """The sizes of the bench, in a request whose paths and alpha steps follow each other evenly."""
    size = {"n_slots": 2, "d_model": 16, "n_heads": 2} if tiny else {"n_slots": 8, "d_model": 128, "n_heads": 4}
    length = 16 if tiny else 128
    return SearchRequest.model_validate(
        {
            "name": "search-step",
            "space": {**size, "max_len": length, "candidates": list(candidates)},
            "task": {"train_length": length, "serve": [{"batch": 1, "query_length": length}]},
            "method": {
                # Alpha stays where it is, and every K weight steps run each candidate of each slot once.
                **{"n_steps": 10**6, "batch_size": 2 if tiny else 16, "warmup_share": 0, "settle_share": 0},
                **{"uniform_share": 1, "alpha_lr": 1e-12, "alpha_share": ALPHA_SHARE, "prune_steps": 0},
                **method,
            },
            "trials": {"n_seeds": 1},
            "retrain": {"n_steps": 10**6},
        }
    )


def labelled(kinds: Sequence[str]) -> list[dict[str, str]]:
    return [{"label": f"{kind}-{number}", "block": kind} for number, kind in enumerate(kinds)]


def table(request: SearchRequest) -> LatencyTable:
    """Made up: what a step costs does not depend on it."""
    space, serve = request.space, request.task.serve[0]
    entries = {
        entry_key(each, space, serve): LatencyEntry(
            block=each.block, options=each.options, median_ms=float(each.family != "identity"), iqr_ms=0, n_runs=1
        )
        for each in space.candidates
    }
    return LatencyTable(
        device={"processor": "made up"}, serve=serve, entries=entries, offset_ms=1.0, scale=1.0,
        error_median=0, error_p95=0, n_networks=0,
    )  # fmt: skip


def data(request: SearchRequest) -> Parts:
    letters = np.random.default_rng(0).integers(97, 123, 200_000, dtype=np.uint8)
    return split(letters.tobytes(), request.task.train_length, request.method.batch_size)


def search(request: SearchRequest) -> Search:
    return Search(request, parts=data(request), table=table(request))


def alone(request: SearchRequest, device: str = "cpu") -> Iterator[Retraining]:
    """(c): K stacks in which each candidate is once in each slot, as in K fair paths; made one by one."""
    labels, n_slots = request.space.labels, request.space.n_slots
    stacks = [[labels[(first + slot) % len(labels)] for slot in range(n_slots)] for first in range(len(labels))]
    for stack in stacks:
        architecture = Architecture(tuple(stack), request.space.candidates)
        yield Retraining(request, architecture, parts=data(request), device=device)


def cpu_s(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


class Nni:
    """NNI in a process of its own, one epoch at a time."""

    def __init__(self, request: SearchRequest, n_batches: int, *, weights_only: bool) -> None:
        arguments = ["--space", request.space.model_dump_json(), "--method", request.method.model_dump_json()]
        arguments += ["--length", str(request.task.train_length), "--vocab", "256", "--batches", str(n_batches)]
        python = str(VENV / "bin" / "python")
        self.process = subprocess.Popen(
            [python, "-m", "bench.nni_search", *arguments, *(["--weights-only"] if weights_only else [])],
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True},
            cwd=VENV,  # where it keeps what it logs
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HOME": str(VENV)},
        )

    def epoch(self, peak: bool = False) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("peak\n" if peak else "time\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("answer "):
                answer: dict[str, Any] = json.loads(line.removeprefix("answer "))
                return answer
        raise RuntimeError(f"NNI ended with {self.process.wait()}; run bench/nni_search.py to see why")

    def seconds(self) -> float:
        return float(np.mean(self.epoch()["seconds"]))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def nni(request: SearchRequest, n_batches: int) -> Iterator[tuple[Nni, Nni]]:
    """As shipped, and its weight steps alone."""
    install()
    both = Nni(request, n_batches, weights_only=False), Nni(request, n_batches, weights_only=True)
    try:
        yield both
    finally:
        for each in both:
            each.close()


def install() -> None:
    """Make NNI's environment where there is none; its last file says that it is whole."""
    done = VENV / "installed"
    if done.exists():
        return
    print(f"making an environment for NNI in {VENV}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    pip = [str(VENV / "bin" / "pip"), "install", "--quiet"]
    subprocess.run([*pip, f"torch=={torch.__version__.split('+')[0]}"], check=True)
    subprocess.run([*pip, *NNI], check=True)
    done.touch()


def times(request: SearchRequest, rounds: int, steps: int, with_nni: bool) -> dict[str, list[float]]:
    """Processor seconds per weight update, a figure for each round."""
    runs: dict[str, Callable[[], object]] = {}
    updates: dict[str, int] = {}

    def repeat(advance: Callable[[], object], n: int) -> Callable[[], object]:
        return lambda: [advance() for _ in range(n)]

    warm = search(with_method(request, warmup_share=0.99))
    runs["weight step"], updates["weight step"] = repeat(warm.advance, len(KINDS)), len(KINDS)
    for estimator, name in ESTIMATORS.items():
        each = search(with_method(request, alpha_estimator=estimator))
        runs[name], updates[name] = repeat(each.advance, steps), steps
    models = list(alone(request))
    runs["models alone"] = lambda: [model.advance() for model in models]
    updates["models alone"] = len(models)
    found: dict[str, list[float]] = {name: [] for name in runs}
    if not with_nni:
        for name, run in list(runs.items()) * (rounds + 1):
            found[name].append(cpu_s(run) / updates[name])
        return {name: each[1:] for name, each in found.items()}  # the first round warms up
    found |= {"NNI as shipped": [], "NNI weight step": []}
    with nni(request, 3) as (shipped, weights):
        for _ in range(rounds + 1):
            for name, run in runs.items():
                found[name].append(cpu_s(run) / updates[name])
            found["NNI as shipped"].append(shipped.seconds())
            found["NNI weight step"].append(weights.seconds())
    found = {name: each[1:] for name, each in found.items()}
    pairs = zip(found["NNI as shipped"], found["NNI weight step"], strict=True)
    found["NNI with alpha at 20%"] = [weight + ALPHA_STEPS * (whole - weight) for whole, weight in pairs]
    return found


def with_method(request: SearchRequest, **method: Any) -> SearchRequest:
    return SearchRequest.model_validate({**request.model_dump(), "method": {**request.method.model_dump(), **method}})


def peaks(tiny: bool, with_nni: bool) -> dict[str, dict[str, float]]:
    """MB: the activation peak of a step (mean over K steps, each a weight and an alpha step), weights and moments."""
    rows = {}
    for name, kinds in (("", KINDS), (", 3 candidates", FEW), (", 8 candidates", MANY)):
        request = sized(labelled(kinds), tiny, alpha_share=0.5)
        for estimator, shown in ESTIMATORS.items():
            each = search(with_method(request, alpha_estimator=estimator))
            each.advance()  # so that moments stand
            rows[f"{shown}{name}"] = memory_row(
                [peak_bytes(each.advance)[0] for _ in range(2 * len(kinds))], each.supernet
            )
        if not name:
            models = list(alone(request))
            found = []
            for model in models:
                model.advance()
                found.append(peak_bytes(model.advance)[0])
            rows["models alone"] = memory_row(found, models[0].network)
            if with_nni:
                with nni(request, 1) as (shipped, _):
                    shipped.epoch()
                    answer = shipped.epoch(peak=True)
                weights = answer["weights"] / 1e6
                rows["NNI as shipped"] = {
                    "activations_mb": answer["peak"] / 1e6, "weights_mb": weights, "moments_mb": 2 * weights
                }  # fmt: skip
    return rows


def memory_row(found: list[int], network: torch.nn.Module) -> dict[str, float]:
    weights = sum(each.nbytes for each in network.parameters()) / 1e6
    return {"activations_mb": float(np.mean(found)) / 1e6, "weights_mb": weights, "moments_mb": 2 * weights}


def ratios(found: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    """Of each goal whose two sides were measured: quartiles over rounds of the ratio within a round."""
    rows: dict[str, dict[str, Any]] = {}
    for name, (goal, kind) in GOALS.items():
        one, other = name.split(" / ")
        if one not in found or other not in found:
            continue
        low, median, high = np.quantile(np.array(found[one]) / np.array(found[other]), [0.25, 0.5, 0.75]).tolist()
        met = median >= goal if kind == "at least" else median <= goal
        rows[name] = {"median": median, "low": low, "high": high, "goal": goal, "kind": kind, "met": met}
    return rows


def show(
    found: dict[str, list[float]], compared: dict[str, dict[str, Any]], memory: dict[str, dict[str, float]]
) -> None:
    print(f"{'processor seconds per weight update':<62} median  quartiles")
    for name, each in found.items():
        low, median, high = np.quantile(each, [0.25, 0.5, 0.75])
        print(f"{name:<62} {median:6.3f}  {low:.3f} to {high:.3f}")
    print(f"\n{'ratio':<62} median  quartiles      goal")
    for name, row in compared.items():
        goal = f"{row['kind']} {row['goal']}, {'met' if row['met'] else 'MISSED'}"
        print(f"{name:<62} {row['median']:6.2f}  {row['low']:.2f} to {row['high']:.2f}   {goal}")
    print(f"\n{'MB':<62} activations  of models alone  weights  moments")
    base = memory["models alone"]["activations_mb"]
    for name, row in memory.items():
        share = row["activations_mb"] / base
        shown = f"{row['activations_mb']:11.1f}  {share:15.2f}  {row['weights_mb']:7.1f}  {row['moments_mb']:7.1f}"
        print(f"{name:<62} {shown}")
    for name in ESTIMATORS.values():
        growth = memory[f"{name}, 8 candidates"]["activations_mb"] / memory[f"{name}, 3 candidates"]["activations_mb"]
        print(f"{name + ', from 3 to 8 candidates of the same kinds':<62} {100 * (growth - 1):+10.1f}%")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20, help="weight updates of a search in each round")
    parser.add_argument("--no-nni", action="store_true", help="this project's figures alone")
    parser.add_argument("--tiny", action="store_true", help="toy sizes, to see that it runs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = times(sized(KINDS, arguments.tiny), arguments.rounds, arguments.steps, not arguments.no_nni)
    compared = ratios(found)
    memory = peaks(arguments.tiny, not arguments.no_nni)
    show(found, compared, memory)
    print(json.dumps({"seconds": found, "ratios": compared, "memory": memory, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
