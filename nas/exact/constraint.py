"""One constraint as numbers, and a problem made of several of them. L slots, K candidates, S states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nas.exact.problem import Floats, Problem, apart_steps, free_steps

Tell = Callable[[float], float]


@dataclass(frozen=True)
class Constraint:
    """What an architecture must meet: a bounded sum, or what may stand where, or mixers apart.

    Args:
        where: JSON pointer to it in the constraints.
        words: it, for people, such as `latency at most 4 ms`.
        row: what each candidate adds to its sum, (K,); None: it is no sum.
        limit: what the sum may be at most.
        slack: by how much rounding may carry the sum above.
        value: what to call a sum of the row, in the constraint's own terms; None: it has no value, or a ratio's.
        ratio: 1 where it is a ratio at least, -1 at most; 0: it is none. The row is p . family - blocks, or its
            negative.
        family: of a ratio, which candidates are of it, (K,); else empty.
        mask: (L, K) what may stand where; None: all.
        looser: other masks of the same kind from the nearest on, each with its value.
        apart: no mixer next to a mixer.
        unit: of its value.
        upper: whether larger values are easier to meet.
    """

    where: str
    words: str
    row: tuple[float, ...] | None = None
    limit: float = 0.0
    slack: float = 0.0
    value: Tell | None = None
    ratio: int = 0
    family: tuple[bool, ...] = ()
    mask: NDArray[np.bool_] | None = None
    looser: tuple[tuple[float, NDArray[np.bool_]], ...] = ()
    apart: bool = False
    unit: str = ""
    upper: bool = True


@dataclass(frozen=True)
class Frame:
    """What every constraint is held against.

    Args:
        scores: (L, K) nats; -inf where the search's own layout forbids a candidate.
        costs: second criterion, (K,).
        codes: equal for candidates that are the same block, (K,); 0: a skipped slot.
        mixers: which candidates mix tokens, (K,).
    """

    scores: Floats
    costs: Floats
    codes: tuple[int, ...]
    mixers: tuple[bool, ...]


def assemble(frame: Frame, constraints: Sequence[Constraint]) -> Problem:
    """The problem of all constraints together."""
    scores = frame.scores
    for each in constraints:
        if each.mask is not None:
            scores = np.where(each.mask, scores, -np.inf)
    sums = [each for each in constraints if each.row is not None]
    n_candidates = scores.shape[1]
    apart = any(each.apart for each in constraints)
    return Problem(
        scores=scores,
        costs=frame.costs,
        codes=frame.codes,
        rows=np.array([each.row for each in sums], np.float64).reshape(len(sums), n_candidates),
        limits=np.array([each.limit for each in sums], np.float64),
        slack=np.array([each.slack for each in sums], np.float64),
        steps=apart_steps(frame.codes, frame.mixers) if apart else free_steps(n_candidates),
    )
