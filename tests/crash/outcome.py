"""What a search has left in the database and on the disk, and whether it is that of an undisturbed one, bit by bit."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from db import artifacts, reports, trials
from db.engine import reading
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from tests import tiny
from tests.crash.under_test import UnderTest
from workers.inline import run_local
from workers.trainable import file_sha256


def request(**method: Any) -> SearchRequest:
    """A search of two seeds that takes seconds and whose alpha moves well beyond chance."""
    lively = {"n_steps": 600, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.1}
    often = {"report_every": 15, "checkpoint_every": 40}
    return tiny.request(
        task={"dataset": "python-docs"},
        method={**lively, **often, **method},
        trials={"n_seeds": 2},
        retrain={"n_steps": 120, "n_seeds": 1, "test_windows": 8},
    )


def with_table(wanted: SearchRequest) -> tuple[SearchRequest, LatencyTable]:
    """The request on a table that is given and not measured, so that it gives the same bits on any service."""
    table = tiny.table(wanted.space, wanted.task.serve[0])
    return wanted.model_copy(update={"latency_table": table.id}), table


@dataclass(frozen=True)
class Outcome:
    """All that must be equal in every run.

    Args:
        rows: by (kind, sample, seed): every report in the order of its steps, with its matrices.
        result: result.json without times and ids.
        weights: of the exported network, the bytes of model.safetensors.
    """

    rows: dict[tuple[str, int, int], list[dict[str, Any]]]
    result: dict[str, Any]
    weights: bytes


def outcome(service: UnderTest, search_id: str) -> Outcome:
    """Read it, having checked that it is whole in itself."""
    search = service.search(search_id)
    assert search.state == "succeeded", f"{search.state}: {search.reason}\n{service.said()}"
    rows: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    with reading(service.engine) as connection:
        for trial in trials.of_search(connection, search_id):
            assert (trial.state, trial.step) == ("succeeded", trial.n_steps)
            of_trial = reports.between(connection, trial.id, 0, 2**31 - 1)
            # Pairs of columns and matrices, which name their fields as the records do.
            rows[trial.kind, trial.sample, trial.seed] = [_kept({**vars(row), **vars(more)}) for row, more in of_trial]
        kept = artifacts.of_search(connection, search_id)
    asked = SearchRequest.model_validate(search.request)
    for (kind, _, _), found in rows.items():
        n_steps = asked.method.n_steps if kind == "search" else asked.retrain.n_steps
        every = (asked.method.report_every, asked.method.checkpoint_every)
        assert [row["step"] for row in found] == [
            step for step in range(n_steps + 1) if step == n_steps or any(step % each == 0 for each in every)
        ]
    assert sorted(each.kind for each in kept) == ["export", "markdown", "report", "result"]
    for each in kept:
        path = service.folder / each.path
        assert (file_sha256(path), path.stat().st_size) == (each.sha256, each.n_bytes)
    folder = service.folder / "searches" / search_id
    assert json.loads((folder / "result.json").read_text()) == search.result
    assert search.result is not None
    return Outcome(rows, _timeless(search.result), _weights(folder))


def undisturbed(wanted: SearchRequest, table: LatencyTable, folder: Path) -> Outcome:
    """The same in this process, without service, Ray or database."""
    rows: dict[tuple[str, int, int], list[dict[str, Any]]] = {}

    def collect(kind: str, data: dict[str, Any]) -> None:
        if kind == "reports":
            name, sample, seed = data["trial"].split("-")
            rows.setdefault((name, int(sample), int(seed)), []).append(_kept(data["record"]))

    result = run_local(wanted, folder, {}, collect, table)
    return Outcome(rows, _timeless(result), _weights(folder))


def _kept(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("step", *reports.DETERMINISTIC)}


def _weights(folder: Path) -> bytes:
    with zipfile.ZipFile(folder / "export.zip") as bundle:
        return bundle.read("model.safetensors")


def _timeless(result: dict[str, Any]) -> dict[str, Any]:
    of_time = ("latency", "latencies", "advice", "estimate", "seconds", "export")
    kept = {name: value for name, value in result.items() if name not in of_time}
    kept["retrained"] = [{**each, "architecture": None, "trials": None} for each in result["retrained"]]  # ids
    kept["comparisons"] = [{**each, "latency": None} for each in result["comparisons"]]
    kept |= {"rule": {**result["rule"], "id": None}, "rules": [{**each, "id": None} for each in result["rules"]]}
    return {**kept, "search": {name: value for name, value in result["search"].items() if name != "id"}}


def assert_events_are_whole(service: UnderTest, search_id: str, seen: list[dict[str, Any]]) -> None:
    """1..last without a gap, each once, in the table and as a client saw them; no report is told twice."""
    assert_told_once(service, search_id)
    assert [event["number"] for event in seen] == [*range(1, service.search(search_id).last_event + 1)]
    steps: dict[str, list[int]] = {}
    for event in seen:
        if event["type"] == "reports":
            steps.setdefault(event["data"]["trial"], []).extend(row["step"] for row in event["data"]["reports"])
    for trial in service.trials(search_id):
        assert steps[trial.id] == sorted(set(steps[trial.id])), f"of {trial.kind} {trial.sample} {trial.seed}"


def assert_told_once(service: UnderTest, search_id: str) -> None:
    """The events of a search that has succeeded, as they stand in the table."""
    told = service.events(search_id)
    assert [event.number for event in told] == [*range(1, service.search(search_id).last_event + 1)]
    kinds = [event.type for event in told]
    once = ("queued", "latency_table", "estimate", "rule", "result", "succeeded")
    assert [kinds.count(kind) for kind in once] == [1] * len(once), kinds
    for kind in ("checkpoint", "artifact", "architecture", "power"):
        data = [json.dumps(event.data, sort_keys=True) for event in told if event.type == kind]
        assert len(data) == len(set(data)), kind


def files_of(folder: Path) -> list[str]:
    """Relative paths of all files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
