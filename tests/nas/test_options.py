"""Shapes and options refuse what no block can be built from; a network's config survives JSON."""

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.options import (
    AttentionOptions,
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
        ({"positions": "learned"}, "unknown positions 'learned'; known: none, rotary"),
        ({"d_model": 12}, "rotary positions need an even head width; d_model / n_heads is 3"),
    ],
    ids=["width", "heads", "length", "indivisible", "positions", "odd head"],
)
def test_impossible_shape_is_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Shape(**{"d_model": 64, "n_heads": 4, "max_len": 128, **sizes})  # type: ignore[arg-type]


def test_odd_head_width_is_fine_without_rotary_positions() -> None:
    assert Shape(12, 4, 8, positions="none").head_width == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AttentionOptions(n_heads=0), "n_heads is 0; it must be between 1 and 256"),
        (lambda: FfnOptions(ratio=0), "ratio is 0; it must be between 1 and 64"),
        (lambda: FfnOptions(ratio=10**9), "ratio is 1000000000; it must be between 1 and 64"),
        (lambda: SguOptions(ratio=-1), "ratio is -1; it must be between 1 and 64"),
        (lambda: MgkOptions(n_heads=0), "n_heads is 0; it must be between 1 and 256"),
        (lambda: MgkOptions(n_keys=0), "n_keys is 0; it must be between 1 and 64"),
    ],
    ids=["attention", "ffn", "huge ffn", "sgu", "mgk heads", "mgk keys"],
)
def test_impossible_option_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        make()


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
    config = NetworkConfig(Shape(64, 4, max_len, causal), 256, tuple(chosen))
    assert NetworkConfig.from_json(json.loads(json.dumps(asdict(config)))) == config


def test_config_of_another_format_is_refused() -> None:
    data = asdict(NetworkConfig(Shape(64, 4, 128), 256, ()))
    with pytest.raises(ValueError, match=r"^config has format_version 2; this code reads 1$"):
        NetworkConfig.from_json({**data, "format_version": 2})
