"""Is what a search finds within a budget as good as the best stack that fits? Five budgets, the enumerated table.

The latency table is stored: the additive fit to the enumerated table's own costs, so that a budget means the same on
every machine. The budgets are quantiles of what the 85 stacks of three slots cost by it. The best feasible stack is the
one with the lowest loss of the table's rows. A search answers with its best networks (`retrain.k_best`); each is
trained alone by the enumerated recipe with a seed of its own, and the best of them, as a service would take it, stands
against the best feasible one with the table's three seeds. It passes where it is worse by at most one standard error of
the paired difference. On a planted task a training that reached 0.99 has done all that was asked: its loss counts as 0.

The best of 85 was picked by its luck as well, where the table has one seed of each; that is held against the search.
Rows are kept in the folder as they come, so it may be killed.

    python -m bench.budgets [--tasks python-docs lookup] [--shares 0.1 0.3 0.5 0.7 0.9] [--seeds 1]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from bench import enumerate as enumerated
from bench import planted
from bench.kept import KEPT, fill, paired
from nas.budgets import bounds
from nas.config.request import SearchRequest, read_request
from nas.data.enumerated import EMPTY, LENGTH, N_STEPS, PLANTED, REACHED, SEEDS, STACKS, TEXT, Run, canonical, load
from nas.errors import SearchFailed
from nas.k_best import k_best
from nas.search import Search

TASKS, SHARES = (TEXT, "lookup"), (0.1, 0.3, 0.5, 0.7, 0.9)
K_BEST = 3
_CHOOSING = 3  # seed of the trainings that choose among them; the table has 0 to 2


def request_of(task: str, budget_ms: float, seed: int) -> SearchRequest:
    """The enumerated set-up with the method's defaults and a bound on latency."""
    budget = {"latency": {"ms": budget_ms}}
    if task in PLANTED:
        return read_request({**planted.request_of(task, seed).model_dump(mode="json"), "budget": budget})
    reference = enumerated.request_of(Run(task, LENGTH, EMPTY, seed)).model_dump(mode="json")
    method = {"batch_size": enumerated.TOKENS // LENGTH, "report_every": 100}
    return read_request({**reference, "budget": budget, "method": method})


def cost_of(task: str, stack: str) -> float:
    """Milliseconds of a whole network by the stored table."""
    return planted.costs_of(task)[""] + planted.cost_of(task, stack)


def budget_of(task: str, share: float) -> float:
    return float(np.quantile([cost_of(task, stack) for stack in STACKS], share))


def search(task: str, share: float, seed: int) -> dict[str, Any]:
    """One search within the budget; no stacks where it has no answer."""
    torch.set_num_threads(1)
    started, budget_ms = time.perf_counter(), budget_of(task, share)
    request = request_of(task, budget_ms, seed)
    table = planted.table_of(request)
    try:
        trial = Search(request, parts=enumerated.parts_of(request.task), table=table)
        *_, last = trial.run()
        found = k_best(request, table, last, bounds(request, table), K_BEST)
        leading = planted.letters_of(request, trial.leading_path())
    except SearchFailed as failed:
        return {"stacks": [], "leading": "", "expected_ms": None, "dual": None, "wrong": str(failed), "seconds": None}
    return {
        "stacks": [str(each) for each in found],
        "leading": leading,
        "expected_ms": last.expected_ms and round(last.expected_ms, 4),
        "dual": last.dual,
        "wrong": "",
        "seconds": round(time.perf_counter() - started, 1),
    }


def train(task: str, stack: str, seed: int) -> dict[str, Any]:
    """A stack alone; the table's own row where it has one."""
    run = Run(task, LENGTH, stack, seed)
    row = load().rows.get(run) or enumerated.train(run)
    return {"loss": loss_of(task, row.steps, row.accuracy, row.nats)}


def loss_of(task: str, steps: int, accuracy: float, nats: float) -> float:
    """Nats per scored token; 0 where a planted task was solved."""
    solved = task in PLANTED and (steps < N_STEPS or accuracy >= REACHED)
    return 0.0 if solved else nats


def best_feasible(task: str, budget_ms: float) -> str:
    """The stack with the lowest mean loss of the table's rows within a budget; of equals the cheapest."""
    table, losses = load(), {}
    for stack in STACKS:
        runs = [Run(task, LENGTH, stack, seed) for seed in SEEDS]
        rows = [table.rows[run] for run in runs if run in table.rows]
        if rows and cost_of(task, stack) <= budget_ms:
            losses[stack] = fmean(loss_of(task, row.steps, row.accuracy, row.nats) for row in rows)
    return min(losses, key=lambda stack: (losses[stack], cost_of(task, stack)))


def judge(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A search's row beside the best feasible stack: both trained alone, paired over the table's seeds."""
    task, budget_ms = row["task"], budget_of(row["task"], row["share"])
    best = best_feasible(task, budget_ms)
    if not row["stacks"]:
        return {
            **row,
            "stack": "",
            "budget_ms": budget_ms,
            "best": best,
            "difference": None,
            "se": None,
            "passed": False,
        }

    def losses(of: str, seeds: Sequence[int] = SEEDS) -> list[float]:
        wanted = [{"task": task, "stack": of, "seed": seed} for seed in seeds]
        return [each["loss"] for each in fill(folder / "trainings.json", wanted, train, ["loss"])]

    stack = min(map(canonical, row["stacks"]), key=lambda each: losses(each, [_CHOOSING]))
    pairs = zip(losses(stack), losses(best), strict=True)
    difference, se = paired([own - other for own, other in pairs])
    fits = cost_of(task, stack) <= budget_ms * (1 + 1e-9)
    return {
        **row,
        "stack": stack,
        "budget_ms": budget_ms,
        "ms": cost_of(task, stack),
        "best": best,
        "best_ms": cost_of(task, best),
        "difference": difference,
        "se": se,
        "passed": fits and difference <= se,
    }


def judged(tasks: list[str], shares: list[float], n_seeds: int, folder: Path) -> Iterator[dict[str, Any]]:
    for task in tasks:
        for seed in range(n_seeds):
            for share in shares:
                wanted = [{"task": task, "share": share, "seed": seed}]
                (row,) = fill(folder / "searches.json", wanted, search, ["stacks", "expected_ms", "seconds"])
                yield judge(row, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=[*PLANTED, TEXT])
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES), help="quantiles of the stacks' costs")
    parser.add_argument("--seeds", type=int, default=1, help="searches of each budget")
    parser.add_argument("--folder", type=Path, default=KEPT / "budgets", help="of the rows")
    arguments = parser.parse_args()
    rows = list(judged(arguments.tasks, arguments.shares, arguments.seeds, arguments.folder))
    print(
        f"{'task':<17} {'budget':>7} {'first':>6} {'derived':>8} {'ms':>6} {'expected':>8} {'best':>6} {'ms':>6}  nats"
    )
    for row in rows:
        told = row["wrong"] if row["difference"] is None else f"{row['difference']:+.4f} +- {row['se']:.4f}"
        shown = [f"{row.get(name) or float('nan'):.2f}" for name in ("ms", "expected_ms", "best_ms")]
        verdict = "passed" if row["passed"] else "FAILED"
        print(
            f"{row['task']:<17} {row['budget_ms']:>7.2f} {(row['stacks'] or [''])[0]:>6} {row['stack']:>8} "
            f"{shown[0]:>6} {shown[1]:>8} {row['best']:>6} {shown[2]:>6}  {told}  {verdict}"
        )
    passed = sum(row["passed"] for row in rows)
    print(json.dumps({"bench": "budgets", "passed": passed, "of": len(rows), "rows": rows}))


if __name__ == "__main__":
    main()
