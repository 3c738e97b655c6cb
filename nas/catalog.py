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


_own: dict[str, BlockSpec] = {}  # of this process alone: what Python code has registered


@cache
def installed() -> Mapping[str, BlockSpec]:
    """The built-in blocks by name, then those of installed packages.

    Raises:
        InvalidInput: what an installed package registers cannot be loaded, is no BlockSpec, or takes a name or a
            letter that is taken.
    """
    specs = {spec.name: spec for spec in _BUILT_IN}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            spec = entry.load()
        except (ImportError, AttributeError, InvalidInput) as error:
            raise InvalidInput(f"entry point {entry.value!r} cannot be loaded: {error}") from error
        if not isinstance(spec, BlockSpec):
            raise InvalidInput(f"entry point {entry.value!r} names {spec!r}; it must name a nas.specs.base.BlockSpec")
        if spec.name in specs:
            raise InvalidInput(f"entry point {entry.value!r} registers block {spec.name!r}, a name that is taken")
        for other in specs.values():
            if other.letter == spec.letter:
                raise InvalidInput(
                    f"entry point {entry.value!r} registers letter {spec.letter!r}, which is block {other.name!r}'s"
                )
        specs[spec.name] = spec
    return specs


def blocks() -> Mapping[str, BlockSpec]:
    """Every known block by name: built in, installed, then registered in this process.

    Raises:
        InvalidInput: as `installed`.
    """
    return {**installed(), **_own}


def register(spec: BlockSpec) -> None:
    """Make a block known in this process; one of the same name that was registered here before is replaced.

    Raises:
        InvalidInput: the name is of a built-in or an installed block, or the letter is another block's.
    """
    if spec.name in installed():
        origin = "built in" if spec.name in [each.name for each in _BUILT_IN] else "installed"
        raise InvalidInput(f"block {spec.name!r} is {origin}; give yours another name")
    for other in blocks().values():
        if other.letter == spec.letter and other.name != spec.name:
            raise InvalidInput(f"letter {spec.letter!r} of block {spec.name!r} is block {other.name!r}'s; take another")
    _own[spec.name] = spec


def families() -> tuple[str, ...]:
    """Every family, the built-in ones first."""
    return tuple(dict.fromkeys([*FAMILIES, *(spec.family for spec in blocks().values())]))


def block(name: str) -> BlockSpec:
    """The spec of one block.

    Raises:
        InvalidInput: no such block.
    """
    known = blocks()
    if name not in known:
        raise InvalidInput(f"unknown candidate block {name!r}; known: {', '.join(sorted(known))}")
    return known[name]


DATASETS: Mapping[str, str] = {
    "python-docs": "the text of Python's own language documentation (pydoc_data.topics), about 0.5 MB",
    "python-stdlib": "the sources of Python's standard library, without tests, in a fixed order, at most 16 MB",
}
