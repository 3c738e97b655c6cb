"""The best networks of a problem: exactly, in order, and each once.

`A..` and `.A.` are one network, since a skipped slot adds nothing: of the placements of one network the one of the
largest score stands for it. (`Architecture.hash` tells placements apart, because stored weights belong to slots.)
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from nas.errors import InvalidInput
from nas.exact.labels import TooMany, best_words
from nas.exact.problem import Floats, Problem
from nas.exact.program import EQUAL, integer, multipliers


@dataclass(frozen=True)
class Answer:
    """One network.

    Args:
        choices: a candidate per slot, (L,).
        score: sum of scores, nats.
        cost: sum of the second criterion.
    """

    choices: tuple[int, ...]
    score: float
    cost: float


def best(problem: Problem, k: int = 1) -> list[Answer]:
    """The k best distinct networks, best first; of scores within 1e-9 nats the cheaper goes first. Fewer, if that is
    all there are; none, if no architecture meets the rows.

    Raises:
        InvalidInput: k is not positive, or so many networks tie, under more than one row, that the k best cannot be
            told apart.
    """
    if k < 1:
        raise InvalidInput(f"k is {k}; at least one architecture must be asked for")
    if not problem.usable.any(axis=1).all():
        return []
    pressed = multipliers(problem) if len(problem.rows) else np.zeros(0)
    if pressed is None:
        return []
    try:
        found = best_words(problem, pressed, k)
    except TooMany:
        found = _of_many(problem, pressed, k)
    return ordered(problem, found)[:k]


def _of_many(problem: Problem, pressed: Floats, k: int) -> list[tuple[int, ...]]:
    """The k best where too many networks tie to follow all: the cost goes into the score, below what counts as equal.

    Raises:
        InvalidInput: they are too many even so.
    """
    if k > 1 and len(problem.rows) <= 1 and _is_told_by_code(problem):
        unit = float(np.abs(problem.costs).max(initial=0.0)) * len(problem.scores)
        cheaper = problem.costs * (EQUAL / 2 / unit if unit else 0.0)
        with suppress(TooMany):
            return best_words(replace(problem, scores=problem.scores - cheaper), pressed, k, by_score=True)
    alone = integer(problem)
    if alone is not None and k > 1:
        raise InvalidInput(
            f"too many architectures are as good as the {k} best to tell which these are; ask for one, or set tighter "
            "constraints"
        )
    return [] if alone is None else [alone]


def _is_told_by_code(problem: Problem) -> bool:
    """Whether candidates that are the same block add the same to every row, and cost the same."""
    columns = np.vstack([np.asarray(problem.codes, np.float64)[None], problem.rows, problem.costs[None]])
    return len(np.unique(columns, axis=1).T) == len(set(problem.codes))


def feasible(problem: Problem) -> tuple[int, ...] | None:
    """Some architecture that meets every row, or None where there is none."""
    room = float(np.abs(problem.rows).max(initial=0.0))
    # Any objective would do; one that leaves room in all rows meets few ties.
    scale = np.maximum(np.abs(problem.rows).max(axis=1, initial=0.0), 1e-300)
    wanted = -(problem.rows / scale[:, None]).sum(axis=0) if room else np.zeros(problem.scores.shape[1])
    found = best(with_objective(problem, wanted))
    return found[0].choices if found else None


def with_objective(problem: Problem, values: Floats) -> Problem:
    """The problem with scores that are the same in every slot, (K,)."""
    return replace(problem, scores=np.where(problem.usable, values[None], -np.inf))


def ordered(problem: Problem, found: list[tuple[int, ...]]) -> list[Answer]:
    """Each network once, by score, then cost, then the order of candidates."""
    answers: dict[tuple[int, ...], Answer] = {}
    for choices in found:
        answer = Answer(choices, problem.score(choices), problem.cost(choices))
        word = problem.word(choices)
        known = answers.get(word)
        if known is None or _before(answer, known):
            answers[word] = answer
    ranked = sorted(answers.values(), key=lambda each: -each.score)
    result: list[Answer] = []
    while ranked:  # runs of equal scores, each beginning at the best that is left
        tied = [each for each in ranked if each.score >= ranked[0].score - EQUAL]
        result += sorted(tied, key=lambda each: (each.cost, each.choices))
        ranked = ranked[len(tied) :]
    return result


def _before(one: Answer, other: Answer) -> bool:
    if abs(one.score - other.score) > EQUAL:
        return one.score > other.score
    return (one.cost, one.choices) < (other.cost, other.choices)
