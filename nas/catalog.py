"""The blocks, tasks and built-in datasets by name, without torch: what the api, the page and the CLI list.

A block is a `BlockSpec` here and a class elsewhere, named by `class_path` and imported only where networks are
built. Formulas count one block as the slot runs it, without the slot's norm: D model width, T tokens, W head width.
Counts for MGK and attention follow the papers' convention that the head width stays D / H (spec: mgk, section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from nas.errors import InvalidInput
from nas.options import AttentionOptions, FfnOptions, IdentityOptions, MgkOptions, SguOptions, Shape

ENTRY_POINT_GROUP = "blockwright.blocks"
FAMILIES = ("attention", "ffn", "identity", "sgu", "mgk")


@dataclass(frozen=True)
class BlockSpec:
    """A block as the catalogue knows it.

    Args:
        name: what requests call it.
        description: one line for people.
        family: what rules group by.
        letter: one character in the string form of an architecture.
        colour: of the family, as #RRGGBB, safe for colour-blind eyes.
        options: its frozen Options dataclass.
        parameters: (shape, options) -> number of parameters.
        flops: (shape, options, T) -> floating-point operations of one sequence, 2 per multiply-add.
        class_path: "module:Class" of the torch module.
    """

    name: str
    description: str
    family: str
    letter: str
    colour: str
    options: type[Any]
    parameters: Callable[[Shape, Any], int]
    flops: Callable[[Shape, Any, int], int]
    class_path: str


def _attention_width(shape: Shape, options: AttentionOptions) -> int:
    return (options.n_heads or shape.n_heads) * shape.head_width


def _mgk_heads(shape: Shape, options: MgkOptions) -> int:
    return options.n_heads or max(1, shape.n_heads // 2)


def _attention_parameters(shape: Shape, options: AttentionOptions) -> int:
    return 4 * shape.d_model * _attention_width(shape, options)


def _attention_flops(shape: Shape, options: AttentionOptions, tokens: int) -> int:
    width = _attention_width(shape, options)
    return 8 * tokens * shape.d_model * width + 4 * tokens * tokens * width


def _ffn_parameters(shape: Shape, options: FfnOptions) -> int:
    hidden = options.ratio * shape.d_model
    return 2 * shape.d_model * hidden + hidden + shape.d_model


def _ffn_flops(shape: Shape, options: FfnOptions, tokens: int) -> int:
    return 4 * tokens * shape.d_model * options.ratio * shape.d_model


def _sgu_parameters(shape: Shape, options: SguOptions) -> int:
    gate = options.ratio * shape.d_model // 2
    projections = shape.d_model * 2 * gate + 2 * gate + gate * shape.d_model + shape.d_model
    return projections + 2 * gate + shape.max_len**2 + shape.max_len


def _sgu_flops(shape: Shape, options: SguOptions, tokens: int) -> int:
    gate = options.ratio * shape.d_model // 2
    return 6 * tokens * shape.d_model * gate + 2 * tokens * tokens * gate


def _mgk_parameters(shape: Shape, options: MgkOptions) -> int:
    heads = _mgk_heads(shape, options)
    return (3 + options.n_keys) * shape.d_model * heads * shape.head_width + heads * options.n_keys


def _mgk_flops(shape: Shape, options: MgkOptions, tokens: int) -> int:
    width = _mgk_heads(shape, options) * shape.head_width
    return 2 * (3 + options.n_keys) * tokens * shape.d_model * width + 4 * options.n_keys * tokens * tokens * width


_BUILT_IN = (
    BlockSpec(
        "attention", "softmax self-attention with rotary positions", "attention", "A", "#4477AA",
        AttentionOptions, _attention_parameters, _attention_flops, "nas.blocks.attention:Attention",
    ),
    BlockSpec(
        "ffn", "position-wise feed-forward network, GELU", "ffn", "F", "#CCBB44",
        FfnOptions, _ffn_parameters, _ffn_flops, "nas.blocks.ffn:FeedForward",
    ),
    BlockSpec(
        "identity", "no block at all: the slot is skipped", "identity", ".", "#BBBBBB",
        IdentityOptions, lambda shape, options: 0, lambda shape, options, tokens: 0, "nas.blocks.identity:Identity",
    ),
    BlockSpec(
        "sgu", "spatial gating unit of gMLP: a learned static mix over positions gates the channels", "sgu", "S",
        "#228833", SguOptions, _sgu_parameters, _sgu_flops, "nas.blocks.sgu:SpatialGatingUnit",
    ),
    BlockSpec(
        "mgk", "attention with a mixture of Gaussian keys, half the heads", "mgk", "M", "#AA3377",
        MgkOptions, _mgk_parameters, _mgk_flops, "nas.blocks.mgk:MixtureOfGaussianKeys",
    ),
)  # fmt: skip


@cache
def blocks() -> Mapping[str, BlockSpec]:
    """Every known block by name: the built-in ones, then those of installed packages.

    Raises:
        InvalidInput: an installed package claims a name that is taken.
    """
    specs = {spec.name: spec for spec in _BUILT_IN}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        spec: BlockSpec = entry.load()
        if spec.name in specs:
            raise InvalidInput(f"entry point {entry.value!r} registers block {spec.name!r}, a name that is taken")
        specs[spec.name] = spec
    return specs


def block(name: str) -> BlockSpec:
    """The spec of one block.

    Raises:
        InvalidInput: no such block.
    """
    if name not in blocks():
        raise InvalidInput(f"unknown candidate block {name!r}; known: {', '.join(sorted(blocks()))}")
    return blocks()[name]


DATASETS: Mapping[str, str] = {
    "python-docs": "the text of Python's own language documentation (pydoc_data.topics), about 0.5 MB",
    "python-stdlib": "the sources of Python's standard library, without tests, in a fixed order, at most 16 MB",
}
