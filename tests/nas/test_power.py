"""What n paired seeds can show: against tables, against simulated tests, and in words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from nas.power import detectable, foresee, in_sds, spread_of_differences


# The upper ends of what 3, 5 and 8 paired seeds show; the lower ends are those of a one-sided test.
@pytest.mark.parametrize(("n_seeds", "low", "high"), [(3, 2.3, 3.3), (5, 1.4, 1.7), (8, 1.0, 1.2), (16, 0.74, 0.76)])
def test_more_seeds_show_smaller_differences(n_seeds: int, low: float, high: float) -> None:
    assert low <= in_sds(n_seeds) <= high
    assert detectable(0.02, n_seeds) == pytest.approx(0.02 * in_sds(n_seeds))


@pytest.mark.parametrize("n_seeds", [2, 3, 5, 8])
def test_a_difference_of_that_size_is_found_in_four_of_five_simulated_comparisons(n_seeds: int) -> None:
    differences = np.random.default_rng(n_seeds).normal(in_sds(n_seeds), 1.0, (20_000, n_seeds))
    half = t.ppf(0.975, n_seeds - 1) * differences.std(axis=1, ddof=1) / math.sqrt(n_seeds)
    found = np.abs(differences.mean(axis=1)) > half
    assert found.mean() == pytest.approx(0.8, abs=0.01)  # 3 standard errors are 0.0085


def test_what_all_seeds_share_is_not_lowered_by_more_of_them() -> None:
    many = detectable(1e-9, 64, se_beside=0.1)
    assert many == pytest.approx(0.28, abs=0.001)  # 1.96 + 0.84 standard errors
    both = detectable(0.2, 5, se_beside=0.1)
    assert both is not None
    assert both == pytest.approx(math.hypot(0.2 * in_sds(5), 0.28), abs=0.001)


def test_one_seed_shows_nothing() -> None:
    assert detectable(0.1, 1) is None
    assert foresee(0.1, 1, "bits per byte", "the searches").sentence == (
        "one seed of each network cannot show that a difference holds for other seeds, whatever its size; its interval "
        "is of the test windows alone. Give retrain.n_seeds at least 2, better 5"
    )


def test_the_spread_is_of_differences_so_that_what_a_seed_adds_to_all_is_not_in_it() -> None:
    seeds = np.random.default_rng(0).normal(0, 1.0, 200)
    own = np.random.default_rng(1).normal(0, 0.1, (3, 200))
    found = spread_of_differences((seeds + own).tolist())
    assert found == pytest.approx(0.1 * math.sqrt(2), rel=0.1)
    assert spread_of_differences([[1.0, 2.0]]) is None
    assert spread_of_differences([[1.0], [2.0]]) is None
    assert spread_of_differences([[1.0, 2.0], [1.5, 2.5]]) == 0.0


def test_before_a_comparison_it_is_told_in_one_sentence() -> None:
    told = foresee(0.01, 3, "bits per byte", "3 search seeds")
    assert told.detectable == pytest.approx(0.0326, abs=0.0002)
    assert told.sentence == (
        "3 paired seeds show a difference from 0.033 bits per byte on, 8 times in 10 (3.3 standard deviations of a "
        "seed's difference, 0.01 bits per byte by 3 search seeds)"
    )
    assert foresee(None, 5, "bits per byte", "one search seed has no spread").sentence == (
        "5 paired seeds show a difference from 1.7 standard deviations of a seed's difference on, 8 times in 10; how "
        "large that is, nothing has told yet: one search seed has no spread"
    )
