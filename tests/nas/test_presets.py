"""Presets: each a whole request, and what a request that names one means."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from pydantic import ValidationError

from nas.config import LatencyBudget, SearchRequest
from nas.presets import DEFAULT, DESCRIPTIONS, PRESETS

MOST_WORDS = 120  # characters of a description: a line beside the name in a terminal, three in the page


def named(preset: str, **given: Any) -> SearchRequest:
    return SearchRequest.model_validate({"preset": preset, **given})


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_is_a_whole_request_under_its_name(name: str) -> None:
    request = named(name)
    assert (request.name, request.preset) == (name, name)
    assert SearchRequest.model_validate_json(request.model_dump_json()) == request  # what is stored means the same


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_can_be_derived_and_compared(name: str) -> None:
    request = named(name)
    assert len(request.space.candidates) > 1
    assert "identity" in request.space.labels
    families = {candidate.family for candidate in request.space.candidates}
    assert bool(request.retrain.baselines) == ({"attention", "ffn"} <= families)  # the interleaved parent, or none


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_that_needs_a_gpu_asks_for_one_and_says_so(name: str) -> None:
    assert ("GPU" in DESCRIPTIONS[name]) == (named(name).resources.gpus > 0) == (named(name).space.d_model > 64)
    assert len(DESCRIPTIONS[name]) <= MOST_WORDS


def test_every_preset_is_described_in_one_order() -> None:
    assert list(DESCRIPTIONS) == list(PRESETS)


def test_reading_requests_leaves_the_presets_as_they_are() -> None:
    before = copy.deepcopy(PRESETS)
    for name in PRESETS:
        named(name, space={"n_slots": 2}, task={"serve": [{"query_length": 16}]})
    assert before == PRESETS


def test_what_is_given_stands_and_the_rest_is_the_presets() -> None:
    request = named("transformer-xl-base", name="mine", space={"n_slots": 4, "backbone": {"div_value": 2}}, trials={})
    preset = named("transformer-xl-base")
    assert request.name == "mine"
    assert request.space.n_slots == 4
    assert request.space.backbone.div_value == 2
    assert request.space.backbone.cutoffs == preset.space.backbone.cutoffs
    assert request.space.model_copy(update={"n_slots": 32, "backbone": preset.space.backbone}) == preset.space
    assert (request.task, request.trials, request.resources) == (preset.task, preset.trials, preset.resources)


def test_a_list_takes_the_place_of_the_presets_list() -> None:
    request = named("quickstart", space={"candidates": ["attention", "ffn"]}, task={"serve": [{"batch": 2}]})
    assert request.space.labels == ["attention", "ffn"]
    assert request.task.serve[0].batch == 2
    assert len(request.task.serve) == 1


@pytest.mark.parametrize(
    ("latency", "expected"),
    [({"ms": 4}, LatencyBudget(ms=4)), ({"ratio_to_parent": 0.5}, LatencyBudget(ratio_to_parent=0.5)), (None, None)],
    ids=["ms for a ratio", "another ratio", "none"],
)
def test_a_latency_bound_takes_the_place_of_the_presets_bound(latency: Any, expected: LatencyBudget | None) -> None:
    assert named("quickstart").budget.latency == LatencyBudget(ratio_to_parent=1.0)
    assert named("quickstart", budget={"latency": latency}).budget.latency == expected


def test_a_request_without_a_space_has_the_default_presets() -> None:
    empty = SearchRequest.model_validate({})
    assert empty.preset is None
    assert empty.space == named(DEFAULT).space
    assert empty.model_copy(update={"name": DEFAULT, "preset": DEFAULT}) == named(DEFAULT)


def test_a_request_that_begins_its_space_has_the_fields_own_defaults() -> None:
    explicit = SearchRequest.model_validate({"space": {"n_slots": 8}})
    assert explicit.space.norm == "layer"
    assert explicit.space.candidate("attention").options["n_kv_heads"] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("bert", f"Value error, unknown preset 'bert'; known: {', '.join(PRESETS)}"),
        ("x" * 41, "String should have at most 40 characters"),
        (["decoder"], "Input should be a valid string"),
        ({"decoder": 1}, "Input should be a valid string"),
    ],
    ids=["unknown", "long", "list", "object"],
)
def test_an_unknown_preset_is_refused_with_the_known_ones(given: Any, message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SearchRequest.model_validate_json(json.dumps({"preset": given}))
    assert [(each["loc"], each["msg"]) for each in refused.value.errors()] == [(("preset",), message)]


def test_a_preset_does_not_hide_what_is_wrong_with_a_request() -> None:
    with pytest.raises(ValidationError, match="space"):
        named("decoder", space=3)
    with pytest.raises(ValidationError, match="n_slots"):
        named("decoder", space={"n_slots": 0})
