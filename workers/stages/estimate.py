"""Estimate: what a search trial will take, told before one is placed, and beside it what the trials then took."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from nas import guards
from nas.checkpoint import read_state
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.errors import SearchFailed
from nas.estimate import estimate, held_by_search, n_probing
from nas.steps import StepRecord
from workers import memory
from workers.data import open_parts
from workers.folder import write_json
from workers.stages.passed_on import Inputs, Searched
from workers.stages.running import finished
from workers.store import Store, TrialKey
from workers.trainable import device_of
from workers.trials import TrialRunner

FILE = "estimate.json"  # in the search's folder
_AT_MOST = 0.05  # of a trial's weight updates may be spent on estimating it

# Of `method`, what time or memory hang on: where it varies, one estimate does not hold for all samples.
_VARYING = (
    *("n_steps", "batch_size", "micro_batch", "warmup_share", "settle_share", "alpha_share", "alpha_draws"),
    *("report_every", "checkpoint_every", "eval_windows", "prune_steps", "prune_share"),
)


def foresee(
    request: SearchRequest, table: LatencyTable, data: str | None, store: Store, trials: TrialRunner
) -> dict[str, Any]:
    """The estimate, made once per search and told; a restart takes it from the search's folder.

    Args:
        request: with the data's sizes and the table.
        table: of its first serve mode.
        data: folder of the encoded data; None of a synthetic task.
        store: where it is told.
        trials: where a trial would run.

    Returns:
        memory_bytes, seconds and prune_seconds of a trial; or why there is no estimate, as `reason`.

    Raises:
        DataError: the data are not those that the search began with.
        StopRequested: the search was asked to stop meanwhile.
    """
    path = store.folder / FILE
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
    else:
        reason = _unfit(request)
        found = {"reason": reason} if reason else _made(request, table, data, trials)
        write_json(path, found)
    store.estimate(found)
    return found


def measured(inputs: Inputs, searched: Searched, store: Store) -> dict[str, float] | None:
    """Mean seconds of the finished search trials; None where none came to its end.

    Returns:
        `seconds` of all phases but the parsimony pass, and `prune_seconds` of the pass, as `Estimate` has them.
    """
    each = []
    for seed, last in searched.last.items():
        if guards.cut_short(last) is None:  # else it took what max_minutes gave it
            key = TrialKey("search", searched.sample, seed)
            seconds = float(read_state(finished(store, key).path)["seconds"])
            request = inputs.request.resolve(searched.values, seed)
            pruning = _prune_seconds(request, store.records(key), seconds)
            each.append((seconds - pruning, pruning))
    if not each:
        return None
    search_s, prune_s = (sum(column) / len(each) for column in zip(*each, strict=True))
    return {"seconds": round(search_s, 3), "prune_seconds": round(prune_s, 3)}


def _unfit(request: SearchRequest) -> str | None:
    """Why a trial of this request cannot be estimated, if so."""
    if request.resources.n_ranks > 1:
        return f"{request.resources.n_ranks} GPUs share a trial, and one process cannot tell what they take together"
    varied = [each.pointer for each in request.ranges if each.pointer.removeprefix("/method/") in _VARYING]
    if varied:
        return f"ranges vary {', '.join(varied)}, so trials differ"
    needed, n_steps = n_probing(request), request.method.n_steps
    if needed > _AT_MOST * n_steps:
        return f"it needs {needed} weight updates, more than a twentieth of a trial's {n_steps}"
    return None


def _made(request: SearchRequest, table: LatencyTable, data: str | None, trials: TrialRunner) -> dict[str, Any]:
    resolved = request.resolve({}, request.trials.seed)
    try:
        return trials.call(request.resources, _probed, resolved, table, data)
    except SearchFailed as error:  # memory ran out or the loss did not stay finite: the trial will say so itself
        return {"reason": str(error)}


def _probed(request: SearchRequest, table: LatencyTable, data: str | None) -> dict[str, Any]:
    """Where a trial would run, with its threads and in passes of as many rows as it would make."""
    device, threads = device_of(request.resources), torch.get_num_threads()
    torch.set_num_threads(max(1, int(request.resources.cpus)))
    try:
        with memory.explained():
            parts = open_parts(request, data)
            memory.check_room(request.space, device)
            held = partial(held_by_search, request, parts, table, device)
            found = estimate(memory.fitted(request, held, device), parts, table, device)
    finally:
        torch.set_num_threads(threads)
    return {
        "memory_bytes": found.memory_bytes,
        "seconds": round(found.seconds, 3),
        "prune_seconds": round(found.prune_seconds, 3),
    }


def _prune_seconds(request: SearchRequest, records: Sequence[StepRecord], seconds: float) -> float:
    """Of a trial's seconds those of its parsimony pass: of its updates, by their rate, and of its records.

    Records tell the rate between them; what is left of the trial's time was spent on the records, alike on each.
    """
    tokens = request.method.batch_size * request.task.train_length
    spent: dict[bool, float] = {True: 0.0, False: 0.0}  # in the pass, and before it
    for before, record in pairwise(records):
        if record.tokens_per_s:
            spent[record.phase == "prune"] += (record.step - before.step) * tokens / record.tokens_per_s
    n_pruning = sum(record.phase == "prune" for record in records)
    a_record = max(0.0, seconds - sum(spent.values())) / len(records)
    return min(seconds, spent[True] + n_pruning * a_record) if n_pruning else 0.0
