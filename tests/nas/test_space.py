"""A space takes candidates that differ in options only, and refuses what its shape cannot hold with one clear line."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from nas.config.space import SearchSpace


def candidate(label: str, block: str, **options: Any) -> dict[str, Any]:
    return {"label": label, "block": block, "options": options}


def test_one_search_holds_several_candidates_of_a_block() -> None:
    space = SearchSpace.model_validate(
        {
            "n_heads": 8,
            "candidates": [
                candidate("attention-8", "attention"),
                candidate("attention-4", "attention", n_heads=4),
                candidate("grouped", "attention", n_kv_heads=2),
                candidate("local", "attention", window=32),
                candidate("ffn-2", "ffn", ratio=2),
                candidate("swiglu-4", "ffn", activation="swiglu"),
                "identity",
                candidate("sgu", "sgu"),
                candidate("toeplitz", "sgu", spatial="toeplitz", bias="scalar"),
                candidate("mgk-4x2", "mgk", n_heads=4, n_keys=2),
                candidate("smgk", "mgk", keys="shifted"),
            ],
        }
    )
    assert space.candidate("toeplitz").options["spatial"] == "toeplitz"
    assert space.candidate("sgu").options["spatial"] == "free", "defaults are written out"
    assert space.candidate("grouped").built_options().kv_heads(space.shape()) == 2


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            {"candidates": [candidate("grouped", "attention", n_kv_heads=3)]},
            "candidate 'grouped': n_kv_heads 3 does not divide n_heads 4",
        ),
        (
            {"candidates": [candidate("xl", "attention", positions="transformer_xl")]},
            "candidate 'xl': positions is 'transformer_xl' but the space's positions is 'rotary'; the biases u and v "
            "are shared by all layers, so the space's must be 'transformer_xl' too",
        ),
        (
            {"candidates": [candidate("heads", "sgu", n_heads=3)]},
            "candidate 'heads': n_heads 3 does not divide the gate's width 128",
        ),
        (
            {"causal": False, "memory_length": 64},
            "memory_length is 64 in an encoder; only a causal decoder has memory",
        ),
        (
            {"causal": False, "positions": "transformer_xl"},
            "candidate 'attention': positions is 'transformer_xl' in an encoder; it tells only earlier tokens apart",
        ),
        (
            {"same_length": True},
            "same_length is true but memory_length is 0; without memory the first query has one key",
        ),
        (
            {"memory_length": 64, "backbone": {"position_embedding": "sinusoidal"}},
            "memory_length is 64 with backbone.position_embedding 'sinusoidal', which counts anew in each segment; it "
            "must be 'none' with memory",
        ),
        ({"d_model": 64, "n_heads": 5}, "d_model 64 is not divisible by n_heads 5"),
        (
            {"n_slots": 4, "max_len": 65536, "candidates": ["ffn", "sgu"]},  # N x N weights: 4 * 65536^2
            "the supernet has 17.2 billion parameters, which take 275 GB with gradients and moments; it may have 8.6 "
            "billion. Candidate 'sgu' has the most, 4.3 billion in each of 4 slots",
        ),
        (
            {"n_slots": 512, "d_model": 16384, "n_heads": 256, "candidates": ["attention"]},  # 512 * 4 * 16384^2
            "the supernet has 549.8 billion parameters, which take 8,796 GB with gradients and moments; it may have "
            "8.6 billion. Candidate 'attention' has the most, 1.1 billion in each of 512 slots",
        ),
    ],
    ids=str,
)
def test_space_that_cannot_be_built_is_refused(space: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        SearchSpace.model_validate(space)
    assert [each["msg"] for each in error.value.errors()] == [f"Value error, {message}"]


def test_parameters_of_a_slot_are_those_of_its_blocks() -> None:
    space = SearchSpace.model_validate({"candidates": ["attention", "identity", TOEPLITZ]})
    assert space.parameters() == {
        "attention": 4 * 64**2,
        "identity": 0,
        "toeplitz": 64 * 256 + 256 + 128 * 64 + 64 + 2 * 128 + 128 + 1,
    }


@pytest.mark.parametrize(
    ("block", "options", "message"),
    [
        ("mgk", {"n_keys": 0}, "options of block 'mgk': n_keys is 0; it must be between 1 and 64"),
        ("attention", {"n_heads": -1}, "n_heads is -1; it must be between 1 and 256"),
        ("sgu", {"spatial": "circulant"}, "option 'spatial' of block 'sgu': input should be 'free' or 'toeplitz'"),
        ("ffn", {"ratio": "wide"}, "option 'ratio' of block 'ffn': input should be a valid integer"),
        ("mgk", {"form": "dot"}, "unknown option 'form' of block 'mgk'; known: "),
    ],
    ids=str,
)
def test_option_that_is_wrong_names_block_field_and_what_would_be_right(
    block: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as error:
        SearchSpace.model_validate({"candidates": [candidate("one", block, **options)]})
    (found,) = error.value.errors()
    assert message in found["msg"]
    assert "\n" not in found["msg"]


def test_backbone_is_closed_and_checked() -> None:
    with pytest.raises(ValidationError, match="unexpected"):
        SearchSpace.model_validate({"backbone": {"hed": 1}})
    with pytest.raises(ValidationError, match=r"cutoffs is \[20, 10\]; it must be positive and rise"):
        SearchSpace.model_validate({"backbone": {"cutoffs": [20, 10]}})


TOEPLITZ = candidate("toeplitz", "sgu", spatial="toeplitz", bias="scalar")


@pytest.mark.parametrize(
    ("space", "tokens", "reason"),
    [
        ({}, 64, None),
        ({"candidates": ["attention", "ffn", TOEPLITZ]}, 4096, None),
        ({}, 65, "candidate 'sgu' has weights for each position, which learn nothing there"),
        ({}, 129, "candidate 'sgu' cannot run there: its spatial weights are one for each pair of positions"),
        (
            {"candidates": ["attention"], "backbone": {"position_embedding": "learned"}},
            65,
            "backbone.position_embedding is 'learned', which learns nothing there",
        ),
    ],
    ids=str,
)
def test_space_tells_what_keeps_inputs_longer_than_in_training_out(
    space: dict[str, Any], tokens: int, reason: str | None
) -> None:
    found = SearchSpace.model_validate(space).bounded_by(tokens, trained=64)
    assert (found is None) if reason is None else (found is not None and found.startswith(reason))
