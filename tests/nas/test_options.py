"""Shapes and options refuse what no block can be built from; a network's config survives JSON."""

import json
import re
from dataclasses import FrozenInstanceError, asdict, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.options import (
    AttentionOptions,
    BackboneConfig,
    FfnOptions,
    IdentityOptions,
    MgkOptions,
    NetworkConfig,
    SguOptions,
    Shape,
    SlotConfig,
)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 0}, "d_model is 0; it must be at least 1"),
        ({"n_heads": 0}, "n_heads is 0; it must be at least 1"),
        ({"max_len": -1}, "max_len is -1; it must be at least 1"),
        ({"d_model": 66}, "d_model 66 is not divisible by n_heads 4"),
        (
            {"positions": "learned"},
            "unknown positions 'learned'; known: none, relative_bias, rotary, transformer_xl",
        ),
        ({"d_model": 12}, "rotary positions need an even head width; d_model / n_heads is 3"),
        (
            {"d_model": 9, "n_heads": 3, "positions": "transformer_xl"},
            "transformer_xl positions need an even d_model; it is 9",
        ),
        ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1"),
        ({"attention_dropout": -0.1}, "attention_dropout is -0.1; it must be at least 0 and below 1"),
        ({"memory_length": -1}, "memory_length is -1; it must be between 0 and 65536"),
        ({"clamp_len": 0}, "clamp_len is 0; it must be between 1 and 65536"),
        ({"eval_memory_length": 0}, "eval_memory_length is 0; it must be between 1 and 65536"),
        (
            {"eval_memory_length": 64},
            "eval_memory_length is 64 but memory_length is 0; memory is learnt to be used",
        ),
        ({"clamp_len": 9}, "clamp_len is 9 but positions is 'rotary'; it is transformer_xl's"),
        (
            {"memory_length": 64, "causal": False},
            "memory_length is 64 in an encoder; only a causal decoder has memory",
        ),
        (
            {"same_length": True},
            "same_length is true but memory_length is 0; without memory the first query has one key",
        ),
    ],
    ids=str,
)
def test_impossible_shape_is_refused(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Shape(**{"d_model": 64, "n_heads": 4, "max_len": 128, **sizes})


def test_odd_head_width_is_fine_without_rotary_positions() -> None:
    assert Shape(12, 4, 8, positions="none").head_width == 3


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (AttentionOptions, {"n_heads": 0}, "n_heads is 0; it must be between 1 and 256"),
        (AttentionOptions, {"n_kv_heads": 300}, "n_kv_heads is 300; it must be between 1 and 256"),
        (AttentionOptions, {"window": 0}, "window is 0; it must be between 1 and 65536"),
        (AttentionOptions, {"kind": "cosine"}, "unknown kind 'cosine'; known: linear, softmax"),
        (
            AttentionOptions, {"positions": "alibi"},
            "unknown positions 'alibi'; known: none, relative_bias, relative_bias_only, rotary, transformer_xl",
        ),
        (
            AttentionOptions, {"kind": "linear", "window": 8},
            "window is 8 in linear attention, which sums over all keys; leave it out",
        ),
        (
            AttentionOptions, {"kind": "linear", "positions": "relative_bias"},
            "positions is 'relative_bias' in linear attention; it can be 'none' or 'rotary'",
        ),
        (
            AttentionOptions, {"positions": "relative_bias_only", "n_kv_heads": 2},
            "n_kv_heads is 2 but relative_bias_only has no keys; leave it out",
        ),
        (FfnOptions, {"ratio": 0}, "ratio is 0; it must be between 1 and 64"),
        (FfnOptions, {"ratio": 10**9}, "ratio is 1000000000; it must be between 1 and 64"),
        (FfnOptions, {"activation": "tanh"}, "unknown activation 'tanh'; known: gelu, relu, swiglu"),
        (SguOptions, {"ratio": -1}, "ratio is -1; it must be between 1 and 64"),
        (SguOptions, {"gate": "max"}, "unknown gate 'max'; known: additive, linear, multiplicative, split"),
        (SguOptions, {"spatial": "circulant"}, "unknown spatial 'circulant'; known: free, toeplitz"),
        (SguOptions, {"apply": "slowly"}, "unknown apply 'slowly'; known: auto, explicit, fft"),
        (SguOptions, {"bias": "none"}, "unknown bias 'none'; known: scalar, vector"),
        (SguOptions, {"n_heads": 0}, "n_heads is 0; it must be between 1 and 256"),
        (SguOptions, {"attention_width": -1}, "attention_width is -1; it must be between 0 and 4096"),
        (
            SguOptions, {"apply": "fft"},
            "apply is 'fft' but spatial is 'free'; only toeplitz weights are a convolution",
        ),
        (MgkOptions, {"n_heads": 0}, "n_heads is 0; it must be between 1 and 256"),
        (MgkOptions, {"n_keys": 0}, "n_keys is 0; it must be between 1 and 64"),
        (MgkOptions, {"keys": "dot"}, "unknown keys 'dot'; known: free, shifted"),
        (MgkOptions, {"assignment": "em"}, "unknown assignment 'em'; known: hard, soft"),
        (MgkOptions, {"variance": "free"}, "unknown variance 'free'; known: fixed, learned"),
        (MgkOptions, {"kind": "cosine"}, "unknown kind 'cosine'; known: linear, softmax"),
        (MgkOptions, {"positions": "transformer_xl"}, "unknown positions 'transformer_xl'; known: none, rotary"),
        (MgkOptions, {"assignment": "hard"}, "assignment is 'hard' with keys 'free'; it needs shifted keys"),
        (
            MgkOptions, {"kind": "linear", "keys": "shifted", "assignment": "hard"},
            "assignment is 'hard' in the linear form, which has no scores to compare; use 'soft'",
        ),
        (
            MgkOptions, {"kind": "linear", "variance": "learned"},
            "variance is 'learned' in the linear form, which has no variance; use 'fixed'",
        ),
        (
            BackboneConfig, {"position_embedding": "rotary"},
            "unknown position_embedding 'rotary'; known: learned, none, sinusoidal",
        ),
        (BackboneConfig, {"pooling": "max"}, "unknown pooling 'max'; known: first, mean, none, unroll"),
        (BackboneConfig, {"token_types": -1}, "token_types is -1; it must be between 0 and 64"),
        (BackboneConfig, {"div_value": 0}, "div_value is 0; it must be between 1 and 64"),
        (
            BackboneConfig, {"div_value": 4},
            "div_value is 4 but cutoffs is empty; only clusters of an adaptive softmax narrow",
        ),
        (BackboneConfig, {"n_classes": -1}, "n_classes is -1; it must be between 0 and 65536"),
        (BackboneConfig, {"n_classes": 1}, "n_classes is 1; it must be 0 (none) or at least 2"),
        (BackboneConfig, {"cutoffs": (20, 10)}, "cutoffs is [20, 10]; it must be positive and rise"),
        (BackboneConfig, {"cutoffs": tuple(range(1, 18))}, "cutoffs has 17 entries; it may have 16"),
    ],
    ids=str,
)  # fmt: skip
def test_impossible_option_is_refused(make: type[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make(**options)


ROTARY, XL = Shape(64, 4, 128), Shape(64, 4, 128, positions="transformer_xl")


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        (AttentionOptions(n_kv_heads=3), ROTARY, "n_kv_heads 3 does not divide n_heads 4"),
        (
            AttentionOptions(positions="rotary"), Shape(12, 4, 8, positions="none"),
            "rotary positions need an even head width; d_model / n_heads is 3",
        ),
        (
            AttentionOptions(positions="transformer_xl"), ROTARY,
            "positions is 'transformer_xl' but the space's positions is 'rotary'; the biases u and v are shared by all "
            "layers, so the space's must be 'transformer_xl' too",
        ),
        (
            AttentionOptions(n_heads=2), XL,
            "n_heads is 2, the space's 4; with transformer_xl positions they must be equal, since all layers share the "
            "biases u and v",
        ),
        (
            AttentionOptions(), Shape(64, 4, 128, causal=False, positions="transformer_xl"),
            "positions is 'transformer_xl' in an encoder; it tells only earlier tokens apart",
        ),
        (
            SguOptions(ratio=1), Shape(9, 3, 8, positions="none"),
            "ratio * d_model is 9; a split gate needs an even width",
        ),
        (SguOptions(n_heads=3), ROTARY, "n_heads 3 does not divide the gate's width 128"),
        (
            MgkOptions(), Shape(9, 3, 8, positions="relative_bias"),
            "rotary positions need an even head width; d_model / n_heads is 3",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_option_that_does_not_fit_the_shape_is_refused(options: Any, shape: Shape, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        options.check(shape)


def test_defaults_fit_every_shape_with_positions_that_they_can_take() -> None:
    for positions in ("none", "relative_bias", "rotary", "transformer_xl"):
        for options in (AttentionOptions(), AttentionOptions(kind="linear"), SguOptions(), MgkOptions()):
            options.check(Shape(64, 4, 128, positions=positions))
    assert MgkOptions().where(XL) == "rotary"
    assert AttentionOptions(kind="linear").where(XL) == "none"


@pytest.mark.parametrize(("d_model", "ratio", "hidden"), [(64, 4, 176), (512, 4, 1368), (16, 1, 16), (96, 4, 256)])
def test_swiglu_weighs_what_two_matrices_weigh(d_model: int, ratio: int, hidden: int) -> None:
    options = FfnOptions(ratio=ratio, activation="swiglu")
    assert options.hidden(Shape(d_model, 1, 8)) == hidden
    assert hidden % 8 == 0
    assert 0 <= 3 * hidden - 2 * ratio * d_model < 24


def test_options_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        FfnOptions().ratio = 2  # type: ignore[misc]
    assert fields(IdentityOptions) == ()


slots = st.one_of(
    st.builds(lambda ratio: SlotConfig("ffn", {"ratio": ratio}), st.integers(1, 8)),
    st.builds(lambda n_heads: SlotConfig("attention", {"n_heads": n_heads}), st.none() | st.integers(1, 8)),
    st.just(SlotConfig("identity")),
)


@given(chosen=st.lists(slots, max_size=6), max_len=st.integers(1, 4096), causal=st.booleans())
def test_network_config_is_the_same_after_a_round_trip_through_json(
    chosen: list[SlotConfig], max_len: int, causal: bool
) -> None:
    backbone = BackboneConfig(position_embedding="learned", cutoffs=(20, 40), tied_head=True)
    shape = Shape(64, 4, max_len, causal, dropout=0.1, memory_length=8 if causal else 0)
    config = NetworkConfig(shape, 256, tuple(chosen), "rms", "post", backbone)
    assert NetworkConfig.from_json(json.loads(json.dumps(asdict(config)))) == config


def test_config_of_another_format_is_refused() -> None:
    data = asdict(NetworkConfig(Shape(64, 4, 128), 256, ()))
    with pytest.raises(ValueError, match=r"^config has format_version 3; this code reads 2$"):
        NetworkConfig.from_json({**data, "format_version": 3})


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"norm": "batch"}, "unknown norm 'batch'; known: layer, rms"),
        ({"norm_position": "sandwich"}, "unknown norm_position 'sandwich'; known: post, pre"),
        (
            {"backbone": BackboneConfig(cutoffs=(10, 30, 90, 500), div_value=8)},
            "div_value is 8 with 3 cutoffs below the vocabulary; the last cluster of d_model 64 would have no width",
        ),
        (
            {"backbone": BackboneConfig(n_classes=2)},
            "pooling is 'first' in a decoder, whose first token sees no other; it must be 'mean'",
        ),
    ],
    ids=str,
)
def test_impossible_network_is_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        NetworkConfig(Shape(64, 4, 128), 256, (), **parts)
