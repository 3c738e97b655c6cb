"""How far can shared weights be trusted? Stacks scored by a supernet, against the same stacks trained apart.

Two kinds of stacks:

- *enumerated*: all of three slots, on each task of the enumerated table (nas/data/enumerated), against its mean test
  loss over seeds. A stack stands in up to three places of the slots (`A..`, `.A.`, `..A`), and has the mean score of
  its places. Beside it the ceiling: how well one seed's trainings agree with another's.
- *12-slots*: at least 60 of the random stacks of bench/par_plan.py on its text, against trainings of 800 updates with
  seed 0, rotary positions and the search's rate. They are kept beside those of bench/par_text.py, whose random search
  they are a part of: what one has trained the other does not.

The supernet is that of a search with the method's defaults, without a parsimony pass; for the 12 slots that of
bench/par_text.py's request. Scores are mean losses on windows of alpha's part. What is compared, and how, stands in
`nas/trust.py`. Scores, checkpoints of supernets and trainings are kept as they come, so it may be killed at any time;
one thread a worker.

    python -m bench.trust [--parts python-docs 12-slots] [--seeds 1] [--workers 2] [--limit 1]
    python -m bench.trust --show
    python -m bench.trust --stacks AAAFAFAFAFFF SSSSAS.FAAAA       of twelve slots: score these by the first supernet
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from bench import enumerate as enumerated
from bench import par_text
from bench.kept import KEPT, commit, locked, mapping
from bench.par_plan import COLUMNS as RUN_COLUMNS
from bench.par_plan import RUNS, Kept, architecture_of, to_line
from bench.planted import setup_of
from bench.trust_plan import (
    COLUMNS,
    LARGER,
    PARTS,
    SCORES,
    Folders,
    Score,
    Sizes,
    compared,
    missing,
    missing_runs,
    missing_scores,
    request_of,
    score_line,
    table_of,
)
from bench.trust_show import show
from nas.config.request import SearchRequest
from nas.data.parts import Parts
from nas.search import Search
from nas.shared_losses import path_of, shared_losses

COMMIT = commit()  # asked once: the code that runs is in memory from here on, whatever is committed meanwhile


def parts_of(part: str, request: SearchRequest) -> Parts:
    if part != LARGER:
        return enumerated.parts_of(request.task)
    return par_text.parts_of(request.task.dataset, request.task.train_length, request.method.batch_size)


def trained(part: str, request: SearchRequest, folders: Folders) -> Search:
    """A supernet at the end of its search; one that was begun goes on from its last checkpoint."""
    seed, setup = request.trials.seed, setup_of(request)
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
    means, setup = losses.double().mean(dim=1).tolist(), setup_of(request)
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
    with locked(folders.own / SCORES, COLUMNS) as scores, mapping(n_workers) as mapped:
        if LARGER in parts:
            par_text.measure(folders.text, sizes.text)
        wanted = missing_scores(folders, sizes, parts, n_seeds)[:limit]
        for found in mapped(partial(scores_of, folders, sizes), wanted):
            _append(scores, "".join(map(score_line, found)))
            print(f"{found[0].part}, supernet {found[0].seed}: {len(found)} paths scored", flush=True)
        left = None if limit is None else limit - len(wanted)
        if LARGER not in parts or left == 0:
            return
        with locked(folders.text / RUNS, RUN_COLUMNS) as runs:
            for row in mapped(partial(par_text.train, sizes.text), missing_runs(folders, sizes)[:left]):
                _append(runs, to_line(row))
                print(to_line(row).strip(), flush=True)


def score_named(folders: Folders, sizes: Sizes, stacks: Sequence[str]) -> None:
    """Print what the larger space's first supernet says of some stacks, beside validation alone with seed 0."""
    folders.own.mkdir(parents=True, exist_ok=True)
    par_text.measure(folders.text, sizes.text)
    found, kept = scores_of(folders, sizes, (LARGER, 0, stacks)), Kept(folders.text)
    alone = {each.path: row.val_nats for each in found if (row := kept.rows.get(kept.run(each.path))) is not None}
    print("| stack | score, nats | validation alone, nats |\n| --- | --- | --- |")
    for each in sorted(found, key=lambda score: score.nats):
        print(f"| {each.path} | {each.nats:.3f} | {alone.get(each.path, float('nan')):.3f} |")
    scores = {each.path: each.nats for each in found}
    print(json.dumps({"bench": "trust", "commit": COMMIT, "scores": scores, "alone": alone}))


def _append(file: int, text: str) -> None:
    os.write(file, text.encode())  # one call, so that a kill leaves whole lines
    os.fsync(file)


def main(arguments: Sequence[str] | None = None, sizes: Sizes | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=1, help="supernets of each part")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--limit", type=int, help="supernets and trainings to make at most")
    parser.add_argument("--folder", type=Path, default=KEPT / "trust", help="of what is kept")
    parser.add_argument(
        "--text-folder", type=Path, default=KEPT / "par_text", help="of bench/par_text.py, for 12-slots"
    )
    parser.add_argument("--uniform-share", type=float, help="of the search phase's paths, in place of the default")
    parser.add_argument("--updates", type=int, help="of a supernet, in place of the default")
    parser.add_argument("--stacks", nargs="+", metavar="STACK", help="of twelve slots, to score instead")
    parser.add_argument("--show", action="store_true", help="print what is there instead")
    read = parser.parse_args(arguments)
    folders, sizes = Folders(read.folder, read.text_folder), sizes or Sizes()
    asked = {"uniform_share": read.uniform_share, "n_steps": read.updates}
    changed = {name: value for name, value in asked.items() if value is not None}
    sizes = replace(sizes, method={**sizes.method, **changed})  # a set-up of its own, whose scores stand apart
    if read.stacks:
        score_named(folders, sizes, read.stacks)
        return
    if not read.show:
        fill(folders, sizes, read.parts, read.seeds, read.workers, read.limit)
    found = [compared(part, seed, folders, sizes) for part in read.parts for seed in range(read.seeds)]
    show([each for each in found if each is not None], missing(folders, sizes, read.parts, read.seeds))


if __name__ == "__main__":
    main()
