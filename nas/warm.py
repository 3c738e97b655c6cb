"""A network that begins with the weights which a search trained for its blocks.

Copied are the embeddings, the head and the last norm, and in each slot the chosen candidate's block with its norm: all
of the network's parameters. Not copied are the optimiser's moments, and memory. In pre-norm a slot's norm is one for
all of its candidates. The supernet trained the blocks of the path that it led to most, so that a warm start favours
what the search derived: who compares architectures, and not recipes, starts from scratch.
"""

from __future__ import annotations

from pathlib import Path

import torch

from nas import checkpoint
from nas.architecture import Architecture
from nas.config.space import SearchSpace
from nas.network import Network


@torch.no_grad()
def copy_supernet(network: Network, architecture: Architecture, space: SearchSpace, path: Path) -> None:
    """Copy the weights of every part of the network from a supernet, in place.

    Args:
        network: of the architecture.
        architecture: of the space.
        space: that the search was made in.
        path: a checkpoint of that search.

    Raises:
        InvalidInput: the checkpoint is of another format_version.
    """
    found = checkpoint.read_prefixed("supernet", path)
    for name, parameter in network.named_parameters():
        parameter.copy_(found[_name_in_supernet(name, architecture, space)])


def _name_in_supernet(name: str, architecture: Architecture, space: SearchSpace) -> str:
    """`slots.3.block.proj_in.weight` of a network is `slots.3.blocks.1.proj_in.weight` of its second candidate."""
    if not name.startswith("slots."):
        return name
    _, slot, kind, rest = name.split(".", 3)
    candidate = space.labels.index(architecture.labels[int(slot)])
    if kind == "block":
        return f"slots.{slot}.blocks.{candidate}.{rest}"
    return f"slots.{slot}.norm.{rest}" if space.norm_position == "pre" else f"slots.{slot}.norms.{candidate}.{rest}"
