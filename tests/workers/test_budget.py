"""Predict, measure, correct: the bound shrinks by what a derived architecture was over as timed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nas.architecture import interleaved
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.cost import parameters as parameters_of
from nas.data.corpora import text_file
from nas.measure import PairedLatency, verdict
from nas.steps import StepRecord
from tests import tiny
from workers.budget import INTERLEAVED, derive_within, is_over, kept, more_within, timed_again, unconfirmed
from workers.inline import run_local
from workers.stages import compare

# attention 3 ms, ffn 2, identity 0, sgu 2.5, mgk 3.5, offset 1; both slots want mgk, then attention, sgu, ffn, identity
WANTED = [0.3, 0.15, 0.05, 0.2, 0.3001]
RECORD = StepRecord(9, probabilities=[WANTED, WANTED], null_gaps=[0.0, 0.0])


def timed(derived: float, parent: float, repeatability: float = 0.0, half: float = 0.0) -> PairedLatency:
    """As timed, with an interval of `half` of it on both sides."""
    ms = {"derived": derived, "parent": parent}
    ratio = derived / parent
    intervals = {name: (each * (1 - half), each * (1 + half)) for name, each in ms.items()}
    return PairedLatency(ratio, ratio * (1 - half), ratio * (1 + half), repeatability, ms, 60, intervals)


def timing(slower: float, calls: list[tuple[str, str]], repeatability: float = 0.01) -> Any:
    """A machine on which everything but attention and ffn takes `slower` times what the table says."""
    costs = {name: ms * (1 if name in ("attention", "ffn") else slower) for name, ms in tiny.MILLISECONDS.items()}

    def time_beside(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        calls.append((" ".join(labels), " ".join(others)))
        taken, beside = (1 + sum(costs[label] for label in each) for each in (labels, others))
        return timed(taken, beside, repeatability)

    return time_beside


def search(latency: dict[str, float] | None) -> tuple[SearchRequest, LatencyTable]:
    request = tiny.request(budget={"latency": latency})
    return request, tiny.table(request.space)


def test_without_a_budget_nothing_is_timed() -> None:
    calls: list[tuple[str, str]] = []
    request, table = search(None)
    found = derive_within(request, table, RECORD, timing(1, calls))
    assert (str(found.architecture), found.timed, found.missed, calls) == ("MM", None, (), [])


def test_a_bound_that_holds_as_measured_is_left_alone() -> None:
    calls: list[tuple[str, str]] = []
    request, table = search({"ratio_to_parent": 1.1})  # 6.6 ms
    found = derive_within(request, table, RECORD, timing(1, calls))
    assert found.missed == ()
    assert calls == [(" ".join(found.architecture.labels), "attention ffn")]


@pytest.mark.parametrize("latency", [{"ratio_to_parent": 1.1}, {"ms": 6.6}], ids=["ratio", "milliseconds"])
def test_a_missed_bound_is_corrected_until_it_holds(latency: dict[str, float]) -> None:
    calls: list[tuple[str, str]] = []
    request, table = search(latency)
    machine = timing(1.5, calls)
    found = derive_within(request, table, RECORD, machine)
    assert len(found.missed) == len(calls) - 1 > 0
    assert found.missed[0].startswith("AS, predicted to run within the budget in 6.5 ms, takes")
    assert machine(found.architecture.labels, ("attention", "ffn")).ms["derived"] <= 6.6 * 1.01


def test_the_last_correction_is_timed_and_told_too() -> None:
    request = tiny.request(space={"n_slots": 8}, budget={"latency": {"ms": 25.0}})
    record = StepRecord(9, probabilities=[WANTED] * 8, null_gaps=[0.0] * 8)
    calls: list[tuple[str, str]] = []

    def always_over(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        calls.append((" ".join(labels), " ".join(others)))
        return timed(26.0, 26.0)

    found = derive_within(request, tiny.table(request.space), record, always_over)
    assert len(found.missed) == len(calls) == 4
    assert found.missed[-1].startswith(f"{found.architecture}, predicted")
    assert calls[-1][0] == " ".join(found.architecture.labels)


def test_a_bound_that_no_correction_meets_is_told() -> None:
    request, table = search({"ms": 1.0})  # the offset alone: predicted to hold with two identities

    def always_over(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        return timed(1.5, 1.5)

    found = derive_within(request, table, RECORD, always_over)
    assert str(found.architecture) == ".."
    assert found.missed == (
        ".., predicted to run within the budget in 1 ms, takes 1.5 ms as measured (1.5 to 1.5); the budget is 1, "
        "repeatability 0",
    )


@pytest.mark.parametrize(("ms", "half", "n_calls"), [(6.4, 0.1, 1), (6.7, 0.1, 2), (6.7, 0.01, 2)])
def test_what_cannot_be_told_stands_where_its_middle_is_within_the_bound(ms: float, half: float, n_calls: int) -> None:
    request, table = search({"ms": 6.6})
    calls: list[float] = []

    def beside(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        calls.append(ms if not calls else 5.0)
        return timed(calls[-1], 6.0, half=half)

    derive_within(request, table, RECORD, beside)
    assert len(calls) == n_calls


def test_the_next_best_hold_the_bound_as_measured_too_and_others_take_the_place_of_those_that_do_not() -> None:
    calls: list[tuple[str, str]] = []
    request, table = search({"ratio_to_parent": 1.1})  # 6.6 ms
    machine = timing(1.5, calls)  # on which mgk, sgu and identity take half as much again as the table says
    first = derive_within(request, table, RECORD, machine)
    more = more_within(request, table, RECORD, machine, first, 4)
    assert len(more) == 3
    words = {each.architecture.word for each in (first, *more)}
    assert len(words) == 4
    for each in more:
        assert each.timed is not None
        assert each.timed.ms["derived"] <= 6.6 * 1.01
    assert more_within(request, table, RECORD, machine, first, 1) == []


def test_without_a_budget_the_next_best_are_not_timed() -> None:
    calls: list[tuple[str, str]] = []
    request, table = search(None)
    first = derive_within(request, table, RECORD, timing(1, calls))
    more = more_within(request, table, RECORD, timing(1, calls), first, 3)
    assert ([each.timed for each in more], calls) == ([None, None], [])


def test_the_parent_itself_is_within_its_own_latency_however_noisy_the_machine() -> None:
    record = StepRecord(9, probabilities=[[0.9, 0.1, 0, 0, 0], [0.1, 0.9, 0, 0, 0]], null_gaps=[0.0, 0.0])
    request, table = search({"ratio_to_parent": 1.0})
    found = derive_within(request, table, record, lambda labels, others: timed(6.5, 6.0, 0.0, 0.1))
    assert (str(found.architecture), found.missed) == ("AF", ())
    assert found.timed is not None
    assert (found.timed.ratio, found.timed.low, found.timed.high) == (1.0, 1.0, 1.0)


def test_a_table_of_another_device_is_neither_confirmed_nor_corrected_by_timing_here() -> None:
    calls: list[tuple[str, str]] = []
    request, table = search({"ratio_to_parent": 1.1})
    assert unconfirmed(request, table, {**table.device, "torch": "of another day"}) is None
    reason = unconfirmed(request, table, {"processor": "another", "accelerator": "a GPU"})
    assert reason == (
        f"latency table {table.id} is of another device than the trials run on (accelerator none and not a GPU, "
        "processor made up and not another), so budget.latency is met by its prediction alone: timing here would "
        "neither confirm nor correct it"
    )
    found = derive_within(request, table, RECORD, timing(1.5, calls), reason)
    assert (str(found.architecture), found.timed, found.missed, calls) == ("AS", None, (), [])
    (bound,) = kept(request, table, found.architecture, RECORD, found.timed, reason)
    assert (bound["measured"], bound["verdict"], bound["reason"]) == (None, "cannot tell", reason)
    unbounded, _ = search(None)
    assert unconfirmed(unbounded, table, {"processor": "another"}) is None


def test_each_bound_is_told_with_target_prediction_expectation_measurement_and_verdict() -> None:
    request = tiny.request(budget={"latency": {"ratio_to_parent": 1.1}, "parameters": {"at_most": 5000}})
    table, architecture = tiny.table(request.space), interleaved(request.space)
    latency, parameters = kept(request, table, architecture, RECORD, timed(6.3, 6.0, 0.0, 0.1))
    assert latency == {
        "name": "latency", "unit": "of the parent", "target": pytest.approx(1.1), "predicted": 1.0,
        "expected": pytest.approx((1 + 2 * (0.3 * 3 + 0.15 * 2 + 0.2 * 2.5 + 0.3001 * 3.5)) / 6),
        "measured": pytest.approx(1.05), "low": pytest.approx(0.945), "high": pytest.approx(1.155),
        "verdict": "cannot tell", "reason": None,
    }  # fmt: skip
    total = parameters_of(architecture, request.space)
    assert (parameters["predicted"], parameters["measured"], parameters["verdict"]) == (total, None, "within")
    smaller = tiny.request(budget={"latency": {"ms": 5.0}, "parameters": {"at_most": total - 1}})
    latency, parameters = kept(smaller, table, architecture, None, timed(6.3, 6.0, 0.0, 0.1))
    assert (latency["unit"], latency["predicted"], latency["measured"], latency["verdict"]) == ("ms", 6.0, 6.3, "over")
    assert (parameters["expected"], parameters["verdict"]) == (None, "over")
    assert is_over(smaller, table, architecture)
    assert not is_over(request, table, architecture)
    (untimed, _) = kept(smaller, table, architecture, None, None)
    assert (untimed["measured"], untimed["verdict"]) == (None, "cannot tell")


@pytest.mark.parametrize(
    ("latency", "first", "later", "against", "told"),
    [
        ({"ratio_to_parent": 1.0}, timed(5.4, 6.0, half=0.05), timed(5.8, 6.0, half=0.05), INTERLEAVED, None),
        ({"ratio_to_parent": 1.0}, timed(5.4, 6.0, half=0.05), timed(6.0, 6.0, half=0.02), INTERLEAVED, "1.000"),
        ({"ratio_to_parent": 0.9}, timed(5.4, 6.0, half=0.05), timed(5.7, 6.0, half=0.04), INTERLEAVED, "0.950 agree"),
        ({"ratio_to_parent": 0.8}, timed(5.4, 6.0, half=0.05), timed(5.6, 6.0, half=0.04), INTERLEAVED, None),
        ({"ratio_to_parent": 1.0}, timed(5.4, 6.0, half=0.05), timed(9.0, 6.0, half=0.02), "present model", None),
        ({"ratio_to_parent": 1.0}, timed(6.0, 6.0), timed(6.1, 6.0, half=0.01), INTERLEAVED, None),
        ({"ms": 6.0}, timed(5.4, 5.4, half=0.05), timed(9.0, 6.0, half=0.02), "present model", "9.000"),
        ({"ms": 6.0}, None, timed(9.0, 6.0, half=0.02), INTERLEAVED, None),
        (None, None, timed(9.0, 6.0, half=0.02), INTERLEAVED, None),
    ],
    ids=["agrees", "apart", "beyond the bound", "was over before", "of another", "the parent", "ms", "untimed", "free"],
)
def test_a_second_timing_that_lies_apart_from_the_first_is_told(
    latency: dict[str, float] | None, first: PairedLatency | None, later: PairedLatency, against: str, told: str | None
) -> None:
    request, table = search(latency)
    bounds = kept(request, table, interleaved(request.space), RECORD, first)
    found = timed_again(request.budget.latency, bounds, later, against)
    assert (found is not None) == (told is not None)
    if found is not None and told is not None:
        assert f" and {told.split()[0]} at the end (" in found
        assert found.startswith("the derived network took ")
        assert ("the machine was not the same in both" in found) == (" agree" not in told)
        assert ("the two agree, and the later, longer timing lies beyond the budget" in found) == (" agree" in told)


def test_a_bound_is_held_against_what_is_timed_here_with_a_table_measured_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of this machine, a network derived by it, and both timed in turns, which is far from the parent's; only
    the timing at the end is made up, and is another machine's."""
    monkeypatch.setattr(compare, "time_in_turns", lambda *given: timed(9.0, 6.0, half=0.01))
    request = tiny.request(
        space={"candidates": ["attention", "ffn", "identity"], "n_slots": 4},
        task={"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]},
        method={"n_steps": 60, "lr": 8e-3, "prune_steps": 4, "prune_windows": 16, "report_every": 20},
        budget={"latency": {"ratio_to_parent": 0.7}},
        retrain={"n_steps": 2, "baselines": ["interleaved"]},
    )
    files = {"letters": text_file(tiny.text(), tmp_path)}
    told: list[str] = []

    def hear(kind: str, data: dict[str, Any]) -> None:
        if kind == "warning":
            told.append(data["message"])

    result = run_local(request, tmp_path / "search", files, hear)
    (bound,) = (each for each in result["derived"]["bounds"] if each["name"] == "latency")
    assert bound["target"] == pytest.approx(0.7)
    assert bound["predicted"] <= 0.7 + 1e-6
    assert bound["measured"] < 1
    (apart,) = (line for line in told if " at the end (" in line)
    assert " and 1.500 at the end (1.485 to 1.515), the budget is 0.7: the machine was not the same" in apart
    assert bound["verdict"] == verdict(bound["low"], bound["high"], 0.7)
    if bound["verdict"] == "over":
        assert any(f"{result['derived']['string']}, predicted to run within the budget" in line for line in told)
