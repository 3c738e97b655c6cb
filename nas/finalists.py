"""Whole networks by shared weights: where a pass within a budget begins, and what is worth training beside its answer.

Alpha weighs each slot by itself, so the most probable path within a budget is a sum of parts: on a text of three slots
whose bound leaves room for `SSF`, the best of all that fit, it was `SAA` (alpha had gone to `SSA`, which is too dear),
and no single edit within the bound leads from the one to the other. What goes together, only a look at whole paths can
tell. Where few fit, all of them are scored; else they evolve from alpha's own by mutation and crossover under the
bounds, as in single-path one-shot search (Guo et al. 2020, arXiv:1904.00420, section 3.4; sizes are ours). Scores are
held-out losses with the weights as they are: good enough to choose a few, not to rank them (docs/benchmarks.md, trust).

L slots, K candidates, N windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from nas.data.streams import held_out
from nas.paired import standard_error
from nas.training import generator

if TYPE_CHECKING:
    from nas.search import Search

Choices = tuple[int, ...]
"""(L,) a candidate's number in each slot."""

MOST_WINDOWS = 32  # of `eval_windows`: many networks, each looked at a little
_KEPT = 16  # networks
_STREAM = 7  # of the trial's seed; the others stand in nas.search
_PARENTS = 10  # the best so far, of whom the next are made
_MUTATED = 2  # slots at most: one is an edit, two exchange what a bound lets only one of them have
_PATIENCE = 50  # draws in a row that are known or do not fit, behind which nothing new is expected


def finalists(search: Search, own: Choices) -> tuple[Choices, list[tuple[Choices, float]]]:
    """Where a trial's parsimony pass begins, and the networks that do best as its weights are, with their losses.

    It begins at alpha's leading path where that fits, else at the best of all, unless `own` is not worse beyond one
    standard error.

    Args:
        search: trial whose weights are settled.
        own: the most probable path within its bounds.

    Returns:
        A path, and at most 16 networks, best first, each by its best path with mean nats per token.

    Raises:
        SearchFailed: a loss is not finite: training diverged.
    """
    method, part = search.method, search.streams["alpha_data"].part
    windows = held_out(part, min(method.eval_windows, MOST_WINDOWS), search.request, search.device)
    search.supernet.eval()
    found = look_at(
        lambda path: search.losses(search.path_nats(path), windows),
        [own],
        search.space.allowed,
        search.affordable,
        method.n_looks,
        generator(search.request.trials.seed, _STREAM),
    )
    search.supernet.train()
    ranked = distinct(found, search.identity.tolist())
    best, _ = ranked[0]
    behind = found[own] - found[best]
    error = standard_error(behind, neighbours=not search.request.task.classifies)
    stays = search.affordable(search.leading_path()) or float(behind.double().mean()) <= error
    return own if stays else best, ranked[:_KEPT]


def look_at(
    score: Callable[[Choices], Tensor],
    starts: Sequence[Choices],
    allowed: Sequence[Sequence[bool]],
    fits: Callable[[Choices], bool],
    n_looks: int,
    generator: Generator,
) -> dict[Choices, Tensor]:
    """Score paths that fit: all where they are at most `n_looks`, else the starts and what evolves from them.

    Args:
        score: a path's (N,) held-out losses.
        starts: paths that fit; scored first, whatever `n_looks`.
        allowed: (L, K) which candidate may stand in which slot.
        fits: whether a path is within every bound.
        n_looks: paths to score at most.
        generator: of mutations.

    Returns:
        The losses of each path that was scored.
    """
    found = {path: score(path) for path in dict.fromkeys(starts)}
    if math.prod(map(sum, allowed)) <= n_looks:
        every = product(*([choice for choice, may in enumerate(row) if may] for row in allowed))
        return found | {path: score(path) for path in every if path not in found and fits(path)}
    n_idle = 0
    for path in _offspring(found, allowed, generator):
        if len(found) >= n_looks or n_idle >= _PATIENCE:
            break
        n_idle += 1
        if path not in found and fits(path):
            found[path] = score(path)
            n_idle = 0
    return found


def distinct(found: dict[Choices, Tensor], identity: Sequence[bool]) -> list[tuple[Choices, float]]:
    """The best path of each network, best first, with its mean loss: the same blocks in the same order are one.

    Args:
        found: (N,) losses of paths.
        identity: (K,) which candidates are no block.
    """
    best: dict[Choices, tuple[Choices, float]] = {}
    for path, losses in found.items():
        word, nats = tuple(choice for choice in path if not identity[choice]), float(losses.double().mean())
        if word not in best or nats < best[word][1]:
            best[word] = path, nats
    return sorted(best.values(), key=lambda each: each[1])


def _offspring(
    found: dict[Choices, Tensor], allowed: Sequence[Sequence[bool]], generator: Generator
) -> Iterator[Choices]:
    """Without end, of the best that have been found so far: mutants, and crosses of two, in turn."""
    choices = [[choice for choice, may in enumerate(row) if may] for row in allowed]
    free = [slot for slot, row in enumerate(choices) if len(row) > 1]

    def draw(n: int) -> int:
        return int(torch.randint(n, (), generator=generator))

    while free:
        parents = sorted(found, key=lambda path: (float(found[path].double().mean()), path))[:_PARENTS]
        child = list(parents[draw(len(parents))])
        for _ in range(1 + draw(_MUTATED)):
            slot = free[draw(len(free))]
            child[slot] = choices[slot][draw(len(choices[slot]))]
        yield tuple(child)
        mother, father = parents[draw(len(parents))], parents[draw(len(parents))]
        yield tuple(pair[draw(2)] for pair in zip(mother, father, strict=True))
