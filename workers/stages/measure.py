"""Measure: encode the data, take or measure a latency table of each serve mode, refuse what cannot end well.

Then a trial's memory and time are estimated, and told before one is placed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping

from nas.budgets import bounds
from nas.config.request import Resources, SearchRequest
from nas.config.task import ServeMode
from nas.cost import LatencyTable, entry_key
from nas.derive import check_budget
from nas.measure import device_description, measure_table
from workers import memory
from workers.data import prepare
from workers.stages.estimate import foresee
from workers.stages.passed_on import Inputs
from workers.store import Store
from workers.trainable import device_of
from workers.trials import TrialRunner


def measure(request: SearchRequest, store: Store, trials: TrialRunner) -> Inputs:
    """Encode the data, take or measure the latency tables, and pin both to the search; refuse what cannot end well.

    The search reads the table of the first serve mode, which the budget holds for; those of the others are measured
    and kept beside, behind the look at the budget.

    Raises:
        DataError: the data are too short, or not those that the request names.
        Infeasible: no architecture meets the budget.
        InvalidInput: unknown dataset, a table that is unknown or of another serve mode, or more resources than there
            are.
    """
    trials.check(request.resources)
    prepared = prepare(request, store)
    request = prepared.request
    device = trials.call(request.resources, _described, request.resources)
    first, *others = request.task.serve
    key = table_key(request, first, device)
    if request.latency_table is not None:
        table = store.table_by_id(request.latency_table)
        table.check(request.space, first)
    else:
        table = store.table(key) or trials.call(request.resources, _measured, request, 0)
    check_budget(request, bounds(request, table))
    request = request.model_copy(update={"latency_table": table.id})
    store.inputs(request, table, key)
    tables = [table]
    for number, serve in enumerate(others, 1):
        key = table_key(request, serve, device)
        beside = store.table_beside(key)
        if beside is None:
            beside = trials.call(request.resources, _measured, request, number)
            store.keep_table(beside, key)
        tables.append(beside)
    folder = None if prepared.folder is None else str(prepared.folder)
    return Inputs(request, table, prepared, tables, foresee(request, table, folder, store, trials), device)


def table_key(request: SearchRequest, serve: ServeMode, device: Mapping[str, str]) -> str:
    """What a table was measured for: device with software and threads, and the entries at their shapes."""
    entries = sorted(entry_key(candidate, request.space, serve) for candidate in request.space.candidates)
    # The fit's offset and scale are of networks of this depth, with these embeddings and this head.
    around = dataclasses.asdict(request.space.backbone)
    parts = [sorted(device.items()), entries, request.space.n_slots, around, request.task.vocab_size]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _described(resources: Resources) -> dict[str, str]:
    """Where a trial would run."""
    return device_description(resources.cpus, device_of(resources))


def _measured(request: SearchRequest, mode: int) -> LatencyTable:
    """The table of a serve mode, where a trial would run: on its device, and only if its supernet has room there."""
    where = device_of(request.resources)
    memory.check_room(request.space, where, request.resources.n_ranks)
    with memory.explained(memory.ADVICE_MEASURING):
        return measure_table(
            request.space,
            request.task.serve[mode],
            vocab_size=request.task.vocab_size,
            threads=max(1, int(request.resources.cpus)),
            device=where,
        )
