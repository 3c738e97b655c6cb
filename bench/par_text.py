"""Is a searched stack better than the layouts one would write down? On one text, each with its own learning rate.

What is compared stands in `bench/par_plan.py`. Trainings and searches are kept as they end, so it may be killed at any
time and goes on where it was; one thread a worker. It takes a night on two cores; `--estimate` measures how long.

    python -m bench.par_text [--workers 2] [--limit 10]      search and train what is missing, in the order of its worth
    python -m bench.par_text --estimate                      time a few updates and say how long all of it takes
    python -m bench.par_text --show                          print what is there, and what is missing
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.kept import KEPT, commit, locked, mapping
from bench.par_plan import (
    COLUMNS,
    LATENCY,
    RUNS,
    TABLE,
    Kept,
    Row,
    Run,
    Setup,
    architecture_of,
    interleaved,
    request_of,
    to_line,
    write_setup,
)
from bench.par_show import show
from nas.budgets import bounds
from nas.cost import LatencyTable
from nas.data.corpora import read_corpus
from nas.data.parts import Parts, split
from nas.errors import SearchFailed
from nas.k_best import k_best
from nas.measure import compare_latency, measure_table
from nas.retrain import Retraining, build
from nas.search import search

LATENCY_ROUNDS = 200
ESTIMATE_STEPS = 20
COMMIT = commit()  # asked once: the code that runs is in memory from here on, whatever is committed meanwhile


@cache
def parts_of(dataset: str, length: int, batch: int) -> Parts:
    return split(read_corpus(dataset), length, batch)


def train(setup: Setup, run: Run) -> Row:
    """Train one stack and score it, with the processor time that all of it took."""
    torch.set_num_threads(1)
    parts = parts_of(setup.dataset, setup.length, setup.batch)
    request = request_of(setup, run.positions, run.lr, run.steps).resolve({}, run.seed)
    started = time.process_time()
    training = Retraining(request, architecture_of(run.stack, request), parts=parts)
    try:
        list(training.run())
    except SearchFailed:  # diverged: a rate that is too high is an answer of the grid
        return Row(run, math.inf, math.inf, round(time.process_time() - started, 3), COMMIT)
    assert training.result is not None
    bits = float(np.mean(training.result.test_nats)) / math.log(2)
    seconds = round(time.process_time() - started, 3)
    return Row(run, round(training.result.val_loss, 6), round(bits, 6), seconds, COMMIT)


def look(setup: Setup, table: LatencyTable, seed: int) -> dict[str, Any]:
    """One search, as JSON: its best stacks, none where it decides nothing, and the processor time of all of it."""
    torch.set_num_threads(1)
    request = request_of(setup)
    request = request.model_copy(update={"trials": request.trials.model_copy(update={"seed": seed})})
    started = time.process_time()
    found: dict[str, Any] = {"seed": seed, "stacks": [], "undecided": [], "reason": None, "val_loss": None}
    try:
        result = search(request, table=table)
        best = result.best
        assert best.architecture is not None
        runners_up = k_best(request, table, best.records[-1], bounds(request, table), setup.k_best)
        stacks = dict.fromkeys(str(each) for each in (best.architecture, *runners_up))
        found |= {"stacks": list(stacks)[: setup.k_best], "undecided": list(best.architecture.undecided)}
        found |= {"val_loss": best.val_loss, "steps": best.records[-1].step}
        found["warnings"] = [line for each in best.records for line in (each.warning or "").splitlines()]
    except SearchFailed as error:
        found["reason"] = str(error)
    return {**found, "seconds": round(time.process_time() - started, 3), "commit": COMMIT}


def fill(folder: Path, setup: Setup, n_workers: int, limit: int | None) -> None:
    """Search and train what is missing.

    Args:
        folder: of all that is kept.
        setup: of the folder.
        n_workers: processes, one thread each; with 1 all is done in this one.
        limit: searches and trainings at most; None: all.
    """
    with locked(folder / RUNS, COLUMNS) as file, mapping(n_workers) as mapped:
        measure(folder, setup)
        n_made = 0
        kept = Kept(folder)
        seeds = [seed for seed in range(setup.n_searches) if seed not in kept.searches][:limit]
        for found in mapped(partial(look, setup, kept.table), seeds):
            _write(kept.search_path(found["seed"]), json.dumps(found, indent=1) + "\n")
            print(f"search {found['seed']}: {', '.join(found['stacks'])} in {found['seconds']} s", flush=True)
            n_made += 1
        while limit is None or n_made < limit:
            runs = Kept(folder).missing()[: None if limit is None else limit - n_made]
            if not runs:
                break
            for row in mapped(partial(train, setup), runs):
                os.write(file, to_line(row).encode())  # one call, so that a kill leaves whole lines
                os.fsync(file)
                print(to_line(row).strip(), flush=True)
                n_made += 1
            time_in_turns(folder)
        time_in_turns(folder)


def measure(folder: Path, setup: Setup) -> None:
    """See that the folder has its set-up, and a latency table; measured once, since what is drawn depends on it."""
    write_setup(folder, setup)
    if not (folder / TABLE).exists():
        request = request_of(setup)
        table = measure_table(request.space, request.task.serve[0], vocab_size=request.task.vocab_size, threads=1)
        _write(folder / TABLE, table.model_dump_json())


def time_in_turns(folder: Path) -> None:
    """Latency of the derived stack against each contender that is known, in turns; kept by their stacks."""
    kept = Kept(folder)
    known = {name: run for name, run in kept.contenders().items() if run is not None}
    derived = known.pop("derived", None)
    for other in known.values():
        key = "" if derived is None else f"{derived.stack}/{derived.positions} {other.stack}/{other.positions}"
        if derived is None or key in kept.latencies:
            continue
        networks = {}
        for name, run in (("derived", derived), ("other", other)):
            request = request_of(kept.setup, run.positions)
            labels = architecture_of(run.stack, request).labels
            networks[name] = build(request.network_config(labels, request.task.vocab_size))
        kept.latencies[key] = asdict(compare_latency(networks, kept.request.task.serve[0], LATENCY_ROUNDS))
        _write(folder / LATENCY, json.dumps(kept.latencies, indent=1) + "\n")


def estimate(setup: Setup) -> dict[str, float]:
    """Processor hours of all of it, from a few updates of the parent; the searches and their random twins as said."""
    row = train(setup, Run(interleaved(setup.n_slots), "rotary", setup.lr, 0, ESTIMATE_STEPS))
    twice = train(setup, Run(interleaved(setup.n_slots), "rotary", setup.lr, 0, 2 * ESTIMATE_STEPS))
    an_update = (twice.seconds - row.seconds) / ESTIMATE_STEPS
    scoring = max(0.0, row.seconds - ESTIMATE_STEPS * an_update)
    kept_steps = setup.search_steps + 12 * setup.prune_steps  # about a dozen comparisons
    a_search = 2.5 * an_update * kept_steps  # alpha steps run every candidate: an assumption, not a measurement
    one = setup.steps * an_update + scoring
    return {
        "seconds_per_update": round(an_update, 5),
        "seconds_per_training": round(one, 2),
        "trainings": Kept.count(setup),
        "hours": round((Kept.count(setup) * one + 2 * setup.n_searches * a_search) / 3600, 4),
    }


def _write(path: Path, text: str) -> None:
    partial_ = path.with_name(f".{path.name}")
    partial_.write_text(text)
    partial_.replace(path)


def main(arguments: Sequence[str] | None = None, setup: Setup | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=KEPT / "par_text", help="of what is kept")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--limit", type=int, help="searches and trainings to make at most")
    parser.add_argument("--estimate", action="store_true", help="say how long all of it takes instead")
    parser.add_argument("--show", action="store_true", help="print what is there instead")
    read = parser.parse_args(arguments)
    setup = setup or Setup()
    if read.estimate:
        print(json.dumps({"bench": "par_text", "estimate": estimate(setup)}))
        return
    if not read.show:
        fill(read.folder, setup, read.workers, read.limit)
    show(Kept(read.folder))


if __name__ == "__main__":
    main()
