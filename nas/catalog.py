"""The blocks, tasks and built-in datasets by name, without torch: what the api, the page and the CLI list.

A block is a `BlockSpec` in nas.specs and a class elsewhere, named by `class_path` and imported only where networks
are built. Formulas count one block as the slot runs it, without the slot's norm: D model width, T tokens, W head width.
Counts for MGK and attention follow the papers' convention that the head width stays D / H (spec: mgk, section 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from nas.errors import InvalidInput
from nas.specs import attention, ffn, identity, mgk, sgu
from nas.specs.base import BlockSpec

ENTRY_POINT_GROUP = "blockwright.blocks"
FAMILIES = ("attention", "ffn", "identity", "sgu", "mgk")

_BUILT_IN = (attention.SPEC, ffn.SPEC, identity.SPEC, sgu.SPEC, mgk.SPEC)


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
