"""A front of exactly as many points as were asked for is told to be whole."""

from __future__ import annotations

import numpy as np
import pytest

from nas.exact.front import front
from nas.exact.problem import Problem, free_steps


@pytest.mark.parametrize(("n_slots", "n_points", "complete"), [(1, 2, True), (2, 2, False), (2, 3, True), (4, 5, True)])
def test_a_front_is_complete_where_nothing_lies_between_its_points(n_slots: int, n_points: int, complete: bool) -> None:
    problem = Problem(
        scores=np.array([[0.0, 1.0]] * n_slots), costs=np.array([0.0, 1.0]), codes=(0, 1), rows=np.zeros((0, 2)),
        limits=np.zeros(0), slack=np.zeros(0), steps=free_steps(2),
    )  # fmt: skip
    found = front(problem, (0.0, 1.0), n_points)
    assert (len(found.points), found.complete) == (n_points, complete)
