"""Samples that are behind end at fixed shares of their steps, whoever comes first."""

from __future__ import annotations

from itertools import permutations

import pytest

from nas.steps import StepRecord
from workers.rungs import SHARES, Standing, dropped, judged_loss, until


def standings(*losses: float) -> dict[int, Standing]:
    return {number: Standing(loss, 0.0, 4) for number, loss in enumerate(losses)}


@pytest.mark.parametrize(
    ("rung", "n_steps", "expected"),
    [(0, 12, 4), (1, 12, 8), (0, 13, 5), (1, 1, 1), (2, 12, None)],
    ids=lambda value: str(value),
)
def test_rungs_stand_at_thirds(rung: int, n_steps: int, expected: int | None) -> None:
    assert until(rung, n_steps) == expected
    assert len(SHARES) == 2


def test_the_better_half_goes_on_and_at_least_two() -> None:
    four = standings(0.4, 0.1, 0.3, 0.2)
    assert dropped(four, four) == {
        0: "pruned at step 4: behind 3 of 3 other samples",
        2: "pruned at step 4: behind 2 of 3 other samples",
    }
    assert set(dropped(standings(1, 2, 3, 4, 5), standings(1, 2, 3, 4, 5))) == {3, 4}
    assert set(dropped(standings(1, 2, 3), standings(1, 2, 3))) == {2}
    assert dropped(standings(1, 2), standings(1, 2)) == {}


def test_a_later_wave_is_judged_against_all_that_came_there_and_only_it_can_end() -> None:
    all_there = standings(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.05, 0.25)
    wave = {number: all_there[number] for number in (4, 5, 6, 7)}
    assert set(dropped(wave, all_there)) == {4, 5}


def test_the_order_in_which_samples_come_changes_nothing() -> None:
    four = standings(0.4, 0.1, 0.3, 0.2)
    found = [dropped(dict(order), dict(order)) for order in permutations(four.items())]
    assert all(each == found[0] for each in found)


def test_equal_samples_all_go_on() -> None:
    assert dropped(standings(1, 1, 1, 1), standings(1, 1, 1, 1)) == {}


def test_under_a_budget_a_sample_is_behind_only_those_that_are_not_further_over_it() -> None:
    there = {
        0: Standing(0.1, 3.0, 4),
        1: Standing(0.2, 2.0, 4),
        2: Standing(0.3, 1.0, 4),
        3: Standing(0.4, 1.0, 4),
        4: Standing(0.5, 2.5, 4),
        5: Standing(0.6, 3.0, 4),
    }
    assert dropped(there, there) == {
        4: "pruned at step 4: behind 3 of 5 other samples",
        5: "pruned at step 4: behind 5 of 5 other samples",
    }


def test_judged_are_sampled_paths_where_they_were_validated() -> None:
    assert judged_loss(StepRecord(4, val_loss_soft=2.0, val_loss_sampled=1.0)) == 1.0
    assert judged_loss(StepRecord(4, val_loss_soft=2.0)) == 2.0
