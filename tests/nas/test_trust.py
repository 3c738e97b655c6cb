"""Agreement of two orders: by hand, against an independent count, and its invariances; regret of choosing by score."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from nas.errors import InvalidInput
from nas.trust import N_BEST, agreement, among_best, regret, trust, within_bands

RISING = [float(number) for number in range(10)]

few = st.integers(0, 6).map(float)  # so that there are ties
pairs = st.lists(st.tuples(few, few), min_size=4, max_size=30)


def noisy(n: int, noise: float, seed: int = 0) -> tuple[Any, Any]:
    source = np.random.default_rng(seed)
    losses = source.normal(2.0, 0.3, n)
    return losses + source.normal(0, noise, n), losses


@pytest.mark.parametrize(
    ("scores", "tau"),
    [
        (RISING, 1.0),
        ([-each for each in RISING], -1.0),
        ([1.0, 0.0, *RISING[2:]], 1 - 2 / 45),  # one pair of 45 the wrong way round
        ([0.0, 0.0, *RISING[2:]], 44 / math.sqrt(44 * 45)),  # one pair tied on one side
    ],
    ids=["perfect", "reversed", "one pair wrong", "one pair tied"],
)
def test_tau_by_hand(scores: list[float], tau: float) -> None:
    found = agreement(scores, RISING)
    assert found.tau == pytest.approx(tau)
    assert (found.n, found.n_pairs, found.reason) == (10, 45, None)
    assert found.low is not None
    assert found.high is not None
    assert found.low - 1e-12 <= tau <= found.high + 1e-12


@given(pairs)
def test_tau_is_that_of_an_independent_count(rows: list[tuple[float, float]]) -> None:
    scores, losses = zip(*rows, strict=True)
    found, expected = agreement(scores, losses), float(stats.kendalltau(scores, losses).statistic)
    if math.isnan(expected):
        assert found.tau is None
        assert found.reason is not None
        assert "are equal" in found.reason
    else:
        assert found.tau == pytest.approx(expected)


@given(pairs, st.randoms())
def test_tau_knows_no_scale_and_no_order_of_architectures(rows: list[tuple[float, float]], random: Any) -> None:
    scores, losses = np.array(rows).T
    found = agreement(scores, losses).tau
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled, scaled = agreement(scores[order], losses[order]), agreement(np.exp(scores), 3 * losses - 7)
    turned, swapped = agreement(-scores, losses), agreement(losses, scores)
    if found is None:
        assert shuffled.tau is scaled.tau is turned.tau is None
    else:
        assert shuffled.tau == pytest.approx(found)
        assert scaled.tau == pytest.approx(found)
        assert turned.tau == pytest.approx(-found)
        assert swapped.tau == pytest.approx(found)


@given(pairs, st.lists(st.sampled_from([1.0, 1.04, 1.06, 2.0]), min_size=30, max_size=30))
def test_within_bands_only_pairs_of_like_cost_count(rows: list[tuple[float, float]], drawn: list[float]) -> None:
    scores, losses = zip(*rows, strict=True)
    costs = drawn[: len(rows)]
    counted = [
        (np.sign(scores[one] - scores[other]), np.sign(losses[one] - losses[other]))
        for one, other in itertools.combinations(range(len(rows)), 2)
        if max(costs[one], costs[other]) / min(costs[one], costs[other]) <= 1.05
    ]
    found = within_bands(scores, losses, costs)
    assert found.n_pairs == len(counted)
    told = math.sqrt(sum(ours != 0 for ours, _ in counted) * sum(true != 0 for _, true in counted))
    if found.tau is None:
        assert len(counted) < 6 or told == 0
    else:
        assert found.tau == pytest.approx(sum(ours * true for ours, true in counted) / told)


def test_a_tau_over_all_is_flattered_by_cost_and_one_within_bands_is_not() -> None:
    """Dear stacks are better and score so; among those of one cost the score is turned around."""
    costs = np.repeat([1.0, 2.0, 3.0, 4.0], 5)
    within = np.tile(np.arange(5.0), 4)
    losses, scores = within - 100 * costs, -within - 100 * costs
    assert agreement(scores, losses).tau == pytest.approx(1 - 2 * 40 / 190)
    found = within_bands(scores, losses, costs)
    assert found.tau == pytest.approx(-1)
    assert (found.n, found.n_pairs) == (20, 40)


@pytest.mark.parametrize(("cost", "n_pairs"), [(1.05, 10), (1.0501, 6)], ids=["at 5%", "beyond"])
def test_a_band_holds_its_edge(cost: float, n_pairs: int) -> None:
    scores = RISING[:5]
    assert within_bands(scores, scores, [1.0, 1.0, 1.0, 1.0, cost]).n_pairs == n_pairs


def test_the_best_are_a_fifth_rounded_up_with_those_that_tie() -> None:
    losses = [float(number) for number in range(21)]
    found = among_best(losses[::-1], losses)
    assert (found.n, found.n_pairs, found.reason) == (5, 10, None)
    assert found.tau == pytest.approx(-1)
    assert found.low is found.high is None  # of five architectures
    tied = [0.0, 1.0, 1.0, 1.0, 1.0, *RISING[2:]]
    assert among_best(tied, tied, share=0.14).n == 5
    assert among_best(tied, tied, share=1).n == len(tied)


@pytest.mark.parametrize(
    ("n", "told"), [(0, "0 pairs"), (1, "0 pairs"), (3, "3 pairs; at least 6 are needed")], ids=["none", "one", "three"]
)
def test_too_few_have_a_reason_instead_of_a_tau(n: int, told: str) -> None:
    found = trust(RISING[:n], RISING[:n], RISING[1 : n + 1])
    for each in (found.overall, found.within_bands, found.top):
        assert each.tau is each.low is each.high is None
        assert each.reason is not None
    assert found.overall.reason is not None
    assert told in found.overall.reason
    assert found.regret.loss is None
    assert found.regret.reason == f"{n} architectures; with at most {N_BEST} of them all are chosen"


def test_what_is_all_equal_tells_nothing() -> None:
    assert agreement([1.0] * 9, RISING[:9]).reason == "all scores that are compared are equal"
    assert agreement(RISING[:9], [1.0] * 9).reason == "all losses that are compared are equal"
    found = regret([1.0] * 9, RISING[:9])
    assert found.loss == 4  # of equal scores the worse ones are chosen
    assert found.by_chance == pytest.approx(10 / 6 - 1)  # the least of 5 of 1 to 9 is 10 / 6 in the mean


def test_regret_by_hand() -> None:
    losses = [*RISING[5:], *RISING[:5]]
    found = regret(RISING, losses, errors=0.5)
    assert (found.loss, found.chosen, found.best, found.n, found.n_chosen) == (5, 0, 5, 10, 5)
    assert found.standard_errors == pytest.approx(5 / (0.5 * math.sqrt(2)))
    assert regret(RISING, losses, errors=[0.3] + [0.4] * 9).standard_errors == pytest.approx(10)
    assert regret(RISING, losses).standard_errors is None
    assert regret(RISING, losses, errors=0.0).standard_errors is None
    none = regret(RISING, RISING, errors=0.5)
    assert (none.loss, none.standard_errors) == (0, None)
    assert (none.low, none.high) == (0, 0)


@given(st.lists(few, min_size=6, max_size=9), st.integers(1, 5))
def test_regret_by_chance_is_the_mean_over_all_choices(losses: list[float], n_chosen: int) -> None:
    choices = itertools.combinations(losses, n_chosen)
    mean = float(np.mean([min(choice) for choice in choices])) - min(losses)
    assert regret(losses, losses, n_chosen=n_chosen).by_chance == pytest.approx(mean)


def test_intervals_hold_what_they_are_of_and_are_the_same_again() -> None:
    scores, losses = noisy(60, 0.3)
    found = trust(scores, losses, np.repeat([1.0, 2.0, 3.0], 20), errors=0.01)
    assert found == trust(scores, losses, np.repeat([1.0, 2.0, 3.0], 20), errors=0.01)
    for each in (found.overall, found.within_bands, found.top):
        assert each.tau is not None
        assert each.low is not None
        assert each.high is not None
        assert each.low < each.tau < each.high
    assert found.regret.low is not None
    assert found.regret.high is not None
    assert 0 <= found.regret.low <= found.regret.high


def test_an_interval_covers_the_tau_that_scores_were_drawn_from() -> None:
    """Of normal scores tau is 2 / pi asin(r). 60 draws of 95% leave fewer than 51 hits once in 1,000."""
    true, hits = 2 / math.pi * math.asin(1 / math.sqrt(2)), 0
    for seed in range(60):
        found = agreement(*noisy(40, 0.3, seed))
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= true <= found.high
    assert hits >= 51


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: agreement(RISING, RISING[:9]), "losses has 9 numbers for 10 scores; give one for each"),
        (lambda: agreement([[1.0]], [1.0]), "scores has 2 axes; it must have one"),
        (lambda: agreement([1.0, math.nan], [1.0, 2.0]), "scores has nan at 1; leave out what diverged"),
        (lambda: regret(RISING, [*RISING[:9], math.inf]), "losses has inf at 9; leave out what diverged"),
        (lambda: within_bands(RISING, RISING, RISING), "costs has 0; each must be above 0"),
        (lambda: within_bands(RISING, RISING, RISING[1:]), "costs has 9 numbers for 10 scores"),
        (lambda: within_bands(RISING, RISING, [1.0] * 10, band=-0.1), "band is -0.1; it must be 0 or more"),
        (lambda: within_bands(RISING, RISING, [1.0] * 10, band=math.nan), "band is nan; it must be 0 or more"),
        (lambda: among_best(RISING, RISING, share=0), "share is 0; it must be above 0 and at most 1"),
        (lambda: regret(RISING, RISING, n_chosen=0), "n_chosen is 0; it must be at least 1"),
        (lambda: regret(RISING, RISING, errors=-1.0), "errors has -1; a standard error is not negative"),
        (lambda: regret(RISING, RISING, errors=[1.0]), "errors has 1 numbers for 10 scores"),
    ],
    ids=range(12),
)
def test_bad_input_is_answered_in_words(call: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()
