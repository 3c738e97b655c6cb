"""The solver against exhaustive search: the best, the k best, and what it says of bad input."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.errors import InvalidInput
from nas.exact import labels, solve
from nas.exact.problem import Problem, apart_steps, free_steps
from nas.exact.program import integer, multipliers
from nas.exact.solve import best, feasible
from tests.nas.exact import exhaustive
from tests.nas.exact.exhaustive import problems


def free(scores: list[list[float]], codes: tuple[int, ...], costs: list[float] | None = None) -> Problem:
    """A problem without rows."""
    n = len(codes)
    nothing = np.zeros(0)
    return Problem(
        np.array(scores), np.array(costs or [0.0] * n), codes, np.zeros((0, n)), nothing, nothing, free_steps(n)
    )


@given(problem=problems(), k=st.integers(1, 6))
def test_k_best_are_the_k_best_of_all_networks_each_once(problem: Problem, k: int) -> None:
    expected = exhaustive.networks(problem)
    found = best(problem, k)
    assert len(found) == min(k, len(expected))
    assert len({problem.word(each.choices) for each in found}) == len(found)
    for answer, (score, _, _) in zip(found, expected, strict=False):
        assert problem.holds(answer.choices)
        assert answer.score == pytest.approx(score, abs=2e-9)
        assert answer.score == problem.score(answer.choices)


@given(problem=problems())
def test_of_equally_good_networks_the_cheapest_comes_first(problem: Problem) -> None:
    expected = exhaustive.networks(problem)
    if expected:
        (found,) = best(problem)
        least = min(cost for score, cost, _ in expected if score >= expected[0][0] - 1e-9)
        assert found.cost == pytest.approx(least, abs=1e-9 * max(1.0, abs(least)))


@given(problem=problems(), seed=st.integers(0, 1000))
def test_poor_multipliers_give_the_same_answer(problem: Problem, seed: int) -> None:
    expected = exhaustive.networks(problem)[:2]
    poor = np.random.default_rng(seed).random(len(problem.rows)) * 0.1
    found = solve.ordered(problem, labels.best_words(problem, poor, 2))[:2]
    assert [each.score for each in found] == pytest.approx([score for score, _, _ in expected], abs=2e-9)


@given(problem=problems())
def test_the_integer_program_finds_the_same(problem: Problem) -> None:
    if not problem.usable.any(axis=1).all():
        return
    found, expected = integer(problem), best(problem)
    assert (found is None) == (not expected)
    if found is not None:
        assert problem.score(found) == pytest.approx(expected[0].score, abs=4e-9)


@given(problem=problems())
def test_feasible_is_whether_any_architecture_holds(problem: Problem) -> None:
    found = feasible(problem)
    assert (found is not None) == bool(exhaustive.feasible(problem))
    assert found is None or problem.holds(found)


@given(problem=problems())
def test_no_network_beats_the_lagrangian_bound(problem: Problem) -> None:
    networks = exhaustive.networks(problem)
    if not networks:
        return
    pressed = multipliers(problem) if len(problem.rows) else np.zeros(0)
    assert pressed is not None
    assert (pressed >= 0).all()


def test_placements_of_one_network_are_one_answer_at_its_best_slot() -> None:
    found = best(free([[0.0, -1.0], [-3.0, 0.0], [-1.0, 0.0]], (1, 0)), k=9)
    assert [each.choices for each in found] == [(0, 1, 1), (0, 1, 0), (1, 1, 1), (0, 0, 0)]
    assert [each.score for each in found] == [0.0, -1.0, -1.0, -4.0]


def test_candidates_of_the_same_block_make_one_network() -> None:
    found = best(free([[0.0, -0.5, -2.0]], (1, 1, 2)), k=3)
    assert [each.choices for each in found] == [(0,), (2,)]


def test_skipped_slots_do_not_part_mixers() -> None:
    steps = apart_steps((1, 2, 0), (True, False, False))
    problem = replace(free([[0.0, -1.0, -0.1]] * 3, (1, 2, 0)), steps=steps)
    words = {problem.word(each.choices) for each in best(problem, k=99)}
    everything = {problem.word(path) for path in itertools.product(range(3), repeat=3)}
    assert words == {word for word in everything if (1, 1) not in itertools.pairwise(word)}
    assert not problem.holds((0, 2, 0))
    assert problem.holds((0, 1, 0))


def test_many_ties_are_left_to_the_integer_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "MOST_LABELS", 3)
    rng = np.random.default_rng(0)
    problem = free(np.round(rng.random((8, 4))).tolist(), (1, 2, 3, 4), [0.3, 0.2, 0.11, 0.07])
    problem = problem.with_row([1.0, 2.0, 3.0, 5.0], 19.0, 1e-9)
    with pytest.raises(labels.TooMany):
        labels.best_words(problem, np.zeros(1), 1)
    monkeypatch.setattr(solve, "multipliers", lambda _: np.zeros(1))
    (found,) = best(problem)
    score, cost, _ = min(exhaustive.networks(problem), key=lambda each: (-each[0], each[1]))
    assert (found.score, found.cost) == pytest.approx((score, cost))
    with pytest.raises(
        InvalidInput, match=r"^too many architectures are as good as the 3 best to tell which these are"
    ):
        best(problem, 3)


@given(problem=problems(), k=st.integers(1, 6))
def test_by_score_alone_the_k_best_are_found_with_one_row(problem: Problem, k: int) -> None:
    kinds = np.unique(problem.codes, return_index=True)[1]  # candidates of one code add alike, as in every space
    alike = kinds[np.searchsorted(np.unique(problem.codes), problem.codes)]
    problem = replace(
        problem,
        rows=problem.rows[:1, alike],
        limits=problem.limits[:1],
        slack=problem.slack[:1],
        costs=problem.costs[alike],
    )
    if not problem.usable.any(axis=1).all():
        return
    found = solve.ordered(problem, labels.best_words(problem, np.zeros(len(problem.rows)), k, by_score=True))[:k]
    expected = exhaustive.networks(problem)[:k]
    assert [each.score for each in found] == pytest.approx([score for score, _, _ in expected], abs=2e-9)
    assert all(problem.holds(each.choices) for each in found)


@pytest.mark.parametrize("bounded", [False, True])
def test_of_more_ties_than_can_be_followed_the_cheapest_are_told(
    bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In the first two slots one candidate leads; the other ten hold four that are alike but for what they cost.
    problem = free([[0.0, -1.0, -1.0, -1.0]] * 2 + [[0.0] * 4] * 10, (1, 2, 3, 0), [1.0, 0.61, 0.37, 0.0])
    if bounded:
        problem = problem.with_row([1.0, 0.61, 0.37, 0.0], 3.1, 1e-9)
    expected = best(problem, 12)
    monkeypatch.setattr(labels, "MOST_LABELS", 90)
    with pytest.raises(labels.TooMany):
        labels.best_words(problem, np.zeros(len(problem.rows)), 12)
    found = best(problem, 12)
    assert [(each.score, each.cost) for each in found] == [(each.score, pytest.approx(each.cost)) for each in expected]
    assert len({problem.word(each.choices) for each in found}) == 12
    with pytest.raises(InvalidInput, match=r"^too many architectures"):  # of two rows neither tells more than the other
        best(replace(problem, rows=np.ones((2, 4)), limits=np.full(2, 99.0), slack=np.zeros(2)), 12)


def test_a_slot_in_which_nothing_may_stand_has_no_answer() -> None:
    problem = free([[0.0, -1.0], [-np.inf, -np.inf]], (1, 0))
    assert best(problem) == []
    assert best(problem.with_row([1.0, 1.0], 2.0, 0.0)) == []
    assert feasible(problem) is None


@pytest.mark.parametrize("k", [0, -1])
def test_fewer_than_one_answer_is_refused(k: int) -> None:
    with pytest.raises(InvalidInput, match=rf"^k is {k}; at least one architecture must be asked for$"):
        best(free([[0.0]], (1,)), k)


def test_ninety_six_slots_with_adjacency_and_a_budget_are_solved_as_the_integer_program_solves_them() -> None:
    rng = np.random.default_rng(5)
    costs = np.array([1.0, 0.6, 0.0, 0.5, 1.3])
    problem = replace(
        free(rng.normal(size=(96, 5)).tolist(), (1, 2, 0, 3, 4), costs.tolist()),
        steps=apart_steps((1, 2, 0, 3, 4), (True, False, False, True, True)),
    ).with_row(costs, 40.0, 4e-8)
    found = best(problem, 3)
    alone = integer(problem)
    assert alone is not None
    assert found[0].score == pytest.approx(problem.score(alone), abs=1e-8)
    assert all(problem.holds(each.choices) for each in found)
