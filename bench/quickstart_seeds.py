"""Does the quickstart's search collapse? The same search with many seeds, its guards' words counted.

A result is *collapsed* where nothing was derived, where every slot has the same candidate (all identity, too), or where
more than half of the slots are identity and the guard told on the way that without them the path is better (ours). What
the guards said of others is told beside: they warn while there is time to stop.

Each seed is kept as it ends, so it may be killed at any time and goes on where it was. One thread; no retraining.

    python -m bench.quickstart_seeds [--seeds 20]     search with the seeds that are missing, then print all
    python -m bench.quickstart_seeds --show           print what is there
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from scipy import stats

from bench.kept import KEPT, ROOT, commit
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.errors import SearchFailed
from nas.measure import measure_table
from nas.search import search
from nas.steps import StepRecord

COMMIT = commit()  # asked once: the code that runs is in memory from here on
TABLE = "table.json"
COLLAPSE = "collapse to identity"  # how the guard's sentence begins


def one(request: SearchRequest, table: LatencyTable, seed: int) -> dict[str, Any]:
    """The search of one seed, as JSON."""
    seeded = request.model_copy(update={"trials": request.trials.model_copy(update={"seed": seed, "n_seeds": 1})})
    records: list[StepRecord] = []
    started = time.process_time()
    stack, undecided, reason = None, list[int](), None
    try:
        found = search(seeded, table=table, on_record=lambda _, record: records.append(record)).best
        assert found.architecture is not None
        stack, undecided = str(found.architecture), list(found.architecture.undecided)
    except SearchFailed as error:
        reason = str(error)
    last = records[-1]
    words = [(record.step, sentence) for record in records for sentence in (record.warning or "").splitlines()]
    return {
        "seed": seed,
        "stack": stack,
        "undecided": undecided,
        "reason": reason,
        "collapsed": collapsed(stack, [sentence for _, sentence in words]),
        "words": words,
        "val_loss": last.path_loss,
        "steps": last.step,
        "seconds": round(time.process_time() - started, 1),
        "commit": COMMIT,
    }


def collapsed(stack: str | None, words: Sequence[str]) -> str | None:
    """Why a result is collapsed, or None.

    Args:
        stack: a letter a slot, or None where nothing was derived.
        words: sentences of the guards.
    """
    if stack is None:
        return "nothing was derived"
    if len(stack) > 1 and len(set(stack)) == 1:
        return f"{stack[0]} in every slot"
    told = [sentence for sentence in words if sentence.startswith(COLLAPSE)]
    return told[0] if told and stack.count(".") > len(stack) / 2 else None


def fill(folder: Path, request: SearchRequest, n_seeds: int) -> None:
    """Search with the seeds from 0 on that the folder lacks."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / TABLE).exists():
        table = measure_table(request.space, request.task.serve[0], vocab_size=request.task.vocab_size, threads=1)
        (folder / TABLE).write_text(table.model_dump_json())
    table = LatencyTable.model_validate_json((folder / TABLE).read_text())
    for seed in range(n_seeds):
        path = folder / f"seed-{seed}.json"
        if path.exists():
            continue
        found = one(request, table, seed)
        partial = path.with_name(f".{path.name}")
        partial.write_text(json.dumps(found, indent=1) + "\n")
        partial.replace(path)
        print(line(found), flush=True)


def line(found: dict[str, Any]) -> str:
    said = found["stack"] or f"none: {found['reason']}"
    verdict = f"collapsed: {found['collapsed']}" if found["collapsed"] else "stands"
    return f"seed {found['seed']:>2}  {said}  undecided {found['undecided']}  {found['seconds']} CPU s  {verdict}"


def show(folder: Path) -> None:
    """Print all seeds that are there; the last line is one JSON object."""
    found = sorted((json.loads(path.read_text()) for path in folder.glob("seed-*.json")), key=lambda each: each["seed"])
    for each in found:
        print(line(each))
        for step, sentence in each["words"]:
            print(f"         step {step}: {sentence}")
    n, k = len(found), sum(each["collapsed"] is not None for each in found)
    words = Counter(sentence.split(":")[0] for each in found for _, sentence in each["words"])
    most = float(stats.beta.ppf(0.975, k + 1, n - k)) if n > k else 1.0  # Clopper and Pearson 1934
    print(f"{k} of {n} seeds collapsed (95% interval up to {most:.3f}); words of guards: {dict(words) or 'none'}")
    print(json.dumps({"bench": "quickstart_seeds", "collapsed": k, "of": n, "at_most": most, "seeds": found}))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--request", type=Path, default=ROOT / "examples" / "quickstart.json")
    parser.add_argument("--folder", type=Path, default=KEPT / "quickstart_seeds", help="of what is kept")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--show", action="store_true", help="print what is there instead")
    read = parser.parse_args(arguments)
    if not read.show:
        fill(read.folder, SearchRequest.model_validate_json(read.request.read_text()), read.seeds)
    show(read.folder)


if __name__ == "__main__":
    main()
