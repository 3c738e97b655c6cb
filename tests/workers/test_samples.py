"""Waves of hyper-parameters are a function of what was told, so a restart draws the same."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Literal

import pytest

from nas.config.request import SearchRequest
from tests import tiny
from workers.samples import WAVE, Told, next_wave

RANGES = [
    {"pointer": "/method/lr", "low": 1e-4, "high": 1e-2, "log": True},
    {"pointer": "/method/warmup_share", "low": 0.1, "high": 0.8},
]
REQUEST = tiny.request(ranges=RANGES, trials={"n_seeds": 1, "n_samples": 6})


def told(n: int) -> list[Told]:
    drawn = [{"/method/lr": 1e-3 * (i + 1), "/method/warmup_share": 0.5} for i in range(n)]
    return [Told(values, "succeeded", (float(i),)) for i, values in enumerate(drawn)]


def test_without_ranges_there_is_one_sample_that_varies_nothing() -> None:
    request = tiny.request()
    assert next_wave(request, []) == [{}]
    assert next_wave(request, [Told({}, "succeeded", (1.0,))]) == []


def test_waves_have_a_fixed_size_and_stop_at_the_number_of_samples() -> None:
    assert len(next_wave(REQUEST, [])) == WAVE
    assert len(next_wave(REQUEST, told(WAVE))) == 2
    assert next_wave(REQUEST, told(6)) == []


def test_values_are_within_their_ranges_and_differ() -> None:
    wave = next_wave(REQUEST, [])
    assert all(1e-4 <= values["/method/lr"] <= 1e-2 for values in wave)
    assert all(0.1 <= values["/method/warmup_share"] <= 0.8 for values in wave)
    assert len({values["/method/lr"] for values in wave}) == WAVE


def test_the_same_history_draws_the_same_wave_again() -> None:
    assert next_wave(REQUEST, []) == next_wave(REQUEST, [])
    assert next_wave(REQUEST, told(WAVE)) == next_wave(REQUEST, told(WAVE))
    other = REQUEST.model_copy(update={"trials": REQUEST.trials.model_copy(update={"seed": 1})})
    assert next_wave(other, []) != next_wave(REQUEST, [])


def test_any_seed_of_a_request_can_draw() -> None:
    largest = tiny.request(ranges=RANGES, trials={"seed": 2**31 - 2, "n_seeds": 1, "n_samples": 6})
    assert len(next_wave(largest, told(WAVE))) == 2


LONG = tiny.request(ranges=RANGES, trials={"n_seeds": 1, "n_samples": 64})
BOUNDED = LONG.model_copy(update={"budget": tiny.request(budget={"latency": {"ms": 9}}).budget})


def share(values: dict[str, float]) -> float:
    return values["/method/warmup_share"]


def history(request: SearchRequest, ended: Callable[[dict[str, float]], Told], n: int = 48) -> list[Told]:
    """Samples as they are drawn one after the other."""
    found: list[Told] = []
    while len(found) < n:
        found += [ended(values) for values in next_wave(request, found)]
    return found


def gathers_at(found: list[Told], least: float) -> bool:
    """Whether the later samples lie nearer to a share of warm-up than those that were drawn blindly do."""
    distances = [abs(share(each.values) - least) for each in found]
    return mean(distances[-24:]) < mean(distances[:8]) / 2


def test_samples_gather_where_the_mean_loss_is_least() -> None:
    def ended(values: dict[str, float]) -> Told:
        return Told(values, "succeeded", (0.0, 2 * abs(share(values) - 0.7)))

    assert gathers_at(history(LONG, ended), 0.7)


@pytest.mark.parametrize("request_", [LONG, BOUNDED], ids=["loss", "loss and cost"])
def test_a_pruned_sample_is_kept_away_from_however_good_it_looked(request_: SearchRequest) -> None:
    def low(state: Literal["succeeded", "pruned", "failed"]) -> Callable[[dict[str, float]], Told]:
        def ended(values: dict[str, float]) -> Told:
            cost = None if request_ is LONG else share(values)
            is_low = share(values) < 0.45
            return Told(values, state if is_low else "succeeded", (share(values),), cost, 1)

        return ended

    found = {state: history(request_, low(state)) for state in ("succeeded", "pruned", "failed")}
    n_low = {state: sum(share(each.values) < 0.45 for each in told[-24:]) for state, told in found.items()}
    assert n_low["pruned"] < 12 < 20 < n_low["succeeded"]  # blindly, 12 of 24
    assert found["failed"] != found["pruned"]


def test_with_a_budget_samples_gather_where_cost_is_least_too() -> None:
    def ended(values: dict[str, float]) -> Told:
        return Told(values, "succeeded", (1.0,), abs(share(values) - 0.7))

    assert gathers_at(history(BOUNDED, ended), 0.7)


@pytest.mark.parametrize("log", [False, True], ids=["linear", "log"])
def test_whole_numbers_are_drawn_between_the_bounds(log: bool) -> None:
    ranges = [{"pointer": "/method/batch_size", "low": 2.5, "high": 6.5, "log": log}]
    request = tiny.request(ranges=ranges, trials={"n_seeds": 1, "n_samples": 64})
    found = history(request, lambda values: Told(values, "succeeded", (1.0,)), 16)
    drawn = [each.values["/method/batch_size"] for each in found]
    assert set(drawn) == {3, 4, 5, 6}
    assert all(isinstance(value, int) for value in drawn)
