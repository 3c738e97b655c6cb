"""Which remedy of differentiable search helps here? Each option alone against the defaults, on the planted tasks.

par-search.md section 8 lists what goes wrong and what is built in against it. What costs nothing is always on (warm-up,
fair paths, the null copies, the parsimony pass); the rest are options of `method`. For each option, task and seed: is
the derived stack right, by points 1 to 4 of bench/planted.py; how many blocks more than the fewest that do had alpha's
own leading path, before the pass; and the processor time of the search. Seeds are those of the defaults, so surpluses
are compared seed by seed. A rate of few seeds tells little: its interval stands beside it.

Set-up: that of bench/planted.py, with half of its updates by default, since with all of them the defaults are always
right and nothing could help. Rows are appended to the folder as they come, so it may be killed; what is there under the
same set-up is not made again.

    python -m bench.remedies [--remedies defaults dropout ...] [--tasks lookup ...] [--seeds 3] [--updates 1200]
    python -m bench.remedies --show
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from bench.broken import SOUND
from bench.kept import KEPT, commit, line, locked, mapping, paired
from bench.planted import METHOD, Trainings, append_new, request_of, searched, setup_of, wilson, wrong_stack
from nas.data.enumerated import EMPTY, PLANTED, RUN_COLUMNS, RUNS, Row, load

DEFAULTS = "defaults"
REMEDIES: dict[str, dict[str, Any]] = {
    DEFAULTS: {},
    "dropout": {"candidate_dropout": 0.2},  # blocks learn to stand alone
    "entropy": {"entropy_weight": 0.05},  # towards one candidate a slot at the end
    "draws": {"alpha_draws": 4},  # each gradient the mean of four
    "decay": {"alpha_decay": 0.01},  # towards equal probabilities
    "two-path": {"alpha_estimator": "two_path"},
    "warm": {"tau_end": 1.0},  # exploration to the end
    "longer-warm-up": {"warmup_share": 0.5},
    "fair": {"uniform_share": 0.9},  # the rich get less rich
    "early-stop": {"stop_when_stable": True},
}
RESULTS = "results.csv"


@dataclass(frozen=True)
class Result:
    """One search and its judgement.

    Args:
        remedy: of REMEDIES.
        task: of PLANTED.
        seed: of the search.
        setup: of all that was asked for but the seed; results of others are not comparable.
        leading: what alpha alone would take, by letters; empty where the search diverged.
        stack: derived; empty where the search had no answer.
        surplus: blocks of `leading` beyond the fewest of a stack that does; negative where it has fewer.
        steps: weight updates, the parsimony pass included.
        cpu_s: processor time of the search, without what judging took.
        wrong: what was wrong with the stack, in words; empty where it is right.
    """

    remedy: str
    task: str
    seed: int
    setup: str
    leading: str
    stack: str
    surplus: int
    steps: int
    cpu_s: float
    wrong: str


COLUMNS = tuple(field.name for field in fields(Result))


def judged(
    remedy: str, task: str, seed: int, folder: Path, method: Mapping[str, Any] = METHOD
) -> tuple[Result, list[Row]]:
    """One search with one option turned on, and the trainings that judging it had to make."""
    torch.set_num_threads(1)
    request, trainings = request_of(task, seed, {**method, **REMEDIES[remedy]}), Trainings(folder)
    began = time.process_time()
    leading, stack, records, reason = searched(SOUND, task, request)
    cpu_s = round(time.process_time() - began, 1)
    fewest = min(n_blocks(each) for each in trainings.enough(task))
    return Result(
        remedy=remedy,
        task=task,
        seed=seed,
        setup=setup_of(request),
        leading=leading,
        stack=stack,
        surplus=n_blocks(leading) - fewest,
        steps=records[-1].step if records else 0,
        cpu_s=cpu_s,
        wrong=reason or "; ".join(wrong_stack(task, stack, seed, trainings)),
    ), trainings.made


def n_blocks(stack: str) -> int:
    return len(stack.replace(EMPTY, ""))


def results_in(folder: Path) -> list[Result]:
    """What the folder keeps, in the order it came."""
    path = folder / RESULTS
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Result(
                remedy=row["remedy"], task=row["task"], seed=int(row["seed"]), setup=row["setup"],
                leading=row["leading"], stack=row["stack"], surplus=int(row["surplus"]), steps=int(row["steps"]),
                cpu_s=float(row["cpu_s"]), wrong=row["wrong"],
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def fill(
    folder: Path,
    remedies: Sequence[str],
    tasks: Sequence[str],
    n_seeds: int,
    method: Mapping[str, Any] = METHOD,
    n_workers: int = 1,
) -> None:
    """Run what is missing, seed by seed over all tasks and remedies, and append what comes of it."""
    with locked(folder / RESULTS, COLUMNS) as results, locked(folder / RUNS, RUN_COLUMNS) as trainings:
        there = {(each.remedy, each.task, each.seed, each.setup) for each in results_in(folder)}
        known = set(load(folder).rows)
        wanted = [
            (remedy, task, seed, folder, method)
            for seed, task, remedy in product(range(n_seeds), tasks, remedies)
            if (remedy, task, seed, setup_of(request_of(task, seed, {**method, **REMEDIES[remedy]}))) not in there
        ]
        with mapping(n_workers) as run:
            for result, rows in run(_judge, wanted):
                append_new(trainings, rows, known)
                os.write(results, line([str(getattr(result, name)) for name in COLUMNS]).encode())
                print(
                    f"{result.remedy} {result.task} seed {result.seed}: {result.leading or '-'} -> "
                    f"{result.stack or '-'}, {result.cpu_s:.0f} s, {result.wrong or 'right'}",
                    flush=True,
                )


def _judge(wanted: tuple[str, str, int, Path, Mapping[str, Any]]) -> tuple[Result, list[Row]]:
    return judged(*wanted)


def show(
    folder: Path, remedies: Sequence[str], tasks: Sequence[str], n_seeds: int, method: Mapping[str, Any] = METHOD
) -> None:
    """A row a remedy over all tasks and seeds, and one line of JSON."""
    kept = [
        each
        for each in results_in(folder)
        if each.seed < n_seeds
        and each.task in tasks
        and each.setup == setup_of(request_of(each.task, 0, {**method, **REMEDIES[each.remedy]}))
    ]
    defaults = {(each.task, each.seed): each for each in kept if each.remedy == DEFAULTS}
    print(
        f"\n{len(tasks)} tasks, at most {n_seeds} seeds each (commit {commit()}); surplus: blocks too many, alpha alone"
    )
    print(f"{'remedy':<15} {'right':>7} {'95% interval':>14} {'surplus':>8} {'less defaults':>16} {'CPU s':>7}")
    summary = {}
    for remedy in remedies:
        found = [each for each in kept if each.remedy == remedy]
        if not found:
            print(f"{remedy:<15} {'-':>7}")
            continue
        right, n = sum(not each.wrong for each in found), len(found)
        low, high = wilson(right, n)
        beside = [(each, defaults.get((each.task, each.seed))) for each in found]
        differences = [each.surplus - other.surplus for each, other in beside if other is not None]
        mean, error = paired(differences) if len(differences) > 1 else (None, None)
        surplus, cpu_s = fmean(each.surplus for each in found), fmean(each.cpu_s for each in found)
        told = "-" if mean is None or remedy == DEFAULTS else f"{mean:+.2f} +- {error:.2f}"
        rate = f"{f'{right}/{n}':>7} {f'{low:.2f} to {high:.2f}':>14}"
        print(f"{remedy:<15} {rate} {surplus:>8.2f} {told:>16} {cpu_s:>7.0f}")
        summary[remedy] = {
            "right": right,
            "n": n,
            "low": round(low, 4),
            "high": round(high, 4),
            "surplus": round(surplus, 3),
            "surplus_less_defaults": mean,
            "se": error,
            "cpu_s": round(cpu_s, 1),
        }
    print(json.dumps({"bench": "remedies", "commit": commit(), "tasks": list(tasks), "remedies": summary}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--remedies", nargs="+", choices=REMEDIES, default=list(REMEDIES), metavar="NAME", help=", ".join(REMEDIES)
    )
    parser.add_argument("--tasks", nargs="+", choices=PLANTED, default=list(PLANTED), metavar="TASK")
    parser.add_argument("--seeds", type=int, default=3, help="searches of each remedy and task")
    parser.add_argument("--updates", type=int, default=1200, help="of a search, before its parsimony pass")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--folder", type=Path, default=KEPT / "remedies", help="of what is kept")
    parser.add_argument("--show", action="store_true", help="print what is there")
    read = parser.parse_args()
    method = {**METHOD, "n_steps": read.updates}
    if not read.show:
        fill(read.folder, read.remedies, read.tasks, read.seeds, method, read.workers)
    show(read.folder, read.remedies, read.tasks, read.seeds, method)


if __name__ == "__main__":
    main()
