"""The runners-up: in the order of the scores, within the bounds, each network once."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nas.budgets import bounds
from nas.config.request import SearchRequest
from nas.derive import derive_record
from nas.errors import InvalidInput
from nas.k_best import k_best
from nas.steps import StepRecord
from tests import tiny

LABELS = ("attention", "ffn", "identity", "sgu", "mgk")
RECORD = StepRecord(9, probabilities=[[0.3, 0.15, 0.05, 0.2, 0.3], [0.1, 0.4, 0.2, 0.25, 0.05]], null_gaps=[1e-6, 1e-6])


def request(**budget: float) -> SearchRequest:
    return tiny.request(budget={"latency": budget or None})


@pytest.mark.parametrize("budget", [{}, {"ms": 5.5}], ids=["free", "bounded"])
def test_the_best_are_those_of_all_that_there_are(budget: dict[str, float]) -> None:
    asked = request(**budget)
    table = tiny.table(asked.space)
    found = k_best(asked, table, RECORD, bounds(asked, table), 6)
    assert RECORD.probabilities is not None
    logs = np.log(RECORD.probabilities)
    # Attention and mgk tie in the first slot within what chance reaches, so both score as the top.
    logs[0, 4] = logs[0, 0]
    scores: dict[tuple[str, ...], float] = {}
    for labels in product(LABELS, repeat=2):
        cost = 1 + sum(tiny.MILLISECONDS[label] for label in labels)
        if not budget or cost <= budget["ms"]:
            word = tuple(label for label in labels if label != "identity")
            score = sum(logs[slot, LABELS.index(label)] for slot, label in enumerate(labels))
            scores[word] = max(score, scores.get(word, -np.inf))
    expected = sorted(scores.values(), reverse=True)[:6]
    assert [scores[each.word] for each in found] == pytest.approx(expected)
    assert len({each.word for each in found}) == 6
    assert found[0].labels == derive_record(asked, table, RECORD, bounds(asked, table)).labels


def test_behind_a_parsimony_pass_what_it_measured_ranks_them() -> None:
    asked = request()
    record = StepRecord(
        9, probabilities=RECORD.probabilities, null_gaps=RECORD.null_gaps, path=[3, 1],
        effect_nats=[[0.02, 0.5, 0.9, 0.0, 0.3], [0.7, 0.0, 0.01, 0.6, 0.8]],
        effect_se=[[0.01] * 5, [0.01] * 5],
    )  # fmt: skip
    found = k_best(asked, tiny.table(asked.space), record, [], 4)
    assert [str(each) for each in found] == ["SF", "S.", "AF", "A."]


def test_room_of_a_budget_goes_to_slots_that_alpha_left_open() -> None:
    # In the second slot alpha cannot tell identity, ffn and sgu apart, and the pass has not tried anything there.
    asked = request(ms=6.0)
    table = tiny.table(asked.space)
    record = StepRecord(
        9, probabilities=[[0.9, 0.02, 0.02, 0.03, 0.03], [0.02, 0.3, 0.35, 0.3, 0.03]], null_gaps=[0.1, 0.3],
        path=[0, 2],
        effect_nats=[[0.0, 0.1, 0.005, None, None], [None, None, 0.0, None, None]],
        effect_se=[[0.0, 0.01, 0.001, None, None], [None, None, 0.0, None, None]],
    )  # fmt: skip
    found = k_best(asked, table, record, bounds(asked, table), 3)
    # sgu would be 6.5 ms; without attention it is 0.005 nats behind
    assert [str(each) for each in found] == ["A.", "AF", ".."]


def test_fewer_come_where_there_are_no_more() -> None:
    asked = tiny.request(space={"n_slots": 2, "candidates": ["attention", "ffn"]})
    record = StepRecord(9, probabilities=[[0.9, 0.1], [0.2, 0.8]], null_gaps=[0.0, 0.0])
    found = k_best(asked, tiny.table(asked.space), record, [], 16)
    assert [str(each) for each in found] == ["AF", "AA", "FF", "FA"]


def test_no_network_cannot_be_asked_for() -> None:
    asked = request()
    with pytest.raises(InvalidInput, match=r"^k is 0; at least one architecture must be asked for$"):
        k_best(asked, tiny.table(asked.space), RECORD, [], 0)


def test_finalists_of_a_search_come_behind_what_it_derived_each_network_once_and_within_the_bounds() -> None:
    asked = request(ms=7.0)
    table = tiny.table(asked.space)
    record = StepRecord(
        9, probabilities=RECORD.probabilities, null_gaps=RECORD.null_gaps, path=[3, 1],
        effect_nats=[[0.02, 0.5, 0.9, 0.0, 0.3], [0.7, 0.0, 0.01, 0.6, 0.8]],
        effect_se=[[0.01] * 5, [0.01] * 5],
        finalists=[[0, 4], [1, 1], [2, 3], [3, 1], [3, 2]],
    )  # fmt: skip
    found = k_best(asked, table, record, bounds(asked, table), 4)
    # attention and mgk would take 7.5 ms; .S and S. are one network
    assert [str(each) for each in found] == ["SF", "FF", ".S", "AF"]
