"""What a request would take, before it is queued: the size of its space, weight updates, parameters, memory and time.

Everything but time is counted by formula, without torch. Time is told only where a search of the same shape has ended
on this service: a guess from another shape would be worth nothing. L slots, K candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from api import estimate_schemas
from db import reports, searches
from nas import catalog
from nas.architecture import interleaved
from nas.config.method import Method
from nas.config.request import SearchRequest
from nas.specs import backbone
from nas.specs.backbone import network_parameters

_FLOAT32 = 4  # bytes; weights, gradients and moments are kept so in every precision
_EXACT = 2**53  # above, a JavaScript reader of JSON would round
_LOOKED_THROUGH = 200  # newest searches that have succeeded

# Of a request, what the speed of its trials hangs on; the rest of `method` decides how many steps there are.
_SPACE_ASIDE = ("layout", "layout_prior")
_TASK = ("objective", "dataset", "dataset_options", "tokenizer", "train_length")
_STEPS = ("/method/n_steps", "/method/prune_steps", "/method/prune_share")
_METHOD = (
    *("alpha_estimator", "alpha_share", "alpha_draws", "batch_size", "micro_batch", "precision"),
    *("report_every", "eval_windows"),
)


def estimate(connection: Connection, request: SearchRequest) -> estimate_schemas.Estimate:
    """What the request would take at most."""
    trials = _trials(request)
    memory = _memory(request)
    rates, why = _rates(connection, request)
    return estimate_schemas.Estimate(
        space=_space(request), trials=trials, memory=memory, time=_time(request, trials, rates), time_unknown=why
    )


def _space(request: SearchRequest) -> estimate_schemas.SpaceSize:
    choices = [sum(row) for row in request.space.allowed]
    number = math.prod(choices)
    return estimate_schemas.SpaceSize(
        n_slots=request.space.n_slots,
        n_candidates=len(request.space.candidates),
        n_architectures=number if number <= _EXACT else None,
        log10_architectures=sum(math.log10(each) for each in choices),
    )


def _trials(request: SearchRequest) -> estimate_schemas.TrialCount:
    """Every sample's longest: a number of steps that `ranges` varies counts at its upper end."""
    upper = {each.pointer: each.high for each in request.ranges if each.pointer in _STEPS}
    method: Method = request.method_with(upper)
    retrainings = request.retrain.most_trials(request.trials.n_seeds)
    n_searches = request.trials.n_samples * request.trials.n_seeds
    return estimate_schemas.TrialCount(
        searches=n_searches,
        search_steps=method.most_steps,
        retrainings=retrainings,
        retrain_steps=request.retrain.n_steps,
        n_steps=n_searches * method.most_steps + retrainings * request.retrain.n_steps,
    )


def _memory(request: SearchRequest) -> estimate_schemas.MemorySize:
    space = request.space
    first = request.network_config([space.labels[0]] * space.n_slots, request.task.vocab_size)
    of_block, norm = space.parameters(), backbone.norm_parameters(first)
    blocks = [candidate for candidate in space.candidates if candidate.family != "identity"]
    slot = sum(of_block[each.label] for each in blocks)
    slot += norm * (1 if space.norm_position == "pre" else len(blocks))  # behind a sum, each candidate has its own
    supernet = backbone.parameters(first) + space.n_slots * slot
    largest = max(space.labels, key=lambda label: of_block[label])
    families = {candidate.family for candidate in space.candidates}
    parent = None
    if {"attention", "ffn"} <= families:
        config = request.network_config(interleaved(space).labels, request.task.vocab_size)
        parent = network_parameters(config)
    return estimate_schemas.MemorySize(
        supernet_parameters=supernet,
        largest_parameters=network_parameters(
            request.network_config([largest] * space.n_slots, request.task.vocab_size)
        ),
        parent_parameters=parent,
        uncounted=[each.label for each in space.candidates if catalog.block(each.block).own],
        weight_bytes=_FLOAT32 * supernet,
        gradient_bytes=_FLOAT32 * supernet,
        moment_bytes=2 * _FLOAT32 * supernet,
        total_bytes=4 * _FLOAT32 * supernet,
    )


def _time(
    request: SearchRequest, trials: estimate_schemas.TrialCount, rates: tuple[float, float] | None
) -> estimate_schemas.TimeNeeded | None:
    if rates is None:
        return None
    tokens = request.method.batch_size * request.task.train_length
    search_s, retrain_s = trials.search_steps * tokens / rates[0], trials.retrain_steps * tokens / rates[1]
    return estimate_schemas.TimeNeeded(
        search_trial_s=search_s,
        retraining_s=retrain_s,
        all_s=trials.searches * search_s + trials.retrainings * retrain_s,
        tokens_per_s=rates[0],
    )


def _rates(connection: Connection, request: SearchRequest) -> tuple[tuple[float, float] | None, str | None]:
    """Tokens per second of search trials and of retrainings of the newest search of the same shape, or why not."""
    varied = [each.pointer for each in request.ranges if each.pointer.rpartition("/")[2] in _METHOD]
    if varied:
        return None, f"ranges vary {', '.join(varied)}, which the speed depends on"
    wanted = _shape(request.model_dump(mode="json"))
    for row in searches.list(connection, state="succeeded", limit=_LOOKED_THROUGH).items:
        if _shape(row.request) == wanted and not row.request.get("ranges"):
            found = [reports.tokens_per_s(connection, row.id, kind) for kind in ("search", "retrain")]
            if found[0] is not None and found[1] is not None:
                return (found[0], found[1]), None
    return None, (
        "no search of the same space, data, batch, estimator and resources has ended here, and the speed of another "
        "one would tell nothing"
    )


def _shape(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the speed depends on, of a stored request of this or an older version."""
    space = {name: value for name, value in request["space"].items() if name not in _SPACE_ASIDE}
    space["backbone"] = {name: value for name, value in space.get("backbone", {}).items() if name != "n_classes"}
    task = _named(request["task"], _TASK)
    task["tokenizer"] = {name: value for name, value in task["tokenizer"].items() if name != "fingerprint"}
    method = _named(request["method"], _METHOD)
    return {"space": space, "task": task, "method": method, "resources": request["resources"]}


def _named(part: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: part.get(name) for name in names}
