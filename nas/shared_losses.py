"""Held-out losses of architectures by a supernet's weights as they are, without any training of their own.

What a one-shot search ranks by. Windows are of alpha's part, as in the parsimony pass: validation chooses among seeds
and test is what results are told on. P paths, N windows, L slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from nas.architecture import Architecture
from nas.config.space import SearchSpace
from nas.data.streams import held_out
from nas.errors import InvalidInput
from nas.search import Search


def path_of(architecture: Architecture, space: SearchSpace) -> list[int]:
    """(L,) candidate numbers of an architecture in a space.

    Raises:
        InvalidInput: the space has other slots or candidates, or forbids one of them in its slot.
    """
    if len(architecture.labels) != space.n_slots:
        raise InvalidInput(
            f"architecture {architecture} has {len(architecture.labels)} slots; the space {space.n_slots}"
        )
    known = {candidate.label: candidate for candidate in architecture.candidates}
    path = []
    for number, label in enumerate(architecture.labels):
        holds = f"slot {number + 1} of {architecture} holds {label!r}"
        if known[label] not in space.candidates:
            raise InvalidInput(f"{holds}, which is not a candidate of the space")
        choice = space.candidates.index(known[label])
        if not space.allowed[number][choice]:
            raise InvalidInput(f"{holds}, which the space's layout forbids there")
        path.append(choice)
    return path


def shared_losses(search: Search, paths: Iterable[Sequence[int]], *, n_windows: int | None = None) -> Tensor:
    """Losses of paths, each on the same windows; nothing of the search changes.

    Args:
        search: at its end, or at any report.
        paths: of candidate numbers, one per slot.
        n_windows: None: as many as a comparison of the parsimony pass has.

    Returns:
        (P, N) nats per scored token.

    Raises:
        InvalidInput: there are no paths.
        SearchFailed: a path's loss is not finite: training diverged.
    """
    wanted = list(paths)
    if not wanted:
        raise InvalidInput("no paths to score; give at least one")
    part, n = search.streams["alpha_data"].part, n_windows or search.method.prune_windows
    windows = held_out(part, n, search.request, search.device)
    search.supernet.eval()
    found = torch.stack([search.losses(search.path_nats(path), windows) for path in wanted])
    search.supernet.train()
    return found
