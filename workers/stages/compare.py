"""Compare: derived against parent, quality on test and latency in turns, in each serve mode."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from nas.compare import compare_quality
from nas.config.request import SearchRequest
from nas.measure import PairedLatency, compare_latency
from nas.retrain import build
from workers.folder import write_json
from workers.stages.passed_on import Comparison, Inputs, Retrained
from workers.store import Store
from workers.trainable import device_of
from workers.trials import TrialRunner

_LATENCY_ROUNDS = 200  # of the comparison that is reported


def compare(
    inputs: Inputs, derived: Retrained, parent: Retrained | None, store: Store, trials: TrialRunner
) -> Comparison | None:
    """Paired differences of the derived architecture against its baseline; None without one.

    The timing is remembered in the folder: after a restart the export would have other bytes with other figures.
    """
    if parent is None:
        return None
    request = inputs.request
    nats = [each.test_nats(request.task) for each in (derived, parent)]
    quality = compare_quality(*nats, neighbours=not request.task.classifies)
    labels = [[*each.derived.architecture.labels] for each in (derived, parent)]
    against = "present model" if parent.derived.role == "present" else "interleaved parent"
    path = store.folder / "latency.json"
    remembered = json.loads(path.read_text()) if path.exists() else {}
    if remembered.get("labels") == labels and len(remembered.get("latencies", ())) == len(request.task.serve):
        return Comparison(quality, [PairedLatency(**each) for each in remembered["latencies"]], against)
    latencies = [
        trials.call(
            request.resources,
            time_in_turns,
            request.model_dump(mode="json"),
            labels[0],
            labels[1],
            _LATENCY_ROUNDS,
            mode,
        )
        for mode in range(len(request.task.serve))
    ]
    write_json(path, {"labels": labels, "latencies": [dataclasses.asdict(each) for each in latencies]})
    return Comparison(quality, latencies, against)


def time_in_turns(
    request: Mapping[str, Any], derived: Sequence[str], parent: Sequence[str], rounds: int, mode: int = 0
) -> PairedLatency:
    """Time both networks round-robin in this process, on a trial's device. Weights do not matter, so they are fresh.

    Args:
        request: as JSON.
        derived: labels of the network in question.
        parent: labels of its reference.
        rounds: timed ones.
        mode: number of the serve mode.
    """
    parsed = SearchRequest.model_validate(request)
    networks = {
        "derived": build(parsed.network_config(derived, parsed.task.vocab_size)),
        "parent": build(parsed.network_config(parent, parsed.task.vocab_size)),
    }
    threads = max(1, int(parsed.resources.cpus))
    where = device_of(parsed.resources)
    return compare_latency(networks, parsed.task.serve[mode], rounds, threads=threads, device=where)
