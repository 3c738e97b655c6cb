"""Presets: each a whole request, and what a request that names one means."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from nas.blocks import block_classes
from nas.catalog import block
from nas.config.budget import LatencyBudget
from nas.config.request import SearchRequest, read_request
from nas.network import Network
from nas.options import NetworkConfig, SguOptions, Shape
from nas.presets import DEFAULT, DESCRIPTIONS, PRESETS
from nas.specs.backbone import network_parameters, parameters

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


def network(preset: str, labels: list[str], vocab_size: int, **space: Any) -> NetworkConfig:
    """The network of these labels, in turn, in the preset's space with some fields changed."""
    request = named(preset, space=space)
    slots = [labels[slot % len(labels)] for slot in range(request.space.n_slots)]
    return request.network_config(slots, vocab_size)


def built(config: NetworkConfig) -> int:
    """Parameters of the module itself; on the meta device they take no memory."""
    with torch.device("meta"):
        module = Network(config, block_classes(sorted({slot.block for slot in config.slots})))
    return sum(parameter.numel() for parameter in module.parameters())


WIKITEXT, SENTENCE_PIECES = 267_735, 32_000  # words of WikiText-103, and the vocabulary of sgu.md 5.4


@pytest.mark.parametrize(
    ("name", "around", "whole"),
    [
        ("transformer-xl-base", 54_599_680, 191_950_298),
        ("transformer-xl-large", 245_532_672, None),
        ("xl-24b", 40_949_760, None),
        ("par", 54_599_680, 191_950_298),
    ],
)
def test_the_parents_of_transformer_xl_have_the_known_counts(name: str, around: int, whole: int | None) -> None:
    config = network(name, ["attention", "ffn"], WIKITEXT)
    assert built(config) == network_parameters(config)
    assert network_parameters(config) - parameters(config) == around  # par-search.md 1.4: "non-embedding"
    if whole is not None:
        assert built(config) == whole


def test_the_rule_of_par_at_32_blocks_has_the_known_count() -> None:
    labels = ["attention" if slot % 4 == 0 and slot < 24 else "ffn" for slot in range(32)]
    config = network("par", labels, WIKITEXT)
    assert network_parameters(config) - parameters(config) == 62_489_600
    assert network_parameters(config) == 199_840_218


def test_par_alternates_for_40_000_steps_behind_10_000_of_weights_alone() -> None:
    """par-search.md 3.1: a fifth of the 40,000 are alpha's."""
    method = read_request({"preset": "par"}).method
    n_weight = method.settle_start - method.warmup_steps
    assert (method.warmup_steps, n_weight) == (10_000, 32_000)
    assert n_weight * method.alpha_share / (1 - method.alpha_share) == 8_000


@pytest.mark.parametrize(("name", "labels", "millions"), [
    ("bert-base", ["attention", "ffn"], 110.4),
    ("gmlp-base", ["sgu"], 130.4),
])  # fmt: skip
def test_the_parents_of_masked_models_have_the_known_counts(name: str, labels: list[str], millions: float) -> None:
    config = network(name, labels, SENTENCE_PIECES)
    assert built(config) == network_parameters(config)
    assert round(built(config) / 1e6, 1) == millions


def gmlp(n_slots: int, d_model: int, ratio: int, max_len: int, **options: Any) -> NetworkConfig:
    sgu = {"label": "sgu", "block": "sgu", "options": {"ratio": ratio, "spatial": "toeplitz", **options}}
    space = {"n_slots": n_slots, "d_model": d_model, "max_len": max_len, "candidates": [sgu]}
    task = {"train_length": max_len, "serve": [{"query_length": max_len}]}
    request = named("gmlp-base", space=space, task=task)
    return request.network_config(["sgu"] * n_slots, SENTENCE_PIECES)


def transformer(layers: int, positions: str = "relative_bias") -> NetworkConfig:
    """The Transformers beside gMLP: relative biases in the place of position embeddings."""
    attention = {"label": "attention", "block": "attention", "options": {"bias": True, "positions": positions}}
    space = {"n_slots": 2 * layers, "candidates": [attention, "ffn"], "backbone": {"position_embedding": "none"}}
    return network("bert-base", ["attention", "ffn"], SENTENCE_PIECES, **space)


@pytest.mark.parametrize(
    ("config", "millions"),
    [
        (gmlp(36, 512, 6, 128), 101.9),
        (gmlp(36, 512, 4, 128, gate="multiplicative"), 92.5),
        (gmlp(36, 512, 6, 128, gate="multiplicative"), 130.3),
        (gmlp(18, 512, 6, 128), 59.3),
        (gmlp(72, 512, 6, 128), 187.1),
        (gmlp(144, 512, 6, 128), 357.6),
        (gmlp(96, 768, 4, 512), 365.9),
        (gmlp(144, 1024, 4, 512), 941.7),
        (gmlp(36, 512, 6, 512, attention_width=64), 109.1),
        (gmlp(72, 768, 4, 512, attention_width=128), 316.3),
        (transformer(12, "relative_bias_only"), 96.1),
        (transformer(6), 67.7),
        (transformer(24), 195.3),
        (transformer(48), 365.4),
    ],
    ids=[
        "split", "no split", "no split, e 3072", "18", "72", "144", "large", "xlarge", "aMLP base", "aMLP large",
        "relative bias only", "6 layers", "24 layers", "48 layers",
    ],
)  # fmt: skip
def test_published_models_have_the_published_counts(config: NetworkConfig, millions: float) -> None:
    assert round(network_parameters(config) / 1e6, 1) == millions  # sgu.md 5.4, column "formula"


@pytest.mark.parametrize(
    ("d_model", "millions", "giga_multiply_adds"),
    [(128, 5.9, 1.3), (256, 19.4, 4.4), (512, 73.1, 15.7)],
    ids=["Ti", "S", "B"],
)
def test_units_of_the_vision_models_weigh_and_cost_what_the_spec_computes(
    d_model: int, millions: float, giga_multiply_adds: float
) -> None:
    """sgu.md 5.4: 30 units with free weights over 196 patches of 16 x 16 pixels, LayerNorms, and 1,000 classes."""
    shape, options, sgu = Shape(d_model, 1, 196, causal=False, positions="none"), SguOptions(ratio=6), block("sgu")
    patches, classes, norm = 16 * 16 * 3 * d_model, 1000 * d_model, 2 * d_model
    parameters = 30 * (sgu.parameters(shape, options) + norm) + patches + d_model + norm + classes + 1000
    assert round(parameters / 1e6, 1) == millions
    multiply_adds = 30 * sgu.flops(shape, options, 196, 0) / 2 + 196 * patches + classes
    assert round(multiply_adds / 1e9, 1) == giga_multiply_adds


@pytest.mark.parametrize(
    ("n_slots", "d_model", "options", "gflops"),
    [
        (48, 512, SguOptions(ratio=6, spatial="toeplitz"), 157.2),
        (36, 512, SguOptions(ratio=6, spatial="toeplitz", attention_width=64), 128.2),
        (96, 768, SguOptions(ratio=4, spatial="toeplitz"), 429.1),
        (72, 768, SguOptions(ratio=4, spatial="toeplitz", attention_width=128), 368.7),
    ],
    ids=["gMLP base", "aMLP base", "gMLP large", "aMLP large"],
)
def test_gated_models_cost_what_the_spec_computes(
    n_slots: int, d_model: int, options: SguOptions, gflops: float
) -> None:
    """sgu.md 5.4: 512 tokens, of which some 77 are guessed behind a D x D transform and a head of 32,000 pieces."""
    shape = Shape(d_model, 1, 512, causal=False, positions="none")
    head = 2 * 77 * (d_model * d_model + d_model * SENTENCE_PIECES)
    assert round((n_slots * block("sgu").flops(shape, options, 512, 0) + head) / 1e9, 1) == gflops


@pytest.mark.parametrize(("layers", "d_model", "gflops"), [(12, 768, 100.5), (24, 1024, 340.2)], ids=["base", "large"])
def test_bert_costs_what_the_spec_computes(layers: int, d_model: int, gflops: float) -> None:
    shape = Shape(d_model, d_model // 64, 512, causal=False, positions="none")
    head = 2 * 77 * (d_model * d_model + d_model * SENTENCE_PIECES)
    layer = sum(block(each).flops(shape, block(each).options(), 512, 0) for each in ("attention", "ffn"))
    assert round((layers * layer + head) / 1e9, 1) == gflops
