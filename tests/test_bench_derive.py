"""The bench of derivations: what it solves is what it says it solves."""

from __future__ import annotations

import numpy as np
import pytest

from bench import derive
from nas.exact.solve import best


@pytest.mark.parametrize("seed", [0, 1])
def test_an_instance_is_a_search_whose_budget_binds_and_whose_mixers_stand_apart(seed: int) -> None:
    problem = derive.instance(seed)
    assert problem.scores.shape == (96, 5)
    np.testing.assert_allclose(np.exp(problem.scores).sum(axis=1), 1)
    without = best(derive.instance(seed, bounded=False))[0]
    (found,) = best(problem)
    assert problem.holds(found.choices)
    assert not problem.holds(without.choices), "the budget is below what the best costs without one"
    assert 1 / 3 <= problem.limits[0] / without.cost <= 0.9


def test_the_reference_is_solved() -> None:
    derive.reference()
    assert derive.timed(derive.reference).cpu > 0
