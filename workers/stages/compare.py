"""Compare: derived against parent, quality on test and latency in turns."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from nas.compare import compare_quality
from nas.config import SearchRequest
from nas.measure import PairedLatency, compare_latency
from nas.retrain import build
from workers.folder import write_json
from workers.stages.passed_on import Comparison, Inputs, Retrained
from workers.store import Store
from workers.trials import TrialRunner

_LATENCY_ROUNDS = 200  # of the comparison that is reported


def compare(
    inputs: Inputs, derived: Retrained, parent: Retrained | None, store: Store, trials: TrialRunner
) -> Comparison | None:
    """Paired differences of the derived architecture against the parent; None without a parent.

    The timing is remembered in the folder: after a restart the export would have other bytes with other figures.
    """
    if parent is None:
        return None
    request = inputs.request
    nats = [each.test_nats(request.task) for each in (derived, parent)]
    quality = compare_quality(*nats, neighbours=not request.task.classifies)
    labels = [[*each.derived.architecture.labels] for each in (derived, parent)]
    path = store.folder / "latency.json"
    remembered = json.loads(path.read_text()) if path.exists() else None
    if remembered is not None and remembered["labels"] == labels:
        return Comparison(quality, PairedLatency(**remembered["latency"]))
    latency = trials.call(
        request.resources, time_in_turns, request.model_dump(mode="json"), labels[0], labels[1], _LATENCY_ROUNDS
    )
    write_json(path, {"labels": labels, "latency": dataclasses.asdict(latency)})
    return Comparison(quality, latency)


def time_in_turns(
    request: Mapping[str, Any], derived: Sequence[str], parent: Sequence[str], rounds: int
) -> PairedLatency:
    """Time both networks round-robin in this process. Weights do not matter to the time, so they are fresh ones."""
    parsed = SearchRequest.model_validate(request)
    networks = {
        "derived": build(parsed.network_config(derived, parsed.task.vocab_size)),
        "parent": build(parsed.network_config(parent, parsed.task.vocab_size)),
    }
    threads = max(1, int(parsed.resources.cpus))
    return compare_latency(networks, parsed.task.serve[0], rounds, threads=threads)
