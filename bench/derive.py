"""How long does an exact derivation take? 96 slots of 5 candidates, mixers apart, within a budget; and a whole front.

Random searches: log-probabilities of softmax(normal alpha), costs of five blocks within 10%, a budget between a third
and nine tenths of what the best stack costs without one. Each is solved in turn with a reference, one fixed
multiple-choice knapsack of the same size by scipy.optimize.milp, so that a machine's speed and its other work drop out
of the ratio; and by the integer program alone, which answers where labels are too many. Processor time of the
process and wall time are told; on an idle core they are the same.

    python -m bench.derive [--instances 40] [--points 50]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from nas.exact.front import Front, front
from nas.exact.problem import Floats, Problem, apart_steps, free_steps
from nas.exact.program import integer
from nas.exact.solve import best

N_SLOTS, CODES, MIXERS = 96, (1, 2, 0, 3, 4), (True, False, False, True, True)
COSTS = np.array([1.0, 0.6, 0.0, 0.5, 1.3])  # attention, ffn, identity, sgu, mgk
GOAL_MS, GOAL_FRONT_S = 50.0, 4.0


@dataclass(frozen=True)
class Took:
    """Processor and wall time, ms."""

    cpu: float
    wall: float


def timed(run: Callable[[], object]) -> Took:
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return Took(1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall))


def log_probabilities(seed: int) -> tuple[Floats, Floats]:
    """(L, K) of a random search, and its costs (K,)."""
    rng = np.random.default_rng(seed)
    alpha = rng.normal(size=(N_SLOTS, len(CODES)))
    scores = alpha - np.log(np.exp(alpha).sum(axis=1, keepdims=True))
    return scores, COSTS * (1 + 0.1 * rng.random(len(COSTS)))


def instance(seed: int, *, apart: bool = True, bounded: bool = True) -> Problem:
    """One random search with its constraints."""
    scores, costs = log_probabilities(seed)
    steps = apart_steps(CODES, MIXERS) if apart else free_steps(len(CODES))
    nothing = np.zeros(0)
    problem = Problem(scores, costs, CODES, np.zeros((0, len(CODES))), nothing, nothing, steps)
    if not bounded:
        return problem
    share = 1 / 3 + (0.9 - 1 / 3) * np.random.default_rng([seed, 1]).random()
    limit = share * best(problem)[0].cost
    return problem.with_row(costs, limit, 1e-9 * limit)


def reference() -> None:
    """One candidate a slot within half of the dearest stack's cost, seed 0, to optimality."""
    scores, costs = log_probabilities(0)
    one_each = LinearConstraint(np.kron(np.eye(N_SLOTS), np.ones(len(CODES))), 1, 1)
    within = LinearConstraint(np.tile(costs, N_SLOTS)[None], -np.inf, 0.5 * N_SLOTS * costs.max())
    ones = np.ones(scores.size, dtype=np.int64)
    found = milp(
        -scores.ravel(), integrality=ones, bounds=Bounds(0, 1), constraints=[one_each, within],
        options={"mip_rel_gap": 0.0},
    )  # fmt: skip
    assert found.success


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=40)
    parser.add_argument("--points", type=int, default=50)
    asked = parser.parse_args()
    reference(), best(instance(0))  # what is loaded at the first call is loaded
    names = ("reference", "best", "integer program", "10 best", "10 best, not apart")
    rows: dict[str, list[Took]] = {name: [] for name in names}
    for seed in range(asked.instances):
        problem, loose = instance(seed), instance(seed, apart=False)
        rows["reference"].append(timed(reference))
        rows["best"].append(timed(partial(best, problem)))
        rows["integer program"].append(timed(partial(integer, problem)))
        rows["10 best"].append(timed(partial(best, problem, 10)))
        rows["10 best, not apart"].append(timed(partial(best, loose, 10)))
    whole = instance(0, bounded=False)
    found: list[Front] = []
    took = timed(lambda: found.append(front(whole, whole.costs.tolist(), asked.points)))
    n_points = len(found[0].points)

    base = median(each.cpu for each in rows["reference"])
    print(f"{N_SLOTS} slots x {len(CODES)}, {asked.instances} random searches; ms of processor time")
    print(f"{'':22}{'median':>9}{'95%':>9}{'worst':>9}{'of reference':>14}{'median wall':>13}")
    summary: dict[str, object] = {"instances": asked.instances}
    for name, each in rows.items():
        cpu = [one.cpu for one in each]
        middle, wall = median(cpu), median(one.wall for one in each)
        p95 = float(np.quantile(cpu, 0.95))
        print(f"{name:22}{middle:9.1f}{p95:9.1f}{max(cpu):9.1f}{middle / base:14.2f}{wall:13.1f}")
        summary[name] = {"median_ms": round(middle, 1), "p95_ms": round(p95, 1), "wall_ms": round(wall, 1)}
    print(f"front of {n_points} points: {took.cpu / 1e3:.2f} s of processor time, {took.wall / 1e3:.2f} s wall")
    ratio = median(each.cpu for each in rows["best"]) / base
    met = {
        "median": median(each.cpu for each in rows["best"]) < GOAL_MS,
        "front": took.cpu / 1e3 < GOAL_FRONT_S and n_points == asked.points,
    }
    print(f"goals: median under {GOAL_MS:g} ms, front under {GOAL_FRONT_S:g} s of processor time: {met}")
    print(json.dumps({**summary, "ratio": round(ratio, 3), "front_s": round(took.cpu / 1e3, 2), "met": met}))


if __name__ == "__main__":
    main()
