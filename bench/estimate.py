"""Is a trial's estimate what the trial then takes? Goal: memory and time within 15%.

Four requests are estimated (nas/estimate.py) and then run to their end. Time is the processor's, of one thread, so
that what else runs on the machine is left out of both; it is of all phases but the parsimony pass. Memory is what the
trial itself held beside its weights (nas/allocations.py), in the first steps of its search phase, a tenth of all,
moments included, and in each comparison of its parsimony pass, where it has one.

    python bench/estimate.py
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch

from bench.search_step import data, sized, table
from nas.allocations import peak_bytes
from nas.estimate import estimate
from nas.search import Search

STEPS = 1000  # about the fewest that a trial of five candidates must have to be estimated
REQUESTS: dict[str, dict[str, Any]] = {
    "straight-through, 4 slots": {"n_slots": 4, "alpha_estimator": "straight_through"},
    "two paths, in passes of 4 rows": {"n_slots": 4, "alpha_estimator": "two_path", "micro_batch": 4},
    "soft, 2 slots, d 64": {"n_slots": 2, "d_model": 64, "alpha_estimator": "soft"},
    "4 slots, batch 2, with the pass": {"n_slots": 4, "batch_size": 2, "prune_steps": 8, "prune_windows": 32},
}


def row(space: dict[str, Any], method: dict[str, Any]) -> dict[str, float]:
    """Bytes and seconds, estimated and measured."""
    base = sized(["attention", "ffn", "identity", "sgu", "mgk"], False)
    steps = {"n_steps": STEPS, "warmup_share": 0.33, "settle_share": 0.1, "uniform_share": 0.5, "eval_windows": 16}
    whole = base.model_dump()
    whole["space"] |= space
    whole["method"] |= {**steps, **method}
    request = type(base).model_validate(whole).resolve({}, 0)
    parts, costs = data(request), table(request)
    began = time.process_time()
    found = estimate(request, parts, costs, clock=time.process_time)
    took = time.process_time() - began
    search = Search(request, parts=parts, table=costs)
    seconds, held = 0.0, 0
    began = time.process_time()
    for record in search.run():
        if record.phase != "prune":
            seconds = time.process_time() - began
        if search.step >= search.end and search.pruning is not None:
            break
    while search.pruning is not None and not search.done:
        held = max(held, peak_bytes(search.advance)[0])
    weights = sum(each.nbytes for each in search.weights.values())
    assert search.pruning is None or not search.optimiser.state
    again = Search(request, parts=parts, table=costs)
    for _ in range(request.method.warmup_steps):
        again.advance()
    for _ in range(STEPS // 10):
        held = max(held, 2 * weights + peak_bytes(again.advance)[0])
    return {
        **{"estimated_bytes": found.memory_bytes, "bytes": weights + held},
        **{"estimated_seconds": found.seconds, "seconds": seconds, "estimating_seconds": took},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    torch.set_num_threads(1)
    rows = {}
    print(f"{'request':<34} MB estimated  measured   ratio   s estimated  measured   ratio   s to estimate")
    for name, options in REQUESTS.items():
        space = {key: value for key, value in options.items() if key in ("n_slots", "d_model")}
        found = row(space, {key: value for key, value in options.items() if key not in space})
        rows[name] = found
        memory, seconds = found["estimated_bytes"] / found["bytes"], found["estimated_seconds"] / found["seconds"]
        print(
            f"{name:<34} {found['estimated_bytes'] / 1e6:12.1f}  {found['bytes'] / 1e6:8.1f}  {memory:6.2f}"
            f"  {found['estimated_seconds']:12.1f}  {found['seconds']:8.1f}  {seconds:6.2f}"
            f"  {found['estimating_seconds']:14.1f}",
            flush=True,
        )
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
