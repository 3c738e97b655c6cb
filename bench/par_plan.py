"""What `bench/par_text.py` compares, in the order of its worth, and what of it is there.

One text, one size, one recipe. A layout is a letter a slot, as `nas.architecture` prints it. Of each search its best
networks within the budget are trained (`nas.k_best`, as `retrain.k_best` asks for); the derived stack is the one that
validates best. It is held against

- *interleaved*: the parent (AF)^(L/2);
- *sandwich*: A^k (AF)^(L/2 - k) F^k (Press et al. 2019, arXiv:1911.03864), the k that validates best;
- *par 5* and *par found*: the PAR rule (`nas.placement`) at 5 : 1 and at the ratio that the search found;
- *random*: of stacks drawn uniformly from all that the table puts at or below the parent's latency, the one that
  validates best, as many as train in the processor time that the searches took.

Each of them gets the positions that validate best with seed 0 at the search's own rate, rotary or none, and with them
the best of three rates; the derived and the random stack keep the rotary positions that the search had. All are then
trained with the same seeds, which draw the same windows in the same order.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from nas.architecture import Architecture
from nas.config.request import SearchRequest, read_request
from nas.cost import LatencyTable
from nas.errors import InvalidInput
from nas.placement import attention_positions

RUNS, SETUP, TABLE, LATENCY = "runs.csv", "setup.json", "table.json", "latency.json"
CANDIDATES = [
    "attention",
    "ffn",
    "identity",
    "sgu",
    {"label": "mgk", "block": "mgk", "options": {"n_heads": 2, "n_keys": 2}},
]


@dataclass(frozen=True)
class Setup:
    """Sizes; the same for all rows of a folder.

    Args:
        dataset: built-in text; python-docs is too small, its training parts would be read four times.
        lrs: grid of peak learning rates; the middle one is the search's.
        ratio_tolerance: how far the table's latency of an equal random layout may be from the derived one's.
    """

    dataset: str = "python-stdlib"
    n_slots: int = 12
    d_model: int = 64
    length: int = 256
    batch: int = 8
    steps: int = 800
    long_factor: int = 3
    lrs: tuple[float, ...] = (3e-3, 6e-3, 1.2e-2)
    search_steps: int = 2400  # this and the next as nas.config has them
    prune_steps: int = 200
    n_searches: int = 2
    k_best: int = 3
    n_seeds: int = 6
    n_long_seeds: int = 3
    sandwich: tuple[int, ...] = (2, 4)
    n_equal: int = 9
    n_equal_seeds: int = 2
    ratio_tolerance: float = 0.03
    eval_windows: int = 128
    test_windows: int = 512

    @property
    def lr(self) -> float:
        return self.lrs[len(self.lrs) // 2]


@dataclass(frozen=True)
class Run:
    """One training."""

    stack: str
    positions: str
    lr: float
    seed: int
    steps: int


@dataclass(frozen=True)
class Row:
    """A training that has ended: validation nats and test bits per byte, and seconds of its thread on a processor."""

    run: Run
    val_nats: float
    test_bits: float
    seconds: float
    commit: str


COLUMNS = [*(each.name for each in fields(Run)), *(each.name for each in fields(Row)[1:])]


def to_line(row: Row) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([*astuple(row.run), *astuple(row)[1:]])
    return line.getvalue()


def request_of(
    setup: Setup, positions: str = "rotary", lr: float | None = None, steps: int | None = None
) -> SearchRequest:
    """The request of a search or of a training; what is not said here is `nas.config`'s default."""
    return read_request(
        {
            "name": "par_text",
            "space": {
                "n_slots": setup.n_slots, "d_model": setup.d_model, "n_heads": 4, "max_len": setup.length,
                "positions": positions, "candidates": CANDIDATES,
            },
            "task": {
                "dataset": setup.dataset, "train_length": setup.length, "serve_lengths": [],
                "serve": [{"batch": setup.batch, "query_length": setup.length}],
            },
            "method": {
                "n_steps": setup.search_steps, "prune_steps": setup.prune_steps, "batch_size": setup.batch,
                "lr": setup.lr if lr is None else lr, "report_every": 100, "checkpoint_every": 10_000_000,
                "eval_windows": setup.eval_windows, "max_minutes": 60 * 24,
            },
            "budget": {"latency": {"ratio_to_parent": 1.0}},
            "trials": {"n_seeds": 1},
            "retrain": {"n_steps": steps or setup.steps, "n_seeds": 1, "test_windows": setup.test_windows},
        }
    )  # fmt: skip


def architecture_of(stack: str, request: SearchRequest) -> Architecture:
    labels = {candidate.letter: candidate.label for candidate in request.space.candidates}
    return Architecture(tuple(labels[letter] for letter in stack), request.space.candidates)


def interleaved(n_slots: int) -> str:
    return "AF" * (n_slots // 2)


def sandwich(n_slots: int, k: int) -> str:
    return "A" * k + "AF" * (n_slots // 2 - k) + "F" * k


def par(n_slots: int, ratio: Fraction | int) -> str:
    """Raises: InvalidInput: that many attention blocks have no room in the first two thirds."""
    attention = attention_positions(n_slots, ratio)
    return "".join("A" if slot in attention else "F" for slot in range(n_slots))


class Kept:
    """What a folder holds. Latency is asked of its table only.

    Args:
        folder: with its set-up.
    """

    def __init__(self, folder: Path) -> None:
        said = json.loads((folder / SETUP).read_text())
        self.folder = folder
        self.setup = Setup(**{name: tuple(value) if isinstance(value, list) else value for name, value in said.items()})
        self.rows = read_rows(folder / RUNS)
        self.searches = {
            seed: json.loads(self.search_path(seed).read_text())
            for seed in range(self.setup.n_searches)
            if self.search_path(seed).exists()
        }
        path = folder / LATENCY
        self.latencies: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def search_path(self, seed: int) -> Path:
        return self.folder / f"search-{seed}.json"

    @cached_property
    def table(self) -> LatencyTable:
        return LatencyTable.model_validate_json((self.folder / TABLE).read_text())

    @cached_property
    def request(self) -> SearchRequest:
        return request_of(self.setup)

    @cached_property
    def _letter_ms(self) -> dict[str, float]:
        letters = [candidate.letter for candidate in self.request.space.candidates]
        return dict(zip(letters, self.table.slot_ms(self.request.space), strict=True))

    def predicted_ms(self, stack: str) -> float:
        """By the table."""
        return self.table.offset_ms + sum(self._letter_ms[letter] for letter in stack)

    def run(self, stack: str, positions: str = "rotary", lr: float | None = None, seed: int = 0) -> Run:
        return Run(stack, positions, self.setup.lr if lr is None else lr, seed, self.setup.steps)

    def grid(self, stack: str, positions: Sequence[str] = ("rotary", "none")) -> list[Run]:
        """Positions at the search's rate, and once those are there, the rates with the best of them."""
        at_first = [self.run(stack, each) for each in positions]
        chosen = self.best(at_first)
        rates = [] if chosen is None else [self.run(stack, chosen.positions, lr) for lr in self.setup.lrs]
        return list(dict.fromkeys([*at_first, *rates]))

    def best(self, runs: Sequence[Run]) -> Run | None:
        """The one that validates best; None while one of them is missing."""
        if not runs or any(run not in self.rows for run in runs):
            return None
        return min(runs, key=lambda run: self.rows[run].val_nats)

    def seeds(self, run: Run, n: int, steps: int | None = None) -> list[Run]:
        return [Run(run.stack, run.positions, run.lr, seed, steps or run.steps) for seed in range(n)]

    # -- what is compared: for each its setting, or None while that is not known ----------------------------------

    @property
    def found(self) -> list[str]:
        """Distinct stacks that the searches derived, the best of each first."""
        by_search = [each["stacks"] for each in self.searches.values()]
        return list(dict.fromkeys(itertools.chain.from_iterable(by_search)))

    @property
    def derived(self) -> Run | None:
        if len(self.searches) < self.setup.n_searches:
            return None
        chosen = self.best([self.run(stack) for stack in self.found])
        return None if chosen is None else self.best(self.grid(chosen.stack, ("rotary",)))

    @property
    def interleaved(self) -> Run | None:
        return self.best(self.grid(interleaved(self.setup.n_slots)))

    @property
    def sandwiched(self) -> Run | None:
        return self.best([run for k in self.setup.sandwich for run in self.grid(sandwich(self.setup.n_slots, k))])

    def ruled(self, ratio: Fraction | int | None) -> Run | None:
        return None if ratio is None else self.best(self.grid(par(self.setup.n_slots, ratio)))

    @property
    def found_ratio(self) -> Fraction | None:
        """All blocks : attention and MGK blocks of the derived stack; None where the rule cannot place as many."""
        derived = self.derived
        if derived is None:
            return None
        n_attention = sum(letter in "AM" for letter in derived.stack)
        try:
            ratio = Fraction(self.setup.n_slots, n_attention)
            par(self.setup.n_slots, ratio)
        except (ZeroDivisionError, InvalidInput):
            return None
        return ratio

    @property
    def search_seconds(self) -> float:
        """Processor seconds of the searches, and of the trainings that chose among their stacks."""
        chosen = [self.rows[run].seconds for run in map(self.run, self.found) if run in self.rows]
        return float(sum(each["seconds"] for each in self.searches.values())) + sum(chosen)

    def drawn(self) -> Iterator[str]:
        """Random stacks at or below the parent's latency by the table, always the same, without end."""
        chance, letters = random.Random(0), [each.letter for each in self.request.space.candidates]
        most = self.predicted_ms(interleaved(self.setup.n_slots))
        while True:
            stack = "".join(chance.choices(letters, k=self.setup.n_slots))
            if self.predicted_ms(stack) <= most:
                yield stack

    def random_search(self) -> tuple[list[Run], bool]:
        """The random stacks that are trained, up to the first that is missing, and whether the time is used up."""
        runs, spent = [], 0.0
        for stack in self.drawn():
            if spent >= self.search_seconds:
                return runs, True
            runs.append(self.run(stack))
            if runs[-1] not in self.rows:
                return runs, False
            spent += self.rows[runs[-1]].seconds
        raise AssertionError("stacks are drawn without end")

    @property
    def random(self) -> Run | None:
        if self.derived is None:
            return None
        runs, is_whole = self.random_search()
        chosen = self.best(runs) if is_whole else None
        return None if chosen is None else self.best(self.grid(chosen.stack, ("rotary",)))

    def equal(self) -> list[Run]:
        """Random layouts whose latency by the table is the derived one's within the tolerance, with its setting."""
        derived, setup = self.derived, self.setup
        if derived is None:
            return []
        chance, letters = random.Random(1), [each.letter for each in self.request.space.candidates]
        wanted, stacks = self.predicted_ms(derived.stack), set[str]()
        for _ in range(100_000):  # far more than it takes in a space of this size
            stack = "".join(chance.choices(letters, k=setup.n_slots))
            if stack != derived.stack and abs(self.predicted_ms(stack) / wanted - 1) <= setup.ratio_tolerance:
                stacks.add(stack)
            if len(stacks) == setup.n_equal:
                break
        return [Run(stack, derived.positions, derived.lr, 0, setup.steps) for stack in sorted(stacks)]

    def contenders(self) -> dict[str, Run | None]:
        """By name, the derived stack first."""
        return {
            "derived": self.derived,
            "interleaved": self.interleaved,
            "par 5": self.ruled(5) if self.setup.n_slots >= 5 else None,
            "par found": self.ruled(self.found_ratio),
            "sandwich": self.sandwiched,
            "random": self.random,
        }

    # -- what is still to do --------------------------------------------------------------------------------------

    def missing(self) -> list[Run]:
        """Of the first stage that is not whole, what is to be trained; a later one may depend on it."""
        assert len(self.searches) == self.setup.n_searches
        for stage in self._stages():
            if runs := [run for run in dict.fromkeys(stage) if run not in self.rows]:
                return runs
        return []

    def _stages(self) -> Iterator[list[Run]]:
        """In the order of their worth. What is behind a yield may count on its rows."""
        setup = self.setup
        if self.found:
            yield [self.run(stack) for stack in self.found]
            chosen = self.best([self.run(stack) for stack in self.found])
            assert chosen is not None
            yield self.grid(chosen.stack, ("rotary",)) + self.grid(interleaved(setup.n_slots))
            yield from self._seeds_of(self.derived, self.interleaved)
        else:
            yield self.grid(interleaved(setup.n_slots))
        ratios = [5, *([self.found_ratio] if self.found_ratio is not None else [])]
        yield [run for ratio in ratios for run in self.grid(par(setup.n_slots, ratio))]
        yield from self._seeds_of(*(self.ruled(ratio) for ratio in ratios))
        yield [run for k in setup.sandwich for run in self.grid(sandwich(setup.n_slots, k))]
        yield from self._seeds_of(self.sandwiched)
        if not self.found:
            return
        yield [seed for run in self.equal() for seed in self.seeds(run, setup.n_equal_seeds)]
        while not self.random_search()[1]:
            yield self.random_search()[0]
        drawn = self.best(self.random_search()[0])
        assert drawn is not None
        yield self.grid(drawn.stack, ("rotary",))
        yield from self._seeds_of(self.random)
        yield self.long(self.derived) + self.long(self.interleaved)

    def _seeds_of(self, *runs: Run | None) -> Iterator[list[Run]]:
        """Seed by seed, so that a part of them is paired."""
        known = [run for run in runs if run is not None]
        by_seed = zip(*(self.seeds(run, self.setup.n_seeds) for run in known), strict=True)
        yield list(itertools.chain.from_iterable(by_seed))

    def long(self, run: Run | None) -> list[Run]:
        """The same with more updates."""
        if run is None:
            return []
        return self.seeds(run, self.setup.n_long_seeds, self.setup.long_factor * self.setup.steps)

    @staticmethod
    def count(setup: Setup) -> int:
        """How many trainings of `steps` updates there are in all, long ones as several; random search apart."""
        grid, seeds = 1 + len(setup.lrs), setup.n_seeds - 1
        layouts = (1 + 2 + len(setup.sandwich)) * grid + 4 * seeds  # interleaved, two by the rule, the sandwiches
        searched = setup.n_searches * setup.k_best + 2 * (len(setup.lrs) - 1 + seeds)  # derived and random
        return layouts + searched + setup.n_equal * setup.n_equal_seeds + 2 * setup.n_long_seeds * setup.long_factor


def read_rows(path: Path) -> dict[Run, Row]:
    """The trainings of a file; none where it is not there yet."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {row.run: row for row in map(_row, csv.DictReader(lines))}


def _row(line: dict[str, str]) -> Row:
    run = Run(line["stack"], line["positions"], float(line["lr"]), int(line["seed"]), int(line["steps"]))
    return Row(run, float(line["val_nats"]), float(line["test_bits"]), float(line["seconds"]), line["commit"])


def write_setup(folder: Path, setup: Setup) -> None:
    """Raises: SystemExit: the folder holds rows of another set-up."""
    folder.mkdir(parents=True, exist_ok=True)
    path, said = folder / SETUP, json.dumps(asdict(setup), indent=1) + "\n"
    if path.exists() and path.read_text() != said:
        raise SystemExit(f"{folder} holds rows of another set-up; choose another folder with --folder")
    path.write_text(said)
