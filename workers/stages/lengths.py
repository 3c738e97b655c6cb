"""Lengths: what result.json and the README tell of derived and parent at each length. S seeds, N windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas.compare import compare_quality
from nas.config.task import Task
from nas.lengths import LengthScore
from workers.stages.passed_on import Retrained


def at_lengths(task: Task, derived: Retrained, parent: Retrained | None) -> list[dict[str, Any]]:
    """Quality at each of the task's lengths, as JSON.

    Returns:
        Of each length {"length", "unit", "n_windows", "derived", "parent", "difference", "positions"}: derived and
        parent are {"bits", "se", "why"}, with the standard error over windows of the seeds' means, and numbers None
        where `why` says what keeps the network out; difference is derived minus parent, paired over windows and seeds,
        {"bits", "low", "high", "verdict"}, None where one of the two has no score; positions are
        {"width", "derived", "parent"}, mean nats of each `width` tokens.
    """
    found = []
    for number, length in enumerate(task.scored_lengths):
        own = _of_seeds(derived, number)
        other = None if parent is None else _of_seeds(parent, number)
        scored = own if own and _why(own) is None else other
        found.append(
            {
                "length": length,
                "unit": task.quality_unit,
                "n_windows": len(scored[0].nats) if scored else 0,
                "derived": _score(own, task),
                "parent": None if other is None else _score(other, task),
                "difference": None if other is None else _difference(own, other, task),
                "positions": {
                    "width": scored[0].width if scored else 1,
                    "derived": _positions(own),
                    "parent": None if other is None else _positions(other),
                },
            }
        )
    return found


def line(found: Sequence[Mapping[str, Any]], side: str = "derived") -> str:
    """One line for people: `32: 2.412, 128: 2.310, 512: not, candidate 'sgu' cannot run there: ...`.

    Args:
        found: of `at_lengths`.
        side: derived or parent.
    """
    told = []
    for each in found:
        score = each[side]
        told.append(
            f"{each['length']}: " + (f"{score['bits']:.3f}" if score["why"] is None else f"none, since {score['why']}")
        )
    return "; ".join(told)


def _of_seeds(trained: Retrained, number: int) -> list[LengthScore]:
    """One length of each seed; empty where checkpoints of an older version have none."""
    return [each.lengths[number] for each in trained.in_order if number < len(each.lengths)]


def _why(scores: Sequence[LengthScore]) -> str | None:
    if not scores:
        return "the trainings are of an older version, which scored no lengths"
    return next((each.why for each in scores if each.why is not None), None)


def _nats(scores: Sequence[LengthScore], task: Task) -> NDArray[np.float64]:
    """(S, N) nats per unit of the task's quality."""
    return np.array([each.nats for each in scores]) / task.units_per_token


def _score(scores: Sequence[LengthScore], task: Task) -> dict[str, Any]:
    why = _why(scores)
    if why is not None:
        return {"bits": None, "se": None, "why": why}
    windows = _nats(scores, task).mean(axis=0) / np.log(2)
    spread = float(windows.std(ddof=1) / np.sqrt(len(windows))) if len(windows) > 1 else None
    return {"bits": float(windows.mean()), "se": spread, "why": None}


def _difference(own: Sequence[LengthScore], other: Sequence[LengthScore], task: Task) -> dict[str, Any] | None:
    if _why(own) is not None or _why(other) is not None or len(own[0].nats) < 2:
        return None
    found = compare_quality(_nats(own, task), _nats(other, task), neighbours=not task.classifies)
    return {"bits": found.mean_bits, "low": found.low, "high": found.high, "verdict": found.verdict}


def _positions(scores: Sequence[LengthScore]) -> list[float | None] | None:
    """Mean over the seeds; None where nothing was scored."""
    if _why(scores) is not None:
        return None
    rows = zip(*(each.positions for each in scores), strict=True)
    return [None if None in row else float(np.mean(row)) for row in rows]
