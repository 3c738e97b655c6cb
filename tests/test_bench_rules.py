"""A small part of the simulations of bench/rules.py: rules are found where there are some, and seldom elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from bench.rules import (
    BUDGETS,
    COUNTS,
    PARTLY_FIXED,
    PLANTED,
    coverage,
    exchangeable_seed,
    false_reports,
    ordered_seed,
    partly_fixed_seed,
    planted_seed,
    recovered,
)

N = 100
MOST = 0.05 + 3 * (0.05 * 0.95 / N) ** 0.5  # three standard errors of a share above the goal
LEAST = 0.95 - 3 * (0.05 * 0.95 / N) ** 0.5


@pytest.mark.parametrize("n_seeds", [3, 5, 6])
@pytest.mark.parametrize("budget", ["two families", "a tight budget", "uneven by seed"])
def test_reports_on_nothing_seldom_say_anything(budget: str, n_seeds: int) -> None:
    assert false_reports(N, n_seeds, lambda generator: exchangeable_seed(BUDGETS[budget], generator)) <= MOST


def test_fixed_and_forbidden_slots_are_no_evidence() -> None:
    assert false_reports(N, 6, partly_fixed_seed, PARTLY_FIXED) <= MOST
    blind = false_reports(N, 6, partly_fixed_seed)
    assert blind > false_reports(N, 6, partly_fixed_seed, PARTLY_FIXED), "they would be, if all slots traded places"


@pytest.mark.parametrize("name", ["position, early", "cut, first two thirds", "spacing, even"])
def test_planted_rules_are_recovered(name: str) -> None:
    kind, direction, slots = PLANTED[name]
    found, opposite = recovered(N, 6, (kind, "attention", direction), lambda g: planted_seed(slots, 0.05, g))
    assert found >= LEAST
    assert opposite == 0


def test_a_planted_order_is_recovered() -> None:
    assert recovered(N, 6, ("order", "attention", "after"), lambda g: ordered_seed(0.05, g))[0] >= LEAST


@pytest.mark.parametrize("n_seeds", [3, 5, 6])
def test_intervals_of_a_ratio_hold_the_true_one(n_seeds: int) -> None:
    assert coverage(1000, n_seeds, COUNTS["2 to 5"]) >= 0.91


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_stands_where_the_rule_says(name: str) -> None:
    _, _, slots = PLANTED[name]
    generator = np.random.default_rng(0)
    for _ in range(50):
        at = list(slots(generator))
        assert at == sorted(set(at))
        assert len(at) == 4
        assert 0 <= at[0] <= at[-1] < 12
        seed = planted_seed(slots, 0.5, generator)
        assert (seed.count("attention"), seed.count("sgu"), len(seed)) == (4, 2, 12)
