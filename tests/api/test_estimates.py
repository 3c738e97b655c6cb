"""What a request would take, told before it is queued: counted, checked against what is built, and never guessed."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from api.client import Client
from api.routes.searches import planned_steps
from db import reports, searches, trials
from db.engine import transaction
from nas.blocks import block_classes
from nas.config.request import SearchRequest
from nas.presets import PRESETS
from nas.steps import StepRecord
from nas.supernet import Supernet
from tests import tiny
from tests.api.running import TINY, Claimed, Running
from tests.api.test_cli import Run, run, served

__all__ = ["run", "served"]  # fixtures
ROOT = "/api/v1/searches:estimate"
DATABASES = ("sqlite", "postgresql")


def asked(service: Running, body: dict[str, Any]) -> dict[str, Any]:
    answer = service.http.post(ROOT, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def with_(part: str, **changes: Any) -> dict[str, Any]:
    return {**TINY, part: {**TINY.get(part, {}), **changes}}


@pytest.mark.parametrize("path", ["/api/v1/searches", ROOT], ids=["submit", "estimate"])
@pytest.mark.parametrize("name", ["parameters", "flops", "cache_bytes", "latency"])
def test_a_budget_that_nothing_meets_is_refused_before_anything_is_measured(
    service: Running, path: str, name: str
) -> None:
    body = with_("space", candidates=["attention", {"label": "wide", "block": "attention"}])
    allowed = {"ms": 0.5} if name == "latency" else {"at_most": 1}
    body = {**body, "budget": {name: allowed}, "retrain": {"n_steps": 10, "baselines": []}}
    if name == "latency":
        assert service.http.post(path, json=body).is_success, "no table is known, and none is guessed"
        table = tiny.table(SearchRequest.model_validate(body).space, SearchRequest.model_validate(body).task.serve[0])
        assert service.http.post("/api/v1/latency-tables", json=table.model_dump(mode="json")).is_success
        body["latency_table"] = table.id
    answer = service.http.post(path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "infeasible")
    assert re.match(rf"budget\.{name} allows \S+ \S+; the smallest architecture has ", answer.json()["detail"])


def test_nothing_is_stored(service: Running) -> None:
    asked(service, TINY)
    assert service.http.get("/api/v1/searches").json()["items"] == []


@pytest.mark.parametrize("preset", ["quickstart", "transformer-xl-small", "bert-small", "gmlp-small"])
def test_the_supernet_has_the_parameters_that_were_told(service: Running, preset: str) -> None:
    request = SearchRequest.model_validate({"preset": preset})
    memory = asked(service, {"preset": preset})["memory"]
    classes = block_classes(sorted({candidate.block for candidate in request.space.candidates}))
    built = Supernet(request.space, request.task.vocab_size, classes)
    n = sum(parameter.numel() for parameter in built.parameters())
    assert memory["supernet_parameters"] == n
    assert (memory["weight_bytes"], memory["gradient_bytes"], memory["moment_bytes"]) == (4 * n, 4 * n, 8 * n)
    assert memory["total_bytes"] == 16 * n
    assert memory["largest_parameters"] < n
    assert memory["uncounted"] == []


def test_the_size_of_a_space_follows_its_layout_and_is_exact_as_long_as_json_is(service: Running) -> None:
    assert asked(service, TINY)["space"] == {
        "n_slots": 2, "n_candidates": 3, "n_architectures": 9, "log10_architectures": 2 * math.log10(3),
    }  # fmt: skip
    layout = [{"present": "ffn", "fixed": True}, {"forbidden": ["identity"]}]
    assert asked(service, with_("space", layout=layout))["space"]["n_architectures"] == 2
    deep = asked(service, with_("space", n_slots=40))["space"]
    assert deep["n_architectures"] is None
    assert deep["log10_architectures"] == pytest.approx(40 * math.log10(3))


def test_weight_updates_are_those_of_the_longest_sample(service: Running) -> None:
    request = SearchRequest.model_validate(TINY)
    most = request.method.most_steps
    assert asked(service, TINY)["trials"] == {
        "searches": 2, "search_steps": most, "retrainings": 6, "retrain_steps": 10, "n_steps": planned_steps(request),
    }  # fmt: skip
    ranges = [{"pointer": "/method/n_steps", "low": 10, "high": 100}]
    varied = asked(service, {**TINY, "ranges": ranges, "trials": {"n_samples": 3}})["trials"]
    assert (varied["searches"], varied["search_steps"]) == (6, request.method_with({"/method/n_steps": 100}).most_steps)
    ranges = [{"pointer": "/method/prune_share", "low": 1, "high": 50}]
    varied = asked(service, {**TINY, "ranges": ranges, "trials": {"n_samples": 3}})["trials"]
    assert varied["search_steps"] == request.method_with({"/method/prune_share": 50}).most_steps


def ended(service: Running, claimed: Claimed) -> None:
    """The search of the fixture, ended; its trials ran at 100 and 300, and at 50 tokens per second."""
    with transaction(service.engine) as connection:
        (retraining,) = trials.ensure(connection, claimed.lease, [trials.NewTrial("retrain", 0, 0, 10, {})])
        told = [(claimed.trial, 10, 100.0), (claimed.trial, 20, 300.0), (retraining.id, 10, 50.0)]
        rows = [reports.NewReport(each, StepRecord(step, tokens_per_s=rate)) for each, step, rate in told]
        reports.insert(connection, claimed.lease, rows)
        searches.set_result(connection, claimed.lease, {})
        searches.finish(connection, claimed.lease, "succeeded")


def test_time_is_told_from_a_search_of_the_same_shape(service: Running, claimed: Claimed) -> None:
    before = asked(service, TINY)
    assert before["time"] is None
    assert "no search of the same space" in before["time_unknown"]
    ended(service, claimed)
    found = asked(service, TINY)
    tokens, count = 8 * 16, found["trials"]
    assert found["time_unknown"] is None
    assert found["time"]["tokens_per_s"] == pytest.approx(150.0)  # 10 steps at 100 and 10 at 300
    assert found["time"]["search_trial_s"] == pytest.approx(count["search_steps"] * tokens / 150)
    assert found["time"]["retraining_s"] == pytest.approx(10 * tokens / 50)
    each = (found["time"]["search_trial_s"], found["time"]["retraining_s"])
    assert found["time"]["all_s"] == pytest.approx(2 * each[0] + 6 * each[1])
    longer = asked(service, with_("method", n_steps=40, lr=0.01))  # another number of steps is the same shape
    assert longer["time"]["search_trial_s"] > found["time"]["search_trial_s"]


@pytest.mark.parametrize(
    "body",
    [
        with_("space", d_model=32),
        with_("task", train_length=8),
        with_("method", batch_size=16),
        with_("method", alpha_estimator="soft"),
        {**TINY, "resources": {"cpus": 2}},
    ],
    ids=["width", "length", "batch", "estimator", "resources"],
)
def test_no_time_is_told_from_another_shape(service: Running, claimed: Claimed, body: dict[str, Any]) -> None:
    ended(service, claimed)
    assert asked(service, body)["time"] is None


def test_no_time_is_told_where_the_speed_would_vary(service: Running, claimed: Claimed) -> None:
    ended(service, claimed)
    ranges = [{"pointer": "/method/batch_size", "low": 4, "high": 8}]
    found = asked(service, {**TINY, "ranges": ranges})
    assert (found["time"], found["time_unknown"]) == (
        None,
        "ranges vary /method/batch_size, which the speed depends on",
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"task": {**TINY["task"], "dataset": "absent"}}, "unknown-dataset"),
        ({"latency_table": "f" * 32}, "invalid-input"),
    ],
    ids=["dataset", "table"],
)
def test_what_submitting_refuses_is_refused_here(service: Running, change: dict[str, Any], code: str) -> None:
    answers = [service.http.post(url, json={**TINY, **change}) for url in (ROOT, "/api/v1/searches")]
    assert [(each.status_code, each.json()["code"]) for each in answers] == [(422, code)] * 2
    assert answers[0].json()["detail"] == answers[1].json()["detail"]


def test_the_command_line_tells_it_in_lines_or_as_json(
    served: Run, service: Running, claimed: Claimed, tmp_path: Path
) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(TINY))
    rows = [" ".join(line.split()) for line in served("estimate", str(file)).out.splitlines()]
    assert rows[0] == "architectures 9 (2 slots, 3 candidates)"
    assert rows[1].startswith("weight updates at most ")
    assert rows[-1].startswith("time unknown: no search of the same space")
    ended(service, claimed)
    assert "time at most " in " ".join(served("estimate", str(file)).out.split())
    with Client(service.url) as client:
        assert json.loads(served("estimate", str(file), "--json").out) == client.estimate(TINY)
    deep = served("estimate", "--preset", "gmlp-base").out
    assert f"10^{48 * math.log10(len(PRESETS['gmlp-base']['space']['candidates'])):.1f}" in deep
