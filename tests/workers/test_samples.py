"""Waves of hyper-parameters are a function of what was told, so a restart draws the same."""

from __future__ import annotations

from tests import tiny
from workers.samples import WAVE, Told, next_wave

RANGES = [
    {"pointer": "/method/lr", "low": 1e-4, "high": 1e-2, "log": True},
    {"pointer": "/method/warmup_share", "low": 0.1, "high": 0.9},
]
REQUEST = tiny.request(ranges=RANGES, trials={"n_seeds": 1, "n_samples": 6})


def told(n: int) -> list[Told]:
    return [Told({"/method/lr": 1e-3 * (i + 1), "/method/warmup_share": 0.5}, float(i)) for i in range(n)]


def test_without_ranges_there_is_one_sample_that_varies_nothing() -> None:
    request = tiny.request()
    assert next_wave(request, []) == [{}]
    assert next_wave(request, [Told({}, 1.0)]) == []


def test_waves_have_a_fixed_size_and_stop_at_the_number_of_samples() -> None:
    assert len(next_wave(REQUEST, [])) == WAVE
    assert len(next_wave(REQUEST, told(WAVE))) == 2
    assert next_wave(REQUEST, told(6)) == []


def test_values_are_within_their_ranges_and_differ() -> None:
    wave = next_wave(REQUEST, [])
    assert all(1e-4 <= values["/method/lr"] <= 1e-2 for values in wave)
    assert all(0.1 <= values["/method/warmup_share"] <= 0.9 for values in wave)
    assert len({values["/method/lr"] for values in wave}) == WAVE


def test_the_same_history_draws_the_same_wave_again() -> None:
    assert next_wave(REQUEST, []) == next_wave(REQUEST, [])
    assert next_wave(REQUEST, told(WAVE)) == next_wave(REQUEST, told(WAVE))
    other = REQUEST.model_copy(update={"trials": REQUEST.trials.model_copy(update={"seed": 1})})
    assert next_wave(other, []) != next_wave(REQUEST, [])


def test_any_seed_of_a_request_can_draw() -> None:
    largest = tiny.request(ranges=RANGES, trials={"seed": 2**31 - 2, "n_seeds": 1, "n_samples": 6})
    assert len(next_wave(largest, told(WAVE))) == 2


def test_a_failed_sample_is_part_of_the_history() -> None:
    history = [*told(WAVE - 1), Told({"/method/lr": 1e-2, "/method/warmup_share": 0.2}, None)]
    assert len(next_wave(REQUEST, history)) == 2
