"""What a request need not say, as its task has only one answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nas.catalog import TASKS
from nas.config.request import SearchRequest, read_request
from nas.presets import PRESETS
from nas.settled import settle


@pytest.mark.parametrize(
    ("body", "causal", "pooling"),
    [
        ({"objective": "sequence_classification"}, True, "mean"),
        ({"objective": "token_classification"}, True, "none"),
        ({"objective": "masked_lm"}, False, "first"),
        ({"objective": "causal_lm"}, True, "first"),
        ({"dataset": "compression"}, True, "unroll"),
        ({"dataset": "lookup"}, True, "none"),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_what_a_task_settles_need_not_be_said(body: dict[str, Any], causal: bool, pooling: str) -> None:
    request = read_request({"task": body})
    assert (request.space.causal, request.space.backbone.pooling) == (causal, pooling)
    assert request.space.candidates == SearchRequest().space.candidates, "a request without a space keeps its preset's"
    assert read_request(json.loads(request.model_dump_json())) == request, "what is stored says it"


@pytest.mark.parametrize("name", TASKS)
def test_a_synthetic_task_needs_its_name_and_a_length_alone(name: str) -> None:
    request = read_request({"space": {"max_len": 2048}, "task": {"dataset": name, "train_length": 2048}})
    assert request.task.objective == TASKS[name].objective


def test_an_encoder_of_documents_is_read_at_its_first_token() -> None:
    body = {"space": {"causal": False}, "task": {"objective": "sequence_classification"}}
    assert read_request(body).space.backbone.pooling == "first"


def test_what_a_request_or_its_preset_says_stands() -> None:
    said = {
        "space": {"causal": False, "backbone": {"pooling": "mean"}},
        "task": {"objective": "sequence_classification"},
    }
    assert settle(said) == said
    assert read_request({"preset": "bert-small", "task": {"objective": "token_classification"}}).space.causal is False


@pytest.mark.parametrize("name", PRESETS)
def test_presets_mean_what_they_say(name: str) -> None:
    assert read_request({"preset": name}).space.causal is PRESETS[name]["space"].get("causal", True)


@pytest.mark.parametrize(
    "body", [{"task": 3}, {"space": []}, {"task": {"dataset": {}}}, {"task": {"objective": []}}], ids=str
)
def test_what_is_no_request_is_left_to_the_checks(body: dict[str, Any]) -> None:
    assert settle(body) == body
