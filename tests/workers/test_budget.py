"""Predict, measure, correct: the bound shrinks by what a derived architecture was over as timed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nas.config import SearchRequest
from nas.cost import LatencyTable
from nas.measure import PairedLatency
from nas.steps import StepRecord
from tests import tiny
from workers.budget import derive_within

# attention 3 ms, ffn 2, identity 0, sgu 2.5, mgk 3.5, offset 1; both slots want mgk, then attention, sgu, ffn, identity
WANTED = [0.3, 0.15, 0.05, 0.2, 0.3001]
RECORD = StepRecord(9, probabilities=[WANTED, WANTED], null_gaps=[0.0, 0.0])


def timing(slower: float, calls: list[tuple[str, str]], repeatability: float = 0.01) -> Any:
    """A machine on which everything but attention and ffn takes `slower` times what the table says."""
    costs = {name: ms * (1 if name in ("attention", "ffn") else slower) for name, ms in tiny.MILLISECONDS.items()}

    def time_beside(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        calls.append((" ".join(labels), " ".join(others)))
        taken, beside = (1 + sum(costs[label] for label in each) for each in (labels, others))
        ratio = taken / beside
        return PairedLatency(ratio, ratio, ratio, repeatability, {"derived": taken, "parent": beside}, 60)

    return time_beside


def search(latency: dict[str, float] | None) -> tuple[SearchRequest, LatencyTable]:
    request = tiny.request(budget={"latency": latency})
    return request, tiny.table(request.space)


def test_without_a_budget_nothing_is_timed() -> None:
    calls: list[tuple[str, str]] = []
    request, table = search(None)
    architecture, missed = derive_within(request, table, RECORD, timing(1, calls))
    assert (str(architecture), missed, calls) == ("MM", [], [])


def test_a_bound_that_holds_as_measured_is_left_alone() -> None:
    calls: list[tuple[str, str]] = []
    request, table = search({"ratio_to_parent": 1.1})  # 6.6 ms
    architecture, missed = derive_within(request, table, RECORD, timing(1, calls))
    assert missed == []
    assert calls == [(" ".join(architecture.labels), "attention ffn")]


@pytest.mark.parametrize("latency", [{"ratio_to_parent": 1.1}, {"ms": 6.6}], ids=["ratio", "milliseconds"])
def test_a_missed_bound_is_corrected_until_it_holds(latency: dict[str, float]) -> None:
    calls: list[tuple[str, str]] = []
    request, table = search(latency)
    machine = timing(1.5, calls)
    architecture, missed = derive_within(request, table, RECORD, machine)
    assert len(missed) == len(calls) - 1 > 0
    assert missed[0].startswith("AS, predicted to run within the budget in 6.5 ms, takes")
    timed = machine(architecture.labels, ("attention", "ffn"))
    assert timed.ms["derived"] <= 6.6 * 1.01


def test_the_last_correction_is_timed_and_told_too() -> None:
    request = tiny.request(space={"n_slots": 8}, budget={"latency": {"ms": 25.0}})
    record = StepRecord(9, probabilities=[WANTED] * 8, null_gaps=[0.0] * 8)
    calls: list[tuple[str, str]] = []

    def always_over(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        calls.append((" ".join(labels), " ".join(others)))
        return PairedLatency(1.0, 1.0, 1.0, 0.0, {"derived": 26.0, "parent": 26.0}, 60)

    architecture, missed = derive_within(request, tiny.table(request.space), record, always_over)
    assert len(missed) == len(calls) == 4
    assert missed[-1].startswith(f"{architecture}, predicted")
    assert calls[-1][0] == " ".join(architecture.labels)


def test_a_bound_that_no_correction_meets_is_told() -> None:
    request, table = search({"ms": 1.0})  # the offset alone: predicted to hold with two identities

    def always_over(labels: Sequence[str], others: Sequence[str]) -> PairedLatency:
        return PairedLatency(1.0, 1.0, 1.0, 0.0, {"derived": 1.5, "parent": 1.5}, 60)

    architecture, missed = derive_within(request, table, RECORD, always_over)
    assert str(architecture) == ".."
    assert missed == [
        ".., predicted to run within the budget in 1 ms, takes 1.5 ms as measured; the budget is 1, repeatability 0"
    ]
