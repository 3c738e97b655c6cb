"""What `bench/trust.py` scores and trains, and what of it is there."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any

from bench import enumerate as enumerated
from bench import planted
from bench.par_plan import TABLE, Kept, Run, Setup
from bench.par_plan import request_of as larger_request
from bench.trust_show import Compared
from nas.config.request import SearchRequest, read_request
from nas.cost import LatencyTable
from nas.data.enumerated import EMPTY, LENGTH, PLANTED, SEEDS, STACKS, TEXT, canonical, load
from nas.data.enumerated import Run as SmallRun

LARGER = "12-slots"
PARTS = (TEXT, *reversed(PLANTED), LARGER)
N_LARGER = 60
SCORES = "scores.csv"
# Beside the defaults; what is reported costs time and changes nothing.
METHOD: dict[str, Any] = {"prune_steps": 0, "report_every": 200, "checkpoint_every": 200, "max_minutes": 60 * 24}


@dataclass(frozen=True)
class Score:
    """A path's loss by shared weights.

    Args:
        part: of PARTS.
        seed: of the supernet.
        setup: of everything asked for but the seed; scores of others are not comparable.
        path: a letter a slot, "." for identity.
        nats: mean over windows of alpha's part.
        windows: how many.
        commit: that it was made at.
    """

    part: str
    seed: int
    setup: str
    path: str
    nats: float
    windows: int
    commit: str


COLUMNS = tuple(each.name for each in fields(Score))


def score_line(score: Score) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(astuple(score))
    return line.getvalue()


@dataclass(frozen=True)
class Sizes:
    """Of all that is made.

    Args:
        text: set-up of bench/par_text.py.
        method: of supernets, beside METHOD and the set-ups' own.
        n_larger: stacks of the larger space.
    """

    text: Setup = field(default_factory=Setup)
    method: Mapping[str, Any] = field(default_factory=lambda: METHOD)
    n_larger: int = N_LARGER


@dataclass(frozen=True)
class Folders:
    """Where things are kept: `own`, and that of bench/par_text.py."""

    own: Path
    text: Path


# -- what is wanted ---------------------------------------------------------------------------------------------------


def request_of(part: str, seed: int, folders: Folders, sizes: Sizes) -> SearchRequest:
    """Of a supernet. It names its latency table where that was measured, so that another one is another set-up."""
    if part == LARGER:
        request = larger_request(sizes.text)
        own, table = request.method.model_dump(), Kept(folders.text).table.id
    else:
        request, table = enumerated.request_of(SmallRun(part, LENGTH, EMPTY, seed)), None
        own = {"batch_size": enumerated.TOKENS // LENGTH, "lr_schedule": "cosine" if part == TEXT else "constant"}
    asked = request.model_dump(mode="json")
    asked |= {"name": "trust", "trials": {"seed": seed, "n_seeds": 1}, "latency_table": table}
    return read_request({**asked, "method": {**own, **sizes.method}})


def table_of(part: str, request: SearchRequest, folders: Folders) -> LatencyTable:
    return Kept(folders.text).table if part == LARGER else planted.table_of(request)


def paths_of(part: str, folders: Folders, sizes: Sizes) -> list[str]:
    """What a supernet is asked for, by letters."""
    if part == LARGER:
        return larger_stacks(folders, sizes)
    letters = [each.letter for each in enumerated.request_of(SmallRun(part, LENGTH, EMPTY)).space.candidates]
    return ["".join(word) for word in itertools.product(letters, repeat=3)]


def larger_stacks(folders: Folders, sizes: Sizes) -> list[str]:
    """The first random stacks of bench/par_text.py, each once: their order says nothing of how good they are."""
    found: dict[str, None] = {}
    for stack in Kept(folders.text).drawn():
        found[stack] = None
        if len(found) == sizes.n_larger:
            return list(found)
    raise AssertionError("stacks are drawn without end")


# -- what is there ----------------------------------------------------------------------------------------------------


def scores_in(folder: Path) -> list[Score]:
    path = folder / SCORES
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Score(
                row["part"], int(row["seed"]), row["setup"], row["path"], float(row["nats"]), int(row["windows"]),
                row["commit"],
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def compared(part: str, seed: int, folders: Folders, sizes: Sizes) -> Compared | None:
    """A supernet's scores beside the trainings that are there; None where it has not scored yet."""
    if part == LARGER and not (folders.text / TABLE).exists():
        return None
    setup = planted.setup_of(request_of(part, seed, folders, sizes))
    scores: dict[str, list[float]] = defaultdict(list)
    for each in scores_in(folders.own):
        if (each.part, each.seed, each.setup) == (part, seed, setup):
            scores[each.path if part == LARGER else canonical(each.path)].append(each.nats)
    if not scores:
        return None
    return (_larger if part == LARGER else _enumerated)(part, seed, scores, folders)


def _enumerated(part: str, seed: int, scores: Mapping[str, list[float]], folders: Folders) -> Compared:
    table = load()
    rows = {
        stack: [table.rows[run] for run in (SmallRun(part, LENGTH, stack, each) for each in SEEDS) if run in table.rows]
        for stack in STACKS
        if stack in scores
    }
    rows = {stack: found for stack, found in rows.items() if found and all(math.isfinite(each.nats) for each in found)}
    return Compared(
        part=part,
        seed=seed,
        scores={stack: scores[stack] for stack in rows},
        losses={stack: [each.nats for each in found] for stack, found in rows.items()},
        costs={stack: planted.costs_of(part)[""] + planted.cost_of(part, stack) for stack in rows},
        steps=None if part == TEXT else {stack: [each.steps for each in found] for stack, found in rows.items()},
        repeats=[[each.nats for each in found] for found in rows.values()],
    )


def _larger(part: str, seed: int, scores: Mapping[str, list[float]], folders: Folders) -> Compared:
    kept = Kept(folders.text)
    nats = {run: math.log(2) * row.test_bits for run, row in kept.rows.items() if math.isfinite(row.test_bits)}
    alone = {stack: [nats[kept.run(stack)]] for stack in scores if kept.run(stack) in nats}
    repeats: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for run, loss in nats.items():
        repeats[run.stack, run.positions, run.lr, run.steps].append(loss)
    return Compared(
        part=part,
        seed=seed,
        scores={stack: scores[stack] for stack in alone},
        losses=alone,
        costs={stack: kept.predicted_ms(stack) for stack in alone},
        steps=None,
        repeats=list(repeats.values()),
    )


def missing_scores(
    folders: Folders, sizes: Sizes, parts: Sequence[str], n_seeds: int
) -> list[tuple[str, int, list[str]]]:
    there = {(each.part, each.seed, each.setup, each.path) for each in scores_in(folders.own)}
    found = []
    for seed, part in itertools.product(range(n_seeds), parts):
        setup = planted.setup_of(request_of(part, seed, folders, sizes))
        paths = [each for each in paths_of(part, folders, sizes) if (part, seed, setup, each) not in there]
        found += [(part, seed, paths)] if paths else []
    return found


def missing_runs(folders: Folders, sizes: Sizes) -> list[Run]:
    kept = Kept(folders.text)
    return [run for run in map(kept.run, larger_stacks(folders, sizes)) if run not in kept.rows]


def missing(folders: Folders, sizes: Sizes, parts: Sequence[str], n_seeds: int) -> list[str]:
    """In words."""
    told = []
    if LARGER in parts and not (folders.text / TABLE).exists():
        told.append(f"all of {LARGER}")
        parts = [part for part in parts if part != LARGER]
    told += [
        f"{len(paths)} scores of {part} by supernet {seed}"
        for part, seed, paths in missing_scores(folders, sizes, parts, n_seeds)
    ]
    if LARGER in parts and (runs := missing_runs(folders, sizes)):
        told.append(f"{len(runs)} of {sizes.n_larger} trainings of {LARGER}")
    return told
