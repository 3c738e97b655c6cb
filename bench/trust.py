"""How far can shared weights be trusted? Stacks scored by a supernet, against the same stacks trained apart.

Two kinds of stacks:

- *enumerated*: all of three slots, on each task of the enumerated table (nas/data/enumerated), against its mean test
  loss over seeds. A stack stands in up to three places of the slots (`A..`, `.A.`, `..A`), and has the mean score of
  its places. Beside it the ceiling: how well one seed's trainings agree with another's.
- *12-slots*: at least 60 of the random stacks of bench/par_plan.py on its text, against trainings of 800 updates with
  seed 0, rotary positions and the search's rate. What bench/par_text.py has trained is read from its folder; what is
  missing is trained here.

The supernet is that of a search with the method's defaults, without a parsimony pass; for the 12 slots that of
bench/par_text.py's request. Scores are mean losses on windows of alpha's part. What is compared, and how, stands in
`nas/trust.py`. Scores, checkpoints of supernets and trainings are kept as they come, so it may be killed at any time;
one thread a worker.

    python -m bench.trust [--parts python-docs 12-slots] [--seeds 1] [--workers 2] [--limit 1]
    python -m bench.trust --show
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import math
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench import enumerate as enumerated
from bench import par_text, planted
from bench.kept import ROOT, commit, locked
from bench.par_plan import COLUMNS as RUN_COLUMNS
from bench.par_plan import RUNS, TABLE, Kept, Row, Run, Setup, architecture_of, read_rows, to_line
from bench.par_plan import request_of as larger_request
from bench.trust_show import Compared, show
from nas.config.request import SearchRequest, read_request
from nas.cost import LatencyTable
from nas.data.enumerated import EMPTY, LENGTH, PLANTED, SEEDS, STACKS, TEXT, canonical, load
from nas.data.enumerated import Run as SmallRun
from nas.data.parts import Parts
from nas.search import Search
from nas.shared_losses import path_of, shared_losses

LARGER = "12-slots"
PARTS = (TEXT, *reversed(PLANTED), LARGER)
N_LARGER = 60
SCORES = "scores.csv"
# Beside the defaults; what is reported costs time and changes nothing.
METHOD: dict[str, Any] = {"prune_steps": 0, "report_every": 200, "checkpoint_every": 200, "max_minutes": 60 * 24}
COMMIT = commit()  # asked once: the code that runs is in memory from here on, whatever is committed meanwhile


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


# -- what is scored ---------------------------------------------------------------------------------------------------


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


def parts_of(part: str, request: SearchRequest) -> Parts:
    if part != LARGER:
        return enumerated.parts_of(request.task)
    return par_text.parts_of(request.task.dataset, request.task.train_length, request.method.batch_size)


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


# -- making it --------------------------------------------------------------------------------------------------------


def trained(part: str, request: SearchRequest, folders: Folders) -> Search:
    """A supernet at the end of its search; one that was begun goes on from its last checkpoint."""
    seed, setup = request.trials.seed, planted.setup_of(request)
    path = folders.own / f"{part}-{seed}-{setup}.safetensors"
    search = Search(request, parts=parts_of(part, request), table=table_of(part, request, folders))
    if path.exists():
        search.load(path)
    if not search.done:
        for record in search.run():
            if record.checkpoint:
                search.save(path)
    return search


def scores_of(folders: Folders, sizes: Sizes, wanted: tuple[str, int, Sequence[str]]) -> list[Score]:
    """Score paths of a part by its supernet of a seed."""
    torch.set_num_threads(1)
    part, seed, paths = wanted
    request = request_of(part, seed, folders, sizes)
    search = trained(part, request, folders)
    losses = shared_losses(search, [path_of(architecture_of(path, request), request.space) for path in paths])
    means, setup = losses.double().mean(dim=1).tolist(), planted.setup_of(request)
    windows = losses.shape[1]
    return [
        Score(part, seed, setup, path, round(nats, 6), windows, COMMIT) for path, nats in zip(paths, means, strict=True)
    ]


def fill(folders: Folders, sizes: Sizes, parts: Sequence[str], n_seeds: int, n_workers: int, limit: int | None) -> None:
    """Train and score what is missing: supernets seed by seed, then the larger stacks alone.

    Args:
        folders: where things are kept.
        sizes: of all that is made.
        parts: of PARTS.
        n_seeds: supernets of each.
        n_workers: processes; with 1 all is done in this one.
        limit: supernets and trainings to make at most; None: all.
    """
    with (
        locked(folders.own / SCORES, COLUMNS) as scores,
        locked(folders.own / RUNS, RUN_COLUMNS) as runs,
        _mapping(n_workers) as mapped,
    ):
        if LARGER in parts:
            par_text.measure(folders.text, sizes.text)
        wanted = missing_scores(folders, sizes, parts, n_seeds)[:limit]
        for found in mapped(partial(scores_of, folders, sizes), wanted):
            _append(scores, "".join(map(_line, found)))
            print(f"{found[0].part}, supernet {found[0].seed}: {len(found)} paths scored", flush=True)
        left = None if limit is None else limit - len(wanted)
        alone = missing_runs(folders, sizes)[:left] if LARGER in parts else []
        for row in mapped(partial(par_text.train, sizes.text), alone):
            _append(runs, to_line(row))
            print(to_line(row).strip(), flush=True)


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
    kept, rows = Kept(folders.text), alone_in(folders)
    return [run for run in map(kept.run, larger_stacks(folders, sizes)) if run not in rows]


def _append(file: int, text: str) -> None:
    os.write(file, text.encode())  # one call, so that a kill leaves whole lines
    os.fsync(file)


def _line(score: Score) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(astuple(score))
    return line.getvalue()


@contextmanager
def _mapping(n_workers: int) -> Iterator[Any]:
    """`map`, or that of a pool of processes, which end when this one is killed."""
    if n_workers == 1:
        yield map
        return
    with multiprocessing.get_context("spawn").Pool(n_workers) as pool:
        yield pool.imap_unordered


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


def alone_in(folders: Folders) -> dict[Run, Row]:
    """Trainings of the larger space: those of bench/par_text.py, and those made here."""
    return {**read_rows(folders.own / RUNS), **Kept(folders.text).rows}


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
    kept, rows = Kept(folders.text), alone_in(folders)
    nats = {run: math.log(2) * row.test_bits for run, row in rows.items() if math.isfinite(row.test_bits)}
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


def main(arguments: Sequence[str] | None = None, sizes: Sizes | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=1, help="supernets of each part")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--limit", type=int, help="supernets and trainings to make at most")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "trust", help="of what is kept")
    parser.add_argument(
        "--text-folder", type=Path, default=ROOT / "build" / "par_text", help="of bench/par_text.py, for 12-slots"
    )
    parser.add_argument("--show", action="store_true", help="print what is there instead")
    read = parser.parse_args(arguments)
    folders, sizes = Folders(read.folder, read.text_folder), sizes or Sizes()
    if not read.show:
        fill(folders, sizes, read.parts, read.seeds, read.workers, read.limit)
    found = [compared(part, seed, folders, sizes) for part in read.parts for seed in range(read.seeds)]
    show([each for each in found if each is not None], missing(folders, sizes, read.parts, read.seeds))


if __name__ == "__main__":
    main()
