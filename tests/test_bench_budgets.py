"""The bench of budgets: what it asks for, and what it holds a search against. No search is run here."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import budgets, planted
from bench.kept import fill
from nas.budgets import bounds
from nas.data.enumerated import STACKS


@pytest.mark.parametrize("task", budgets.TASKS)
def test_the_bound_of_a_request_is_the_benchs_by_the_stored_table(task: str) -> None:
    budget_ms = budgets.budget_of(task, 0.5)
    request = budgets.request_of(task, budget_ms, 0)
    (bound,) = bounds(request, planted.table_of(request))
    assert bound.target == budget_ms
    labels = {each.letter: number for number, each in enumerate(request.space.candidates)}
    for stack in ("...", "A..", "FSM"):
        assert bound.of([labels[letter] for letter in stack]) == pytest.approx(budgets.cost_of(task, stack))


@pytest.mark.parametrize("task", budgets.TASKS)
def test_the_best_feasible_stack_fits_and_a_larger_budget_has_no_worse_one(task: str) -> None:
    targets = [budgets.budget_of(task, share) for share in budgets.SHARES]
    assert targets == sorted(targets)
    assert sum(budgets.cost_of(task, stack) <= targets[2] for stack in STACKS) in (43, 44), "half of 85"
    for budget_ms in targets:
        assert budgets.cost_of(task, budgets.best_feasible(task, budget_ms)) <= budget_ms


def test_a_planted_task_that_was_solved_leaves_no_loss() -> None:
    assert budgets.loss_of("lookup", 400, 0.991, 0.02) == 0.0
    assert budgets.loss_of("lookup", 1000, 0.8, 0.5) == 0.5
    assert budgets.loss_of("python-docs", 1000, 0.995, 0.02) == 0.02


def test_a_stack_as_good_as_the_best_passes_and_a_worse_one_does_not(tmp_path: Path) -> None:
    best = budgets.best_feasible("lookup", budgets.budget_of("lookup", 0.3))
    losses = {best: [0.0] * 4, "F": [2.0, 2.1, 1.9, 2.0]}
    for stack, values in losses.items():
        wanted = [{"task": "lookup", "stack": stack, "seed": seed} for seed in range(4)]
        fill(tmp_path / "trainings.json", wanted, lambda task, stack, seed, of=values: {"loss": of[seed]}, ["loss"])
    for stacks, chosen in ((["..F", f"{best}.."], best), (["F.."], "F")):
        row = budgets.judge({"task": "lookup", "share": 0.3, "seed": 0, "stacks": stacks}, tmp_path)
        assert (row["stack"], row["passed"]) == (chosen, chosen == best), row
    nothing = budgets.judge({"task": "lookup", "share": 0.3, "seed": 0, "stacks": []}, tmp_path)
    assert (nothing["passed"], nothing["difference"]) == (False, None)
