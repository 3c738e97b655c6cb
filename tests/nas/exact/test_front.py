"""Fronts against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.errors import InvalidInput
from nas.exact.front import front
from nas.exact.problem import Problem, free_steps
from tests.nas.exact import exhaustive
from tests.nas.exact.exhaustive import problems


def undominated(problem: Problem, costs: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[tuple[float, float]]:
    """(cost, score) of every point of the front, by rising cost; costs that differ by rounding are one."""
    points = sorted({(float(costs[list(path)].sum()), problem.score(path)) for path in exhaustive.feasible(problem)})
    width = points[-1][0] - points[0][0] if points else 0.0
    found: list[tuple[float, float]] = []
    for cost, score in points:
        if found and score <= found[-1][1] + 1e-9:
            continue
        if found and cost - found[-1][0] <= 4e-9 * max(width, 1e-9):
            found[-1] = (found[-1][0], score)
        else:
            found.append((cost, score))
    return found


@given(problem=problems(), seed=st.integers(0, 1000))
def test_a_front_of_enough_points_is_the_whole_front(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = np.round(rng.random(problem.scores.shape[1]), 1)  # some equal, some 0
    found = front(problem, costs.tolist(), 200)
    assert found.complete
    expected = undominated(problem, costs)
    assert len(found.points) == len(expected)
    for point, (cost, score) in zip(found.points, expected, strict=True):
        assert problem.holds(point.choices)
        assert (point.cost, point.score) == (pytest.approx(cost, abs=1e-8), pytest.approx(score, abs=4e-9))


@given(problem=problems(), n_points=st.integers(2, 4))
def test_fewer_points_are_some_of_the_front_with_both_ends(problem: Problem, n_points: int) -> None:
    costs = np.arange(problem.scores.shape[1], dtype=np.float64)
    found = front(problem, costs.tolist(), n_points)
    whole = undominated(problem, costs)
    assert len(found.points) == min(n_points, len(whole))
    assert found.complete == (len(found.points) == len(whole)) or len(found.points) == n_points
    for point in found.points:
        assert any(
            point.cost == pytest.approx(cost, abs=1e-8) and point.score == pytest.approx(score, abs=4e-9)
            for cost, score in whole
        )
    if len(whole) > 1:
        ends = (found.points[0].cost, found.points[-1].cost)
        assert ends == (pytest.approx(whole[0][0], abs=1e-8), pytest.approx(whole[-1][0], abs=1e-8))


def test_points_are_spread_over_the_costs() -> None:
    rng = np.random.default_rng(1)
    nothing = np.zeros(0)
    costs = [1.0, 0.6, 0.0, 0.5, 1.3]
    problem = Problem(
        rng.normal(size=(40, 5)), np.zeros(5), (1, 2, 0, 3, 4), np.zeros((0, 5)), nothing, nothing, free_steps(5)
    )
    found = front(problem, costs, 9)
    assert not found.complete
    reached = [point.cost for point in found.points]
    assert np.diff(reached).max() < 2.5 * (reached[-1] - reached[0]) / 8
    assert np.all(np.diff([point.score for point in found.points]) > 0)


@pytest.mark.parametrize("n_points", [1, 201])
def test_a_number_of_points_out_of_range_is_refused(n_points: int) -> None:
    nothing = np.zeros(0)
    problem = Problem(np.zeros((1, 1)), np.zeros(1), (1,), np.zeros((0, 1)), nothing, nothing, free_steps(1))
    with pytest.raises(InvalidInput, match=rf"^points is {n_points}; a front has 2 to 200$"):
        front(problem, [1.0], n_points)
