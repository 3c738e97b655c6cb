"""The blocks, tasks and built-in datasets by name, without torch: what the api, the page and the CLI list.

A block is a `BlockSpec` in nas.specs and a class elsewhere, named by `class_path` and imported only where networks
are built. Formulas count one block as the slot runs it, without the slot's norm: D model width, T tokens, W head width.
Counts for MGK and attention follow the papers' convention that the head width stays D / H (spec: mgk, section 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from nas.errors import InvalidInput
from nas.specs import attention, ffn, identity, mgk, probe, sgu
from nas.specs.base import BlockSpec
from nas.specs.tasks import listops, mechanistic, planted
from nas.specs.tasks.base import TaskSpec

ENTRY_POINT_GROUP = "blockwright.blocks"
FAMILIES = ("attention", "ffn", "identity", "sgu", "mgk")

BUILT_IN = {spec.name: spec for spec in (attention.SPEC, ffn.SPEC, identity.SPEC, sgu.SPEC, mgk.SPEC)}

_own: dict[str, BlockSpec] = {}  # of this process alone: what Python code has registered


@dataclass(frozen=True)
class Installed:
    """What installed packages register, beside the built-in blocks.

    Args:
        specs: every block by name, the built-in ones first.
        refused: one line for each entry point that is left out.
    """

    specs: Mapping[str, BlockSpec]
    refused: tuple[str, ...]


@cache
def installed() -> Installed:
    """The built-in blocks, and those of installed packages.

    A package that cannot be used is left out, not raised: everything here reads the catalogue, the command that says
    what is wrong with an installation too.
    """
    specs = dict(BUILT_IN)
    refused = []
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            spec = _loaded(entry, specs)
        except InvalidInput as error:
            refused.append(str(error))
        else:
            specs[spec.name] = spec
    return Installed(specs, tuple(refused))


def _loaded(entry: EntryPoint, known: Mapping[str, BlockSpec]) -> BlockSpec:
    """Raises: InvalidInput: the entry point cannot be loaded, or what it names cannot be registered beside `known`."""
    try:
        spec = entry.load()
    except (Exception, SystemExit) as error:  # another's module may raise anything
        kind = "" if isinstance(error, ImportError | InvalidInput) else f"{type(error).__name__}: "
        raise InvalidInput(f"entry point {entry.value!r} cannot be loaded: {kind}{probe.first_line(error)}") from error
    if not isinstance(spec, BlockSpec):
        raise InvalidInput(f"entry point {entry.value!r} names {spec!r}; it must name a nas.specs.base.BlockSpec")
    if spec.name in known:
        raise InvalidInput(f"entry point {entry.value!r} registers block {spec.name!r}, a name that is taken")
    for other in known.values():
        if other.letter == spec.letter:
            raise InvalidInput(
                f"entry point {entry.value!r} registers letter {spec.letter!r}, which is block {other.name!r}'s"
            )
    try:
        probe.check_spec(spec)
    except InvalidInput as error:
        raise InvalidInput(f"entry point {entry.value!r}: {error}") from error
    return spec


def blocks() -> Mapping[str, BlockSpec]:
    """Every known block by name: built in, installed, then registered in this process."""
    return {**installed().specs, **_own}


def register(spec: BlockSpec) -> None:
    """Make a block known in this process; one of the same name that was registered here before is replaced.

    Raises:
        InvalidInput: the name is of a built-in or an installed block, or the letter is another block's.
    """
    if spec.name in installed().specs:
        origin = "built in" if spec.name in BUILT_IN else "installed"
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
        left_out = "".join(f"; left out: {reason}" for reason in installed().refused)
        raise InvalidInput(f"unknown candidate block {name!r}; known: {', '.join(sorted(known))}{left_out}")
    return known[name]


DATASETS: Mapping[str, str] = {
    "python-docs": "the text of Python's own language documentation (pydoc_data.topics), about 0.5 MB",
    "python-stdlib": "the sources of Python's standard library, without tests, in a fixed order, at most 16 MB",
}

TASKS: Mapping[str, TaskSpec] = {spec.name: spec for spec in (*planted.SPECS, *mechanistic.SPECS, *listops.SPECS)}
"""Synthetic tasks by name; they share their names with datasets."""
