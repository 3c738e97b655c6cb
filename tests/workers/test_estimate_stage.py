"""What a trial is estimated to take: made where it would run, once per search, told, and held against what it took."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from api.foreseen import sentence
from api.result_schemas import Result
from nas.config.request import SearchRequest
from nas.data.corpora import text_file
from nas.errors import SearchFailed
from tests import tiny
from workers.data import prepare
from workers.folder import FolderStore
from workers.inline import InlineTrials, run_local
from workers.memory import check_room
from workers.stages.estimate import FILE, foresee

LONG = {"n_steps": 640, "lr": 8e-3, "alpha_lr": 0.1, "alpha_share": 0.3, "report_every": 50, "checkpoint_every": 100}
Events = list[tuple[str, dict[str, Any]]]


def long(**overrides: Any) -> SearchRequest:
    """A request whose trials are long enough to be estimated."""
    method = {**LONG, "prune_steps": 4, "prune_windows": 16, **overrides.pop("method", {})}
    space = {"candidates": ["attention", "ffn", "identity"]}
    task = {"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]}
    return tiny.request(space=space, task=task, method=method, **overrides)


def test_it_is_told_before_any_trial_and_what_was_measured_is_beside_it(tmp_path: Path) -> None:
    request = long(retrain={"n_steps": 2, "baselines": []})
    events: Events = []
    files = {"letters": text_file(tiny.text(), tmp_path)}
    folder = tmp_path / "search"
    result = run_local(
        request, folder, files, lambda kind, data: events.append((kind, data)), tiny.table(request.space)
    )
    kinds = [kind for kind, _ in events]
    assert kinds.count("estimate") == 1
    assert kinds.index("latency_table") < kinds.index("estimate") < kinds.index("trial")
    (told,) = (data for kind, data in events if kind == "estimate")
    assert set(told) == {"memory_bytes", "seconds", "prune_seconds"}
    assert told["memory_bytes"] > 12 * request.space.n_slots * sum(request.space.parameters().values())
    assert told["seconds"] > 0
    assert told["prune_seconds"] > 0
    measured = result["estimate"].pop("measured")
    assert result["estimate"] == told == json.loads((folder / FILE).read_text())
    assert measured["seconds"] > 0
    assert measured["prune_seconds"] > 0
    assert measured["seconds"] + measured["prune_seconds"] < result["seconds"]["searching"]
    assert Result.model_validate(result).estimate is not None


def test_a_search_that_is_taken_up_again_keeps_its_estimate(tmp_path: Path) -> None:
    request = long(retrain={"n_steps": 2, "baselines": []})
    files = {"letters": text_file(tiny.text(), tmp_path)}
    events: Events = []

    def interrupt(kind: str, data: dict[str, Any]) -> None:
        events.append((kind, data))
        if kind == "trial":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_local(request, tmp_path / "search", files, interrupt, tiny.table(request.space))
    result = run_local(
        request, tmp_path / "search", files, lambda kind, data: events.append((kind, data)), tiny.table(request.space)
    )
    first, again = (data for kind, data in events if kind == "estimate")
    assert first == again
    assert {**first, "measured": result["estimate"]["measured"]} == result["estimate"]


def made(request: SearchRequest, folder: Path) -> dict[str, Any]:
    """The estimate alone, as it is told."""
    events: Events = []
    files = {"letters": text_file(tiny.text(), folder)}
    store = FolderStore(folder / "search", files, lambda kind, data: events.append((kind, data)))
    prepared = prepare(request, store)
    found = foresee(prepared.request, tiny.table(request.space), str(prepared.folder), store, InlineTrials())
    assert events == [("estimate", found)]
    return found


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"method": {"n_steps": 619}}, "it needs 31 weight updates, more than a twentieth of a trial's 619"),
        (
            {
                "ranges": [
                    {"pointer": "/method/lr", "low": 1e-3, "high": 1e-2},
                    {"pointer": "/method/batch_size", "low": 2, "high": 4},
                ],
                "trials": {"n_samples": 2},
            },
            "ranges vary /method/batch_size, so trials differ",
        ),
        (
            {"resources": {"cpus": 2, "gpus": 2}},
            "2 GPUs share a trial, and one process cannot tell what they take together",
        ),
    ],
    ids=["short", "ranges", "gpus"],
)
def test_where_none_is_made_it_says_why(overrides: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert made(long(**overrides), tmp_path) == {"reason": message}
    assert sentence({"reason": message}) == f"no estimate of a trial: {message}"


def test_a_trial_that_has_no_room_has_no_estimate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The trial itself will fail with the same words."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1))
    with pytest.raises(SearchFailed) as failed:
        check_room(long().space, "cpu")
    assert made(long(), tmp_path) == {"reason": str(failed.value)}
