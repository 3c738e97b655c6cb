"""What blocks are built from: `Shape`, each block's Options, and the `NetworkConfig` of a concrete model.

Plain frozen dataclasses of the standard library, because an exported `model.py` carries this file: it must
need nothing but Python. D is the model width, H the number of heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FORMAT_VERSION = 1  # of config.json; grows when an older reader could no longer build the network


def _check_range(name: str, value: int | None, most: int) -> None:
    """A typing error of some zeros must be refused here, not run out of memory in a trial."""
    if value is not None and not 1 <= value <= most:
        raise ValueError(f"{name} is {value}; it must be between 1 and {most}")


@dataclass(frozen=True)
class Shape:
    """What every block of a network shares.

    Args:
        d_model: width D of the residual stream.
        n_heads: heads H that divide D; a head is D / H wide in every attention-like block.
        max_len: longest sequence T, in tokens.
        causal: whether a position sees only itself and earlier ones.
        positions: "rotary" inside attention-like blocks, or "none".

    Raises:
        ValueError: a size is not positive, H does not divide D, or rotary heads have an odd width.
    """

    d_model: int
    n_heads: int
    max_len: int
    causal: bool = True
    positions: str = "rotary"

    def __post_init__(self) -> None:
        for name in ("d_model", "n_heads", "max_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}")
        if self.positions not in ("rotary", "none"):
            raise ValueError(f"unknown positions {self.positions!r}; known: none, rotary")
        if self.positions == "rotary" and self.head_width % 2:
            raise ValueError(f"rotary positions need an even head width; d_model / n_heads is {self.head_width}")

    @property
    def head_width(self) -> int:
        return self.d_model // self.n_heads


@dataclass(frozen=True)
class AttentionOptions:
    """n_heads: heads of this block, each `Shape.head_width` wide; None takes the shape's."""

    n_heads: int | None = None

    def __post_init__(self) -> None:
        _check_range("n_heads", self.n_heads, 256)


@dataclass(frozen=True)
class FfnOptions:
    """ratio: hidden width as a multiple of D."""

    ratio: int = 4

    def __post_init__(self) -> None:
        _check_range("ratio", self.ratio, 64)


@dataclass(frozen=True)
class IdentityOptions:
    """Nothing to choose."""


@dataclass(frozen=True)
class SguOptions:
    """ratio: expanded width as a multiple of D; each half of it is ratio * D / 2 wide."""

    ratio: int = 4

    def __post_init__(self) -> None:
        _check_range("ratio", self.ratio, 64)


@dataclass(frozen=True)
class MgkOptions:
    """n_heads: heads, None takes half of the shape's; n_keys: Gaussian keys M per position."""

    n_heads: int | None = None
    n_keys: int = 2

    def __post_init__(self) -> None:
        _check_range("n_heads", self.n_heads, 256)
        _check_range("n_keys", self.n_keys, 64)


@dataclass(frozen=True)
class SlotConfig:
    """The block of one slot: its registered name and its options as JSON holds them."""

    block: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NetworkConfig:
    """Everything that `Network` needs, and nothing else: what `config.json` holds.

    Args:
        shape: shared by all blocks.
        vocab_size: number of token ids.
        slots: the block of each slot, first to last; an identity slot is skipped in the network.
        norm: "layer": one LayerNorm before each slot's block, and one before the head.
    """

    shape: Shape
    vocab_size: int
    slots: tuple[SlotConfig, ...]
    norm: str = "layer"
    format_version: int = FORMAT_VERSION

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkConfig:
        """Read what `config.json` holds.

        Raises:
            ValueError: the file is of another format_version.
        """
        if data["format_version"] != FORMAT_VERSION:
            raise ValueError(f"config has format_version {data['format_version']}; this code reads {FORMAT_VERSION}")
        slots = tuple(SlotConfig(slot["block"], dict(slot["options"])) for slot in data["slots"])
        return cls(Shape(**data["shape"]), data["vocab_size"], slots, data["norm"])
