"""Derivation against exhaustive search, and what it says where the search could not tell."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from nas.architecture import Architecture
from nas.budgets import BoundedCost
from nas.config.space import SearchSpace
from nas.derive import argmax_architecture, check_budget, derive, derive_record, leaders, leading
from nas.errors import Infeasible, InvalidInput, SearchFailed
from nas.steps import StepRecord
from tests import tiny

LABELS = ("attention", "ffn", "identity", "sgu", "mgk")


def space(n_slots: int, n_candidates: int) -> SearchSpace:
    return SearchSpace.model_validate(
        {"n_slots": n_slots, "d_model": 8, "n_heads": 2, "max_len": 8, "candidates": LABELS[:n_candidates]}
    )


def latency(slot_costs: ArrayLike, offset: float, ms: float) -> BoundedCost:
    return BoundedCost("latency", "ms", tuple(np.asarray(slot_costs, np.float64).tolist()), offset, ms, None)


def within(
    probabilities: ArrayLike, gaps: ArrayLike, space: SearchSpace, slot_costs: ArrayLike, offset: float, ms: float
) -> Architecture:
    """Derived within a bound on latency alone."""
    bounds = [latency(slot_costs, offset, ms)]
    return derive(probabilities, gaps, space, slot_costs=slot_costs, bounds=bounds)


def softmax(alpha: NDArray[np.float64]) -> NDArray[np.float32]:
    exponentials = np.exp(alpha - alpha.max(axis=1, keepdims=True))
    return (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)


@st.composite
def problems(draw: st.DrawFn) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64], float]:
    """Probabilities (L, K), null gaps (L,), costs (K,) and an offset, small enough to try every architecture."""
    n_slots, n_candidates = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    alpha = rng.normal(size=(n_slots, n_candidates)) * draw(st.sampled_from([0.05, 1.0, 5.0]))
    if draw(st.booleans()):  # exact ties, as equal alphas make them
        alpha = np.round(alpha)
    gaps = rng.random(n_slots) * draw(st.sampled_from([0.0, 0.5, 2.0]))
    costs = rng.random(n_candidates) * draw(st.sampled_from([0.01, 1.0, 100.0]))
    if draw(st.booleans()):
        costs[draw(st.integers(0, n_candidates - 1))] = 0.0
    return softmax(alpha), gaps, costs, float(rng.random())


def raised_scores(probabilities: NDArray[np.float32], gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-probabilities with every candidate within the gap of its slot's top raised to the top, by a plain loop."""
    logs = np.log(np.maximum(probabilities.astype(np.float64), 1e-45))
    for row, gap in zip(logs, gaps, strict=True):
        top = row.max()
        for index, value in enumerate(row):
            if top - value <= gap:
                row[index] = top
    return logs


def nothing_moved(probabilities: NDArray[np.float32], gaps: NDArray[np.float64]) -> bool:
    scores = raised_scores(probabilities, gaps)
    return bool(((scores == scores.max(axis=1, keepdims=True)).sum(axis=1) > 1).all())


@given(problem=problems(), share=st.floats(0, 1))
def test_derived_architecture_is_the_best_of_all_within_the_budget(
    problem: tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64], float], share: float
) -> None:
    probabilities, gaps, costs, offset = problem
    if nothing_moved(probabilities, gaps):
        return
    n_slots, n_candidates = probabilities.shape
    scores = raised_scores(probabilities, gaps)
    paths = np.array(list(itertools.product(range(n_candidates), repeat=n_slots)))
    all_scores = scores[np.arange(n_slots), paths].sum(axis=1)
    all_costs = offset + costs[paths].sum(axis=1)
    budget = float(np.quantile(all_costs, share, method="nearest"))  # exactly what some architecture takes
    feasible = all_costs <= budget * (1 + 1e-9)
    best_score = all_scores[feasible].max()
    best_cost = all_costs[feasible & (all_scores >= best_score - 1e-9)].min()

    found = within(probabilities, gaps, space(n_slots, n_candidates), costs, offset, budget)
    chosen = [LABELS.index(label) for label in found.labels]
    assert offset + costs[chosen].sum() <= budget * (1 + 2e-9)
    # HiGHS works to 1e-9 of the score and of the budget.
    assert scores[np.arange(n_slots), chosen].sum() == pytest.approx(best_score, abs=4e-9)
    assert offset + costs[chosen].sum() == pytest.approx(best_cost, abs=4e-9 * budget)


@given(problem=problems(), shift=st.floats(-3, 3))
def test_without_a_budget_each_slot_takes_its_cheapest_leader_whatever_a_row_is_shifted_by(
    problem: tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64], float], shift: float
) -> None:
    probabilities, gaps, costs, _ = problem
    choices, undecided = leaders(probabilities, gaps, costs)
    scores = raised_scores(probabilities, gaps)
    for slot, choice in enumerate(choices):
        tied = [index for index, score in enumerate(scores[slot]) if score == scores[slot].max()]
        assert choice in tied
        assert costs[choice] == min(costs[index] for index in tied)
        assert (slot in undecided) == (len(tied) > 1)
    logs = np.log(np.maximum(probabilities.astype(np.float64), 1e-45))
    if not np.isclose(logs.max(axis=1, keepdims=True) - logs, gaps[:, None], atol=1e-6).any():  # no tie at an edge
        assert leaders(np.exp(logs + shift), gaps, costs)[1] == undecided


def test_argmax_of_decided_slots_is_the_most_probable_label_however_dear() -> None:
    probabilities = [[0.7, 0.1, 0.2], [0.1, 0.2, 0.7]]
    found = argmax_architecture(probabilities, [0.1, 0.1], space(2, 3), slot_costs=[9.0, 1.0, 0.0])
    assert str(found) == "A."
    assert found.undecided == ()


def test_undecided_slot_takes_its_cheapest_tied_candidate_and_is_marked() -> None:
    probabilities = [[0.45, 0.44, 0.11], [0.1, 0.2, 0.7]]
    found = argmax_architecture(probabilities, [0.1, 0.1], space(2, 3), slot_costs=[9.0, 1.0, 0.0])
    assert str(found) == "F."
    assert found.undecided == (0,)


def test_gap_of_exactly_the_null_gap_is_a_tie() -> None:
    probabilities = np.exp([[-1.0, -1.5, -9.0], [0.0, -8.0, -9.0]])
    gap = float(np.log(probabilities[0, 0]) - np.log(probabilities[0, 1]))
    assert leaders(probabilities, [gap, gap], [3.0, 2.0, 0.0]) == ((1, 0), (0,))
    assert leaders(probabilities, [np.nextafter(gap, 0), gap], [3.0, 2.0, 0.0]) == ((0, 0), ())


def test_ties_at_equal_cost_go_to_the_candidate_listed_first() -> None:
    assert leaders([[0.4, 0.4, 0.2]], [0.0], [1.0, 1.0, 1.0]) == ((0,), (0,))


def test_slot_stays_marked_where_the_budget_forces_a_candidate_that_was_not_tied() -> None:
    probabilities = [[0.45, 0.44, 0.11], [0.8, 0.1, 0.1]]
    found = within(probabilities, [0.1, 0.1], space(2, 3), [3.0, 2.0, 0.0], 1.0, 4.0)
    assert str(found) == ".A"
    assert found.undecided == (0,)


def test_underflowed_probabilities_are_the_worst_but_finite() -> None:
    assert leaders([[1.0, 0.0, 0.0]], [0.5], [1.0, 1.0, 0.0]) == ((0,), ())


def test_one_candidate_leaves_nothing_undecided() -> None:
    only = space(3, 1)
    found = within([[1.0]] * 3, [0.0] * 3, only, [2.0], 1.0, 7.0)
    assert str(found) == "AAA"
    assert found.undecided == ()


def test_fastest_architecture_that_is_over_by_a_rounding_error_is_within_the_budget() -> None:
    probabilities = [[0.7, 0.2, 0.1]] * 2
    found = within(probabilities, [0.1] * 2, space(2, 3), [3.0, 2.0, 0.0], 1.0, 1 - 5e-10)
    assert str(found) == ".."


def test_ninety_six_slots_are_derived_within_the_budget() -> None:
    rng = np.random.default_rng(0)
    probabilities, costs = softmax(rng.normal(size=(96, 5))), np.array([1.0, 0.6, 0.0, 0.5, 1.3])
    found = within(probabilities, [0.05] * 96, space(96, 5), costs, 2.0, 50.0)
    spent = 2.0 + sum(costs[LABELS.index(label)] for label in found.labels)
    assert 49.0 < spent <= 50.0


def test_budget_below_the_fastest_architecture_names_both() -> None:
    message = r"^budget\.latency allows 4 ms; the smallest architecture has 5\.2 ms$"
    with pytest.raises(Infeasible, match=message):
        within([[0.7, 0.3]] * 2, [0.1] * 2, space(2, 2), [3.0, 2.1], 1.0, 4.0)


@pytest.mark.parametrize(
    ("probabilities", "gaps"),
    [([[1 / 3] * 3] * 2, [0.0, 0.0]), ([[0.34, 0.33, 0.33], [0.32, 0.34, 0.34]], [0.1, 0.1])],
    ids=["untouched", "within chance"],
)
def test_search_in_which_nothing_moved_has_failed(probabilities: list[list[float]], gaps: list[float]) -> None:
    with pytest.raises(SearchFailed, match=r"^no slot's alpha moved beyond chance \(largest gap .* by chance .* nats"):
        argmax_architecture(probabilities, gaps, space(2, 3), slot_costs=[1.0, 1.0, 0.0])


def test_a_candidate_that_fell_behind_decides_nothing() -> None:
    with pytest.raises(
        SearchFailed, match=r"no slot's alpha moved beyond chance \(largest gap 0, by chance 0.1 nats\)"
    ):
        argmax_architecture([[0.48, 0.48, 0.04]] * 2, [0.1] * 2, space(2, 3), slot_costs=[3.0, 2.0, 0.0])


def test_one_decided_slot_is_an_answer_with_the_others_marked() -> None:
    rows = [[0.48, 0.48, 0.04], [0.2, 0.7, 0.1]]
    found = argmax_architecture(rows, [0.1] * 2, space(2, 3), slot_costs=[3.0, 2.0, 0.0])
    assert str(found) == "FF"
    assert found.undecided == (0,)


def test_probabilities_that_are_not_numbers_mean_a_diverged_search() -> None:
    with pytest.raises(SearchFailed, match=r"^the probabilities of slot 2 are not numbers; the search has diverged$"):
        leaders([[0.7, 0.3], [float("nan"), 0.3]], [0.1, 0.1], [1.0, 0.0])


def test_probabilities_of_another_space_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^probabilities have shape \(2, 3\); a space of 3 slots and 3 candidates"):
        argmax_architecture([[0.5, 0.3, 0.2]] * 2, [0.1] * 2, space(3, 3), slot_costs=[1.0, 1.0, 0.0])


def test_shapes_that_do_not_fit_each_other_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^probabilities \(1, 3\), null gaps \(2,\) and slot costs \(3,\) do not"):
        leaders([[0.5, 0.3, 0.2]], [0.1, 0.1], [1.0, 1.0, 0.0])


def test_scipy_is_loaded_only_where_a_budget_binds_and_torch_never() -> None:
    code = """
import sys
from nas.budgets import BoundedCost
from nas.config.space import SearchSpace
from nas.derive import derive
space = SearchSpace(n_slots=2)
probabilities = [[0.6, 0.1, 0.1, 0.1, 0.1]] * 2
costs = (3.0, 2.0, 0.0, 2.5, 3.5)
for ms in (7.0, 6.0):
    assert "scipy" not in sys.modules
    bound = BoundedCost("latency", "ms", costs, 1.0, ms, None)
    derive(probabilities, [0.1, 0.1], space, slot_costs=costs, bounds=[bound])
assert "scipy" in sys.modules
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@given(problem=problems(), seed=st.integers(0, 1000), shares=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_several_bounds_and_forbidden_candidates_hold_together_and_the_best_of_all_is_found(
    problem: tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64], float],
    seed: int,
    shares: tuple[float, float],
) -> None:
    probabilities, gaps, costs, offset = problem
    n_slots, n_candidates = probabilities.shape
    rng = np.random.default_rng(seed)
    allowed = rng.random((n_slots, n_candidates)) < 0.7
    allowed[np.arange(n_slots), rng.integers(0, n_candidates, n_slots)] = True
    weights = np.round(rng.random(n_candidates) * 1e6)
    paths = [path for path in itertools.product(range(n_candidates), repeat=n_slots)
             if all(allowed[slot, choice] for slot, choice in enumerate(path))]  # fmt: skip
    totals = {path: (offset + sum(costs[list(path)]), sum(weights[list(path)])) for path in paths}
    targets = [float(np.quantile([each[kind] for each in totals.values()], share, method="nearest"))
               for kind, share in enumerate(shares)]  # fmt: skip
    bounds = [
        latency(costs, offset, targets[0]),
        BoundedCost("parameters", "parameters", tuple(weights.tolist()), 0.0, targets[1], None),
    ]
    layout = [{"forbidden": [LABELS[k] for k in range(n_candidates) if not row[k]]} for row in allowed]
    whole = SearchSpace.model_validate({**space(n_slots, n_candidates).model_dump(), "layout": layout})
    feasible = [path for path in paths if all(bound.holds(path) for bound in bounds)]
    masked = np.where(allowed, probabilities, 0.0)
    try:
        found = derive(masked, gaps, whole, slot_costs=costs, bounds=bounds)
    except Infeasible:
        assert not feasible
        return
    except SearchFailed:  # nothing moved
        return
    chosen = tuple(LABELS.index(label) for label in found.labels)
    assert all(allowed[slot, choice] for slot, choice in enumerate(chosen))
    assert all(bound.of(chosen) <= bound.target * (1 + 3e-9) for bound in bounds)
    scores = raised_scores(np.where(allowed, probabilities, np.float32(0)), gaps)
    best = max(sum(scores[slot, choice] for slot, choice in enumerate(path)) for path in feasible)
    assert sum(scores[slot, choice] for slot, choice in enumerate(chosen)) == pytest.approx(best, abs=1e-8)


def test_bounds_that_only_together_leave_nothing_are_named() -> None:
    request = tiny.request(space={"candidates": ["attention", "ffn"]})
    fast, small = latency([3.0, 2.0], 1.0, 5.0), BoundedCost("flops", "FLOPs", (10.0, 20.0), 0.0, 20.0, None)
    check_budget(request, [fast])
    check_budget(request, [small])
    message = r"^no architecture meets all bounds of the budget at once \(latency 5 ms, flops 20 FLOPs\); each alone"
    with pytest.raises(Infeasible, match=message):
        check_budget(request, [fast, small])


# -- behind a parsimony pass ------------------------------------------------------------------------------------------

EQUAL = [[0.2] * 5] * 2  # attention, ffn, identity, sgu, mgk, none of them ahead of the others


def pruned(nats: list[list[float | None]], se: list[list[float | None]], path: list[int]) -> StepRecord:
    return StepRecord(
        9, probabilities=EQUAL, null_gaps=[0.1, 0.1], path=path, effect_nats=nats, effect_se=se
    )  # fmt: skip


def test_the_path_of_the_parsimony_pass_is_the_architecture_though_alpha_decided_nothing() -> None:
    request, table = tiny.request(), tiny.table(tiny.request().space)
    record = pruned(
        [[0.0, 0.3, 0.4, None, None], [0.001, None, 0.0, -0.0005, None]],
        [[0.0, 0.1, 0.1, None, None], [0.002, None, 0.0, 0.001, None]],
        [0, 2],
    )
    found = derive_record(request, table, record, [])
    assert (str(found), found.undecided) == ("A.", (1,))
    assert leading(request, table, record).undecided == (0, 1)
    with pytest.raises(SearchFailed, match=r"^no slot's alpha moved beyond chance"):
        derive_record(request, table, StepRecord(9, probabilities=EQUAL, null_gaps=[0.1, 0.1]), [])


def test_a_slot_without_a_comparison_is_undecided_where_alpha_is_within_chance() -> None:
    request, table = tiny.request(), tiny.table(tiny.request().space)
    nothing: list[list[float | None]] = [[0.0, None, None, None, None], [None, None, 0.0, None, None]]
    record = pruned(nothing, nothing, [0, 2])
    assert derive_record(request, table, record, []).undecided == (0, 1)
    ahead = [[0.9, 0.025, 0.025, 0.025, 0.025], [0.2] * 5]
    record = StepRecord(**{**vars(record), "probabilities": ahead})
    assert derive_record(request, table, record, []).undecided == (1,)


def test_a_path_over_the_bound_gives_up_what_was_measured_to_cost_least() -> None:
    request, table = tiny.request(), tiny.table(tiny.request().space)
    se: list[list[float | None]] = [[0.0, 0.01, 0.01, 0.01, None]] * 2
    record = pruned([[0.0, 0.05, 0.2, 0.3, None], [0.0, 0.3, 0.1, 0.2, None]], se, [0, 0])
    for ms, expected in ((7.0, "AA"), (6.0, "FA"), (5.0, "A."), (3.0, "F."), (1.0, "..")):
        found = derive_record(request, table, record, [latency(table.slot_ms(request.space), 1.0, ms)])
        assert str(found) == expected, ms


def test_what_was_never_tried_costs_as_many_nats_as_its_log_probability_lies_behind() -> None:
    request, table = tiny.request(), tiny.table(tiny.request().space)
    se: list[list[float | None]] = [[0.0, None, 0.01, None, None]] * 2
    record = pruned([[0.0, None, 0.5, None, None], [0.0, None, 0.4, None, None]], se, [0, 0])
    rows = [[0.5, 0.4, 0.03, 0.04, 0.03], [0.5, 0.2, 0.1, 0.1, 0.1]]  # ffn is 0.22 and 0.92 nats behind attention
    record = StepRecord(**{**vars(record), "probabilities": rows})
    found = derive_record(request, table, record, [latency(table.slot_ms(request.space), 1.0, 6.0)])
    assert str(found) == "FA"
    found = derive_record(request, table, record, [latency(table.slot_ms(request.space), 1.0, 4.0)])
    assert str(found) == "A.", "0.4 nats against 0.22 + 0.92"
