"""From a block's name in the catalogue to its torch class, imported only when a network is built."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from nas import catalog
from nas.blocks.base import Block
from nas.errors import InvalidInput
from nas.specs.probe import blame


def block_class(name: str) -> type[Block]:
    """The class of a registered block.

    Raises:
        InvalidInput: no such block, or its class path cannot be imported or does not name a Block.
    """
    spec = catalog.block(name)
    if spec.own is not None:
        return spec.own
    path = spec.class_path
    module, _, attribute = path.partition(":")
    with blame(name, f"be imported from {path!r}"):
        found = getattr(import_module(module), attribute, None)
    if not (isinstance(found, type) and issubclass(found, Block)):
        raise InvalidInput(f"block {name!r} has class path {path!r}, which names no subclass of nas.blocks.base.Block")
    return found


def block_classes(names: Iterable[str]) -> dict[str, type[Block]]:
    """The classes of several blocks by name, each once, in the order of first mention."""
    return {name: block_class(name) for name in dict.fromkeys(names)}
