"""The enumerated table: every stack of three slots trained apart on tasks whose answer is known, and on a text.

It is what a search can be scored against: not what some search found, but how all there is compares. No torch here; the
files are made by `bench/enumerate.py`, and `enumerated/README.md` is their card.

A stack is written by its blocks' letters, first to last: A attention, F feed-forward, S spatial gating, M mixture of
Gaussian keys. Identity is exactly skip, so it is left out, and three slots make 85 different stacks; "." is the empty
one.
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from nas.errors import DataError, InvalidInput

VERSION = 1  # of the set-up; rows of another are not comparable, and refused
FOLDER = Path(__file__).parent / "enumerated"
RUNS, COSTS = "runs.csv", "costs.csv"

LETTERS = "AFSM"
EMPTY = "."
STACKS: tuple[str, ...] = tuple("".join(word) or EMPTY for n in range(4) for word in product(LETTERS, repeat=n))
# Of the 256 stacks of four blocks: two that papers and the planted tasks name, and 22 drawn among the others.
_FOUR = tuple("".join(word) for word in product(LETTERS, repeat=4))
_NAMED = ("AFAF", "SSSS")
SAMPLE: tuple[str, ...] = (*_NAMED, *random.Random(0).sample([each for each in _FOUR if each not in _NAMED], 22))

TEXT = "python-docs"
TEXT_SHA256 = "2a95af4ac93f5b719944030ce3769070ddf827d847cba42192afa8da989e5dc4"  # that of Python 3.11.7
PLANTED = ("token-wise", "offset", "lookup", "shift-then-match")
TASKS = (*PLANTED, TEXT)
LENGTH, LONGER = 64, 256  # tokens; the longer one is of the text alone
SETTINGS = (*((task, LENGTH) for task in TASKS), (TEXT, LONGER))
SEEDS = (0, 1, 2)
RATE, OTHER_RATES = 2e-3, (1e-3, 4e-3)
N_STEPS, CHECK_EVERY = 1000, 50
REACHED = 0.99  # accuracy at which a training ends
N_BEST = 15  # stacks of each task that are trained at the other rates too


@dataclass(frozen=True)
class Run:
    """One training.

    Args:
        task: of TASKS.
        length: tokens T of its windows.
        stack: of STACKS or SAMPLE.
        seed: of weights and batches.
        lr: peak learning rate.
    """

    task: str
    length: int
    stack: str
    seed: int = 0
    lr: float = RATE


@dataclass(frozen=True)
class Row:
    """What came of one training.

    Args:
        run: that was made.
        steps: weight updates until it reached the accuracy, or all.
        accuracy: on test examples, of the scored tokens.
        nats: mean loss there, per scored token; infinite where training diverged.
        seconds: that it took.
    """

    run: Run
    steps: int
    accuracy: float
    nats: float
    seconds: float


@dataclass(frozen=True)
class Cost:
    """What a stack weighs and takes, of the whole network of one task and length.

    Args:
        parameters: embeddings and head included.
        latency_ms: median of one forward pass of 8 windows on one thread.
        iqr_ms: its interquartile range.
    """

    parameters: int
    latency_ms: float
    iqr_ms: float


@dataclass(frozen=True)
class Entry:
    """A stack on a task: means over the seeds there are.

    Args:
        stack: by its letters.
        accuracy: on test examples.
        nats: per scored token of test examples.
        steps: until the accuracy was reached, or all.
        n_seeds: trainings behind the means.
        cost: None: not measured yet.
    """

    stack: str
    accuracy: float
    nats: float
    steps: float
    n_seeds: int
    cost: Cost | None


_MEASURED: Mapping[str, type[Any]] = {"steps": int, "accuracy": float, "nats": float, "seconds": float}
RUN_COLUMNS = ("task", "length", "stack", "n_slots", "seed", "lr", *_MEASURED, "version")
_COST: Mapping[str, type[Any]] = {"parameters": int, "latency_ms": float, "iqr_ms": float}
COST_COLUMNS = ("task", "length", "stack", *_COST)


def canonical(stack: str) -> str:
    """A stack as the table writes it, from an architecture's letters: "A.S" is "AS", "..." is ".".

    Raises:
        InvalidInput: a letter that no block of the table has.
    """
    for letter in stack:
        if letter not in LETTERS + EMPTY:
            raise InvalidInput(
                f"stack {stack[:60]!r} has letter {letter!r}; the table knows {', '.join(LETTERS)} and ."
            )
    return stack.replace(EMPTY, "") or EMPTY


def n_slots(stack: str) -> int:
    """Slots of the space that a stack is from."""
    return 4 if len(stack) == 4 else 3


@dataclass(frozen=True)
class Table:
    """The trainings that are there, and what stacks cost, by task, length and stack."""

    rows: Mapping[Run, Row] = field(default_factory=dict)
    costs: Mapping[tuple[str, int, str], Cost] = field(default_factory=dict)

    def entry(self, task: str, length: int, stack: str, lr: float = RATE) -> Entry | None:
        """A stack's means over its seeds; None: not trained yet.

        Raises:
            InvalidInput: the table is not about such a task, length or stack.
        """
        _check_known(task, length)
        stack = canonical(stack)
        if stack not in STACKS and stack not in SAMPLE:
            raise InvalidInput(
                f"stack {stack[:60]!r} is not in the table; it has all up to 3 blocks, and a sample of 4"
            )
        runs = [Run(task, length, stack, seed, lr) for seed in SEEDS]
        found = [self.rows[run] for run in runs if run in self.rows]
        if not found:
            return None
        return Entry(
            stack=stack,
            accuracy=fmean(row.accuracy for row in found),
            nats=fmean(row.nats for row in found),
            steps=fmean(row.steps for row in found),
            n_seeds=len(found),
            cost=self.costs.get((task, length, stack)),
        )

    def stacks(self, task: str, length: int = LENGTH, lr: float = RATE) -> list[Entry]:
        """The stacks of three slots that have been trained on a task, best first: the one that needs fewest updates
        to reach the accuracy, and among equals, as on a text, the one with the lowest loss.

        Raises:
            InvalidInput: the table is not about such a task or length.
        """
        _check_known(task, length)
        found = [self.entry(task, length, stack, lr) for stack in STACKS]
        return sorted((each for each in found if each is not None), key=lambda each: (each.steps, each.nats))

    def missing(self) -> list[list[Run]]:
        """Trainings that are not there yet, in the order of work, stage by stage.

        The third stage, other rates for the best, is planned for a task once its first two are there.
        """
        stages = [
            [Run(task, LENGTH, stack) for stack in STACKS for task in TASKS],
            [Run(task, LENGTH, stack, seed) for seed in SEEDS[1:] for stack in STACKS for task in TASKS],
            [
                Run(task, LENGTH, entry.stack, seed, lr)
                for task in TASKS
                if self.n_seeded(task) == len(STACKS) * len(SEEDS)
                for entry in self.stacks(task)[:N_BEST]
                for lr in OTHER_RATES
                for seed in SEEDS
            ],
            [Run(TEXT, LONGER, stack, seed) for seed in SEEDS for stack in STACKS],
            [Run(task, LENGTH, stack) for stack in SAMPLE for task in TASKS],
        ]
        return [[run for run in stage if run not in self.rows] for stage in stages]

    def n_seeded(self, task: str, length: int = LENGTH) -> int:
        """How many of the 85 x 3 trainings of a task, at the one rate, are there.

        Raises:
            InvalidInput: the table is not about such a task or length.
        """
        return sum(each.n_seeds for each in self.stacks(task, length))

    def is_complete(self, task: str, length: int = LENGTH) -> bool:
        """Whether every stack of three slots has all its seeds, at the one rate.

        Raises:
            InvalidInput: the table is not about such a task or length.
        """
        return self.n_seeded(task, length) == len(STACKS) * len(SEEDS)


def load(folder: Path = FOLDER) -> Table:
    """The table of a folder; a file that is not there yet holds no rows.

    Raises:
        DataError: a row is not what it must be; with file and row.
    """
    rows: dict[Run, Row] = {}
    for place, values in _read(folder / RUNS, RUN_COLUMNS):
        with _told(place):
            row = _row(values)
            if row.run in rows:
                raise ValueError("the training stands there before; each must stand once")
            rows[row.run] = row
    costs = {}
    for place, values in _read(folder / COSTS, COST_COLUMNS):
        with _told(place):
            key = (values["task"], _number(values, "length", int), values["stack"])
            _check_run(Run(*key))
            costs[key] = Cost(*(_number(values, name, kind) for name, kind in _COST.items()))
    return Table(rows, costs)


def to_values(row: Row) -> list[str]:
    """A row as its line of the file has it."""
    run = row.run
    return [
        run.task,
        str(run.length),
        run.stack,
        str(n_slots(run.stack)),
        str(run.seed),
        f"{run.lr:g}",
        str(row.steps),
        f"{row.accuracy:.5f}",
        f"{row.nats:.5f}",
        f"{row.seconds:.1f}",
        str(VERSION),
    ]


def print_table(table: Table, n: int = 10) -> None:
    """What is there of each task, and its n best stacks."""
    for task, length in SETTINGS:
        there, all_of_it = table.n_seeded(task, length), len(STACKS) * len(SEEDS)
        print(f"\n{task}, {length} tokens: {there} of {all_of_it} trainings")
        print(f"{'stack':<6} {'accuracy':>8} {'nats':>8} {'steps':>6} {'seeds':>5} {'parameters':>10} {'ms':>7}")
        for each in table.stacks(task, length)[:n]:
            cost = "" if each.cost is None else f"{each.cost.parameters:>10,} {each.cost.latency_ms:>7.2f}"
            print(
                f"{each.stack:<6} {each.accuracy:>8.4f} {each.nats:>8.4f} {each.steps:>6.0f} {each.n_seeds:>5} {cost}"
            )


@contextmanager
def _told(place: str) -> Iterator[None]:
    """Errors within name file and row."""
    try:
        yield
    except ValueError as error:
        raise DataError(f"{place}: {error}") from None


def _read(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row with its place; none where the file is not there."""
    if not path.exists():
        return
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != tuple(columns):
            found = ",".join(reader.fieldnames or ())
            raise DataError(f"{path.name} has columns {found or 'none'}; it must have {','.join(columns)}")
        for number, values in enumerate(reader, 1):
            place = f"{path.name}, row {number:,}"
            if None in values or None in values.values():
                raise DataError(f"{place}: it has other than {len(columns)} values")
            yield place, values


def _row(values: Mapping[str, str]) -> Row:
    """Raises: ValueError: a value is not what it must be."""
    length, seed, slots, version = (_number(values, name, int) for name in ("length", "seed", "n_slots", "version"))
    run = Run(values["task"], length, values["stack"], seed, _number(values, "lr", float))
    _check_run(run)
    if version != VERSION:
        raise ValueError(f"version is {version}; this code reads {VERSION}")
    if slots != n_slots(run.stack):
        raise ValueError(f"n_slots is {slots} for stack {run.stack!r}; it must be {n_slots(run.stack)}")
    row = Row(run, *(_number(values, name, kind) for name, kind in _MEASURED.items()))
    if not 1 <= row.steps <= N_STEPS:
        raise ValueError(f"steps is {row.steps}; it must be between 1 and {N_STEPS}")
    if not 0 <= row.accuracy <= 1:
        raise ValueError(f"accuracy is {row.accuracy}; it must be between 0 and 1")
    if math.isnan(row.nats) or row.nats < 0:
        raise ValueError(f"nats is {row.nats}; it must not be negative")
    return row


def _number(values: Mapping[str, str], name: str, kind: type[Any]) -> Any:
    """Raises: ValueError: a value is none of its kind."""
    try:
        return kind(values[name])
    except ValueError:
        raise ValueError(f"{name} is {values[name]!r}; it must be a number") from None


def _check_run(run: Run) -> None:
    """Raises: ValueError: no training of the table."""
    _check_known(run.task, run.length)
    known = {
        "stack": (run.stack, (*STACKS, *SAMPLE)),
        "seed": (run.seed, SEEDS),
        "lr": (run.lr, (RATE, *OTHER_RATES)),
    }
    for name, (value, values) in known.items():
        if value not in values:
            raise ValueError(f"{name} is {value!r}, which the table does not have")


def _check_known(task: str, length: int) -> None:
    """Raises: InvalidInput: the table is not about such a task or length."""
    if task not in TASKS:
        raise InvalidInput(f"task {task[:60]!r} is not in the table; known: {', '.join(TASKS)}")
    lengths = [each for named, each in SETTINGS if named == task]
    if length not in lengths:
        raise InvalidInput(f"length {length} of {task} is not in the table; known: {', '.join(map(str, lengths))}")
