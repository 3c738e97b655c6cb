"""Searches that were stored before there were phases, bounds and lengths: listed, shown, read, estimated from."""

from __future__ import annotations

import copy
import io
from typing import Any

from rich.console import Console

from api import show
from api.watching import Picture
from db import latency_tables, queue, reports, searches, trials
from db.engine import transaction
from nas.config.method import Method
from nas.config.request import SearchRequest
from nas.steps import StepRecord
from tests.api.running import TINY, Running
from tests.api.standing import TABLE
from tests.api.test_cli import Run, run, served
from tests.api.test_show import RESULT

__all__ = ["run", "served"]  # fixtures
DATABASES = ("sqlite", "postgresql")
# What such a request had of these parts; the others have not changed.
METHOD = (
    *("alpha_estimator", "n_steps", "warmup_share", "alpha_share", "uniform_share", "batch_size", "lr"),
    *("lr_warmup_steps", "weight_decay", "grad_clip", "alpha_lr", "tau_start", "tau_end", "cost_weight"),
    *("report_every", "checkpoint_every", "eval_windows", "max_minutes", "random_signs"),
)
LINE = "1 search, 1 seed: not confirmed; attention in slot 1 of 2"
OLDER_RESULT = {**RESULT, "rule": {"statement": LINE, "verdict": "not confirmed"}}
NEW = {"space": ("layout", "layout_prior"), "task": ("serve_lengths",), "trials": ("pruner",)}


def older_request() -> dict[str, Any]:
    """TINY as an older version wrote it out."""
    whole = SearchRequest.model_validate(TINY).model_dump(mode="json")
    whole["method"] = {name: whole["method"][name] for name in METHOD}
    whole["budget"] = {"latency": None}
    for part, names in NEW.items():
        for name in names:
            del whole[part][name]
    return whole


def stored(service: Running, result: dict[str, Any] | None) -> str:
    """An older search with its reports, ended where it has a result; its id."""
    request = older_request()
    with transaction(service.engine) as connection:
        created = searches.create(
            connection, request=request, name="old", labels=["attention", "ffn", "identity"], dataset="python-docs",
            cpus=1, gpus=0, n_steps=100,
        )  # fmt: skip
        claim = queue.claim_next(connection, "test", free_cpus=4, free_gpus=0, lease_s=600)
        assert claim is not None
        latency_tables.put(connection, claim.lease, table_id="a" * 32, key="k", body=TABLE)
        searches.set_inputs(connection, claim.lease, request=request, latency_table_id="a" * 32, slot_ms=[])
        (trial,) = trials.ensure(connection, claim.lease, [trials.NewTrial("search", 0, 0, 20, {})])
        record = StepRecord(10, train_loss=2.5, probabilities=[[0.5, 0.25, 0.25]] * 2, null_gaps=[0.1, 0.1])
        reports.insert(connection, claim.lease, [reports.NewReport(trial.id, record)])
        if result is not None:
            searches.set_result(connection, claim.lease, result)
            searches.finish(connection, claim.lease, "succeeded")
    return created.search.id


def test_a_stored_request_is_read_with_the_defaults_of_what_it_lacks() -> None:
    read = SearchRequest.model_validate(older_request())
    assert read.method == Method(n_steps=20)
    assert (read.space.layout, read.task.serve_lengths, read.budget.parameters) == ((), None, None)


def test_a_search_under_way_is_listed_and_shown_without_what_it_never_told(service: Running, served: Run) -> None:
    search_id = stored(service, None)
    found = service.http.get(f"/api/v1/searches/{search_id}").json()
    assert found["request"] == older_request()
    assert found["strip"]["labels"] == ["attention", "attention"]
    assert service.http.get("/api/v1/searches").json()["items"][0]["strip"] == found["strip"]
    (row,) = service.http.get(f"/api/v1/searches/{search_id}/reports").json()["items"]
    assert (row["train_loss"], row["phase"], row["warning"], row["dual"]) == (2.5, None, None, None)
    text = served("show", search_id).out
    assert "probabilities of seed 0 after 10 steps" in text
    assert "buys" not in text


def test_a_finished_search_is_shown_and_its_time_is_told_of_no_new_one(service: Running, served: Run) -> None:
    search_id = stored(service, OLDER_RESULT)
    assert service.http.get(f"/api/v1/searches/{search_id}/report").json() == RESULT, "in the words of today"
    assert "cannot tell: the interval holds both better and worse" in served("show", search_id).out
    assert served("watch", search_id).status == 0
    estimated = service.http.post("/api/v1/searches:estimate", json=TINY).json()
    assert estimated["time"] is None, "it ran other steps than today's"


def test_an_older_search_is_followed() -> None:
    picture = Picture(copy.deepcopy(older_request()), now=lambda: 0.0)
    picture.tell("started", {}, at=0.0)
    row = {"step": 10, "train_loss": 2.5, "probabilities": [[0.5, 0.25, 0.25]] * 2, "null_gaps": [0.1, 0.1]}
    picture.tell("reports", {"trial": "search-0-0", "reports": [row]}, at=1.0)
    assert "seed 0: train 2.500 nats" in picture.line()
    console = Console(file=io.StringIO(), width=120)
    console.print(picture)
    show.print_result(OLDER_RESULT, console)
