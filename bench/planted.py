"""Does a search find what is known to be right? Planted tasks, N seeds of the whole engine, rates with intervals.

In each task one mix of tokens helps (docs/tasks.md), and the enumerated table tells how all stacks of three slots do
alone, so a search can be told right from wrong. A seed passes when

1. the derived stack, trained alone by the enumerated recipe, reaches 0.99;
2. none of its mixers can be deleted: what is left, trained likewise, does not reach it;
3. by the stored costs it takes at most one FFN more than the cheapest stack that reaches it, of those in the table
   that the part's slots may hold;
4. on `token-wise` no mixer is left; on `shift-then-match` a mixer stands before a content mixer, and it is not `AS`;
5. the search's records say what was asked for: fair paths and a frozen alpha in warm-up, a temperature that falls.

Three more parts see what the four tasks cannot: `layout` (shift-then-match where slots differ in what they may hold),
`budget` (offset under a latency bound that the expected cost must have come down to by itself), and `few` (token-wise,
half of its answers wrong, in 256 windows that the weights can learn by heart; any block is a loss on other data).

Set-up: that of bench/enumerate.py (T 64, D 64, positions by task, 2,048 tokens a batch, constant rate) and the method's
defaults; what is not default stands in METHOD, the same for all. Latencies are an additive fit to the stored costs.
Retraining has the seeds of the table: the search's modulo 3. Rows are appended to the folder as they come, so it may
be killed; what is there under the same set-up is not made again.

    python -m bench.planted [--seeds 10 | --nightly] [--tasks lookup ...] [--workers 2]
    python -m bench.planted --broken sign-flipped          one of the engines of bench/broken.py, which must fail
    python -m bench.planted --show
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator

from bench import enumerate as enumerated
from bench.broken import ENGINES, SOUND
from bench.kept import KEPT, commit, line, locked, mapping
from nas.budgets import bounds
from nas.config.request import SearchRequest, read_request
from nas.config.task import DataSizes, Task
from nas.cost import LatencyEntry, LatencyTable, entry_key
from nas.data.enumerated import (
    EMPTY,
    LENGTH,
    LETTERS,
    N_STEPS,
    PLANTED,
    REACHED,
    RUN_COLUMNS,
    RUNS,
    SEEDS,
    STACKS,
    Row,
    Run,
    canonical,
    load,
    to_values,
)
from nas.data.objectives import Batch
from nas.data.parts import Parts
from nas.data.synthetic.generated import synthetic_fingerprint, synthetic_parts
from nas.derive import derive_record
from nas.errors import SearchFailed
from nas.heads import IGNORE
from nas.steps import StepRecord

EXTRA = {"layout": "shift-then-match", "budget": "offset", "few": "token-wise"}  # the tasks that they are made of
PARTS = (*PLANTED, *EXTRA)
METHOD: dict[str, Any] = {"batch_size": enumerated.TOKENS // LENGTH, "lr_schedule": "constant", "report_every": 100}
# No slot may stand in for another: S, then A or M. Were A allowed twice, AA would do whatever alpha says (measured).
LAYOUT = [{"forbidden": ["attention", "mgk"]}, {"forbidden": ["sgu"]}, {"forbidden": ["attention", "mgk", "sgu"]}]
BUDGET_MS, OVER = 2.0, 1.1  # of a network; the expected cost may be over by this factor
FEW_WINDOWS, WRONG = 256, 0.5
MIXERS, CONTENT = "ASM", "AM"
RESULTS = "results.csv"
_FINE = 1e-6  # of sums of floats


@dataclass(frozen=True)
class Result:
    """One search and its judgement.

    Args:
        engine: of bench/broken.py.
        part: of PARTS.
        seed: of the search.
        setup: of everything asked for but the seed; results of others are not comparable.
        leading: what alpha alone would take, by letters, "." for identity.
        stack: derived; empty where the search had no answer.
        steps: weight updates, the parsimony pass included.
        seconds: wall time on a busy machine.
        passed: whether nothing was wrong.
        wrong: what was, in words.
    """

    engine: str
    part: str
    seed: int
    setup: str
    leading: str
    stack: str
    steps: int
    seconds: float
    passed: bool
    wrong: str


COLUMNS = tuple(field.name for field in fields(Result))


# -- the set-up -------------------------------------------------------------------------------------------------------


def request_of(part: str, seed: int, method: Mapping[str, Any] = METHOD) -> SearchRequest:
    """The request of a part.

    Args:
        part: of PARTS.
        seed: of the search.
        method: what is not default.
    """
    task = EXTRA.get(part, part)
    reference = enumerated.request_of(Run(task, LENGTH, EMPTY, seed))
    asked = {
        "name": "planted",
        "space": {**reference.space.model_dump(), "layout": LAYOUT if part == "layout" else []},
        "task": {
            "objective": "token_classification",
            "dataset": task,
            "train_length": LENGTH,
            "serve": [{"batch": enumerated.LATENCY_BATCH, "query_length": LENGTH}],
        },
        "method": method,
        "budget": {"latency": {"ms": BUDGET_MS}} if part == "budget" else {},
        "trials": {"seed": seed, "n_seeds": 1},
    }
    request = read_request(asked)
    options = request.task.synthetic_options()
    sizes = DataSizes(vocab_size=options.vocab_size, n_classes=options.n_classes)
    return request.with_data(synthetic_fingerprint(request.task), sizes)


def setup_of(request: SearchRequest) -> str:
    """Eight hexadecimal digits of all that is asked for but the seed."""
    asked = request.model_dump(mode="json", exclude={"trials"})
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]


def parts_of(part: str, task: Task) -> Parts:
    parts = synthetic_parts(task)
    if part != "few":
        return parts
    source = Generator().manual_seed(0)
    batch = parts.weights.batch(task, FEW_WINDOWS, source)
    wrong = (torch.rand(batch.targets.shape, generator=source) < WRONG) & (batch.targets != IGNORE)
    drawn = torch.randint(task.synthetic_options().n_classes, batch.targets.shape, generator=source)
    few = Few(Batch(batch.tokens, torch.where(wrong, drawn, batch.targets), batch.key_padding))
    return Parts(weights=few, alpha=parts.alpha, validation=parts.validation, test=parts.test, training=few)


@dataclass(frozen=True, eq=False)
class Few:
    """A part of a few examples, as `nas.data.parts.Part`."""

    examples: Batch

    def batch(self, task: Task, n: int, generator: Generator) -> Batch:
        return self.examples.rows(torch.randint(len(self.examples.tokens), (n,), generator=generator))

    def held_out(self, task: Task, n: int) -> Batch:
        return self.examples.rows(slice(0, n))


@cache
def costs_of(task: str) -> dict[str, float]:
    """Milliseconds that each letter adds to a network, and by "" those of the empty one: an additive fit to the stored
    costs of all 85 stacks, whose single rows are too rough."""
    stored = load().costs
    counts = [[1.0, *(canonical(stack).count(letter) for letter in LETTERS)] for stack in STACKS]
    measured = [stored[task, LENGTH, stack].latency_ms for stack in STACKS]
    solved, *_ = np.linalg.lstsq(np.array(counts), np.array(measured), rcond=None)
    return {letter: float(cost) for letter, cost in zip(("", *LETTERS), solved, strict=True)}


def cost_of(task: str, stack: str) -> float:
    """Milliseconds of a stack's blocks."""
    return sum(costs_of(task)[letter] for letter in stack.replace(EMPTY, ""))


def table_of(request: SearchRequest) -> LatencyTable:
    """The stored costs as the search's own table."""
    costs, serve = costs_of(request.task.dataset), request.task.serve[0]
    entries = {
        entry_key(each, request.space, serve): LatencyEntry(
            block=each.block, options=each.options, median_ms=costs.get(each.letter, 0.0), iqr_ms=0, n_runs=1
        )
        for each in request.space.candidates
    }
    return LatencyTable(
        device={"processor": "that of the stored costs"}, serve=serve, entries=entries, offset_ms=costs[""], scale=1.0,
        error_median=0, error_p95=0, n_networks=0,
    )  # fmt: skip


# -- searching --------------------------------------------------------------------------------------------------------


def letters_of(request: SearchRequest, path: Sequence[int]) -> str:
    return "".join(request.space.candidates[choice].letter for choice in path)


def searched(engine: str, part: str, request: SearchRequest) -> tuple[str, str, list[StepRecord], str]:
    """Run one engine to its end.

    Returns:
        What alpha alone would take and the derived stack, by letters; the records; why there is no stack, or "".
    """
    table = table_of(request)
    made = ENGINES[engine](request, parts_of(part, request.task), table)
    if isinstance(made, str):
        return made, made, [], ""
    try:
        records = list(made.run())
    except SearchFailed as failed:
        return "", "", [], str(failed)
    leading = letters_of(request, made.leading_path())
    try:
        derived = derive_record(made.request, table, records[-1], bounds(made.request, table))
    except SearchFailed as failed:
        return leading, "", records, str(failed)
    return leading, str(derived), records, ""


# -- judging ----------------------------------------------------------------------------------------------------------


class Trainings:
    """Whether stacks reach the accuracy alone: by the enumerated table, by what the folder keeps, or trained now."""

    def __init__(self, folder: Path) -> None:
        self.table = load()
        self.rows = {**self.table.rows, **load(folder).rows}
        self.made: list[Row] = []

    def reaches(self, task: str, stack: str, seed: int) -> bool:
        run = Run(task, LENGTH, canonical(stack), SEEDS[seed % len(SEEDS)])
        if run not in self.rows:
            self.rows[run] = enumerated.train(run)
            self.made.append(self.rows[run])
        return _reached(self.rows[run])

    def enough(self, part: str) -> frozenset[str]:
        """The stacks of the table that reach it, of those that the part's slots may hold, whatever their seed."""
        task = EXTRA.get(part, part)
        reached = {
            run.stack
            for run, row in self.table.rows.items()
            if (run.task, run.length) == (task, LENGTH) and _reached(row)
        }
        return held_by(part) & reached

    def cheapest(self, part: str) -> float:
        """Milliseconds of the cheapest of them."""
        return min(cost_of(EXTRA.get(part, part), stack) for stack in self.enough(part))


@cache
def held_by(part: str) -> frozenset[str]:
    """The stacks, as the table writes them, that the part's slots may hold."""
    space = request_of(part, 0).space
    letters = [[each.letter for each, may in zip(space.candidates, row, strict=True) if may] for row in space.allowed]
    return frozenset(canonical("".join(word)) for word in product(*letters))


def _reached(row: Row) -> bool:
    """As the training itself saw it: it ends early where its validation examples are answered at 0.99."""
    return row.steps < N_STEPS or row.accuracy >= REACHED


def wrong_stack(part: str, stack: str, seed: int, trainings: Trainings) -> list[str]:
    """What is wrong with a derived stack, in words; points 1 to 4 of the module's docstring."""
    task, wrong = EXTRA.get(part, part), []
    blocks = stack.replace(EMPTY, "")
    if not trainings.reaches(task, stack, seed):
        wrong.append(f"{canonical(stack)} does not reach {REACHED}")
    else:
        without = {
            canonical(blocks[:place] + blocks[place + 1 :]): None
            for place, letter in enumerate(blocks)
            if letter in MIXERS
        }
        wrong += [f"{rest} does as well" for rest in without if trainings.reaches(task, rest, seed)]
    taken, least = cost_of(task, stack), trainings.cheapest(part)
    if taken > least + costs_of(task)["F"] + _FINE:
        wrong.append(f"costs {taken:.2f} ms, {least:.2f} would do")
    mixers = "".join(letter for letter in blocks if letter in MIXERS)
    if task == "token-wise" and mixers:
        wrong.append(f"mixers {mixers} are left")
    if task == "shift-then-match" and (mixers == "AS" or not any(letter in CONTENT for letter in mixers[1:])):
        wrong.append("no mixer before a content mixer")
    return wrong


def wrong_records(request: SearchRequest, records: Sequence[StepRecord]) -> list[str]:
    """What the records say that was not asked for; point 5."""
    method, wrong = request.method, []
    warm = [each for each in records if 0 < each.step <= method.warmup_steps]
    if not warm or any(not _even(each) for each in warm):
        wrong.append("warm-up is not fair, or alpha not frozen")
    taus = [each.tau for each in records if each.tau is not None]
    falls = all(later <= earlier for earlier, later in pairwise(taus))
    if not (falls and math.isclose(taus[0], method.tau_start) and math.isclose(taus[-1], method.tau_end)):
        wrong.append(
            f"tau goes from {taus[0]:.2g} to {taus[-1]:.2g}, not {method.tau_start:.2g} to {method.tau_end:.2g}"
        )
    if request.budget.latency is not None:
        expected = [each.expected_ms for each in records if each.phase == "search"][-1]
        if expected is not None and expected > OVER * BUDGET_MS:
            wrong.append(f"alpha expects {expected:.2f} ms, the bound is {BUDGET_MS:.2f}")
    return wrong


def _even(record: StepRecord) -> bool:
    assert record.updates is not None
    assert record.probabilities is not None
    trained = [
        [count for count, share in zip(*rows, strict=True) if share > 0]
        for rows in zip(record.updates, record.probabilities, strict=True)
    ]
    shares = [[share for share in row if share > 0] for row in record.probabilities]
    return all(max(row) - min(row) <= 1 for row in trained) and all(max(row) - min(row) < _FINE for row in shares)


def judged(engine: str, part: str, seed: int, folder: Path) -> tuple[Result, list[Row]]:
    """One search, and what is wrong with it; with the trainings that had to be made."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    request, trainings = request_of(part, seed), Trainings(folder)
    leading, stack, records, reason = searched(engine, part, request)
    wrong = [reason] if reason else wrong_stack(part, stack, seed, trainings)
    wrong += wrong_records(request, records) if records else []
    return Result(
        engine=engine,
        part=part,
        seed=seed,
        setup=setup_of(request),
        leading=leading,
        stack=stack,
        steps=records[-1].step if records else 0,
        seconds=round(time.perf_counter() - started, 1),
        passed=not wrong,
        wrong="; ".join(wrong),
    ), trainings.made


def wilson(passed: int, n: int) -> tuple[float, float]:
    """95% interval of a rate (Wilson 1927): it is not empty at 0 and 1."""
    z = 1.959964
    centre, spread = passed + z * z / 2, z * math.sqrt(passed * (n - passed) / n + z * z / 4)
    return (centre - spread) / (n + z * z), (centre + spread) / (n + z * z)


# -- rows that are kept -----------------------------------------------------------------------------------------------


def results_in(folder: Path) -> list[Result]:
    """What the folder keeps, in the order it came."""
    path = folder / RESULTS
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Result(
                engine=row["engine"], part=row["part"], seed=int(row["seed"]), setup=row["setup"],
                leading=row["leading"], stack=row["stack"], steps=int(row["steps"]), seconds=float(row["seconds"]),
                passed=row["passed"] == "True", wrong=row["wrong"],
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def fill(folder: Path, engine: str, parts: Sequence[str], n_seeds: int, n_workers: int) -> None:
    """Run what is missing, seed by seed over all parts, and append what comes of it."""
    setups = {part: setup_of(request_of(part, 0)) for part in parts}
    there = {(each.engine, each.part, each.seed, each.setup) for each in results_in(folder)}
    wanted = [
        (engine, part, seed, folder)
        for seed in range(n_seeds)
        for part in parts
        if (engine, part, seed, setups[part]) not in there
    ]
    with locked(folder / RUNS, RUN_COLUMNS) as trainings:
        if not (folder / RESULTS).exists():
            (folder / RESULTS).write_text(line(COLUMNS))
        known = set(load(folder).rows)
        with mapping(n_workers) as run:
            for result, rows in run(_judge, wanted):
                append_new(trainings, rows, known)
                with (folder / RESULTS).open("a") as file:
                    file.write(line([str(getattr(result, name)) for name in COLUMNS]))
                print(_told(result), flush=True)


def append_new(file: int, rows: Sequence[Row], known: set[Run]) -> None:
    """Trainings that are not known yet, to a file of `locked`; two workers may have made the same one."""
    for row in rows:
        if row.run not in known:
            known.add(row.run)
            os.write(file, line(to_values(row)).encode())


def _judge(wanted: tuple[str, str, int, Path]) -> tuple[Result, list[Row]]:
    return judged(*wanted)


def _told(result: Result) -> str:
    verdict = "passed" if result.passed else f"wrong: {result.wrong}"
    found = f"{result.leading or '-'} -> {result.stack or '-'}"
    return f"{result.engine} {result.part} seed {result.seed}: {found}, {result.steps} updates, {verdict}"


def show(folder: Path, engine: str, parts: Sequence[str], n_seeds: int) -> None:
    """A table of rates, what went wrong, and one line of JSON."""
    kept = results_in(folder)
    print(f"\n{engine}: derived stacks that are right, of at most {n_seeds} seeds (commit {commit()})")
    print(f"{'part':<18} {'right':>8} {'95% interval':>14} {'updates':>8}  stacks")
    summary = {}
    for part in parts:
        setup = setup_of(request_of(part, 0))
        found = [each for each in kept if (each.engine, each.part, each.setup) == (engine, part, setup)]
        found = [each for each in found if each.seed < n_seeds]
        if not found:
            print(f"{part:<18} {'-':>8}")
            continue
        passed, n = sum(each.passed for each in found), len(found)
        low, high = wilson(passed, n)
        stacks = sorted(
            {each.stack or "-" for each in found}, key=lambda stack: -sum(each.stack == stack for each in found)
        )
        told = ", ".join(f"{stack} {sum((each.stack or '-') == stack for each in found)}" for stack in stacks)
        steps = float(np.mean([each.steps for each in found]))
        print(f"{part:<18} {f'{passed}/{n}':>8} {f'{low:.2f} to {high:.2f}':>14} {steps:>8.0f}  {told}")
        for each in found:
            if not each.passed:
                print(f"    {_told(each)}")
        summary[part] = {"passed": passed, "n": n, "low": round(low, 4), "high": round(high, 4), "stacks": told}
    print(json.dumps({"bench": "planted", "engine": engine, "commit": commit(), "parts": summary}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=PARTS, default=PLANTED, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=10, help="searches of each part")
    parser.add_argument("--nightly", action="store_true", help="40 searches of each part")
    parser.add_argument("--broken", choices=sorted(ENGINES), default=SOUND, metavar="NAME", help=", ".join(ENGINES))
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--folder", type=Path, default=KEPT / "planted", help="of what is kept")
    parser.add_argument("--show", action="store_true", help="print what is there")
    read = parser.parse_args()
    n_seeds = 40 if read.nightly else read.seeds
    if not read.show:
        fill(read.folder, read.broken, read.tasks, n_seeds, read.workers)
    show(read.folder, read.broken, read.tasks, n_seeds)


if __name__ == "__main__":
    main()
