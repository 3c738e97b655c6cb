"""Small problems, and all their architectures one by one: what the solver is held against."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from nas.exact.problem import SKIPPED, Problem, apart_steps, free_steps
from nas.exact.program import EQUAL


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Of at most 5 slots and 4 candidates: some forbidden, some the same block, some skipped slots, up to 3 rows."""
    n_slots, n_candidates = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.normal(size=(n_slots, n_candidates)) * draw(st.sampled_from([0.01, 1.0, 30.0]))
    if draw(st.booleans()):  # ties, as raised scores and equal alphas make them
        scores = np.round(scores * 2) / 2
    scores[rng.random(scores.shape) < draw(st.sampled_from([0.0, 0.3]))] = -np.inf
    codes = tuple(int(code) for code in rng.integers(0, n_candidates + 1, n_candidates))
    costs = rng.random(n_candidates) * draw(st.sampled_from([0.01, 1.0, 1e6]))
    costs[rng.random(n_candidates) < 0.3] = 0.0
    n_rows = draw(st.integers(0, 3))
    rows = rng.normal(size=(n_rows, n_candidates)) * 10.0 ** rng.integers(-3, 6, (n_rows, 1))
    if draw(st.booleans()):  # counts
        rows = np.sign(rows)
    if n_rows and draw(st.booleans()):  # a bound on the second criterion itself
        rows[0] = costs
    limits = np.zeros(n_rows)
    for index, row in enumerate(rows):  # exactly what some paths reach
        sums = [row[list(path)].sum() for path in itertools.product(range(n_candidates), repeat=n_slots)]
        limits[index] = np.quantile(sums, draw(st.floats(0, 1)), method="nearest")
    mixers = [bool(each) for each in rng.random(n_candidates) < 0.5]
    steps = apart_steps(codes, mixers) if draw(st.booleans()) else free_steps(n_candidates)
    return Problem(scores, costs, codes, rows, limits, 1e-9 * np.maximum(np.abs(limits), 1.0), steps)


def feasible(problem: Problem) -> list[tuple[int, ...]]:
    """Every architecture that meets the problem."""
    n_slots, n_candidates = problem.scores.shape
    return [path for path in itertools.product(range(n_candidates), repeat=n_slots) if problem.holds(path)]


def networks(problem: Problem) -> list[tuple[float, float, tuple[int, ...]]]:
    """(score, least cost at that score, word) of every network that is feasible, best first."""
    best: dict[tuple[int, ...], tuple[float, float]] = {}
    for path in feasible(problem):
        word, score, cost = problem.word(path), problem.score(path), problem.cost(path)
        known = best.get(word)
        if known is None or score > known[0] + EQUAL or (abs(score - known[0]) <= EQUAL and cost < known[1]):
            best[word] = (score, cost)
    return sorted(((score, cost, word) for word, (score, cost) in best.items()), key=lambda each: -each[0])


def adjacent_mixers(word_families: list[str]) -> bool:
    """By a plain look at the blocks that are not skipped."""
    blocks = [family for family in word_families if family != SKIPPED]
    return any(one == other == "mixer" for one, other in itertools.pairwise(blocks))
