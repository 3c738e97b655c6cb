"""Which sample won, and what is said of it: by how much, or that it cannot be told."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy.stats import ttest_rel

from nas.config.request import SearchRequest
from nas.errors import SearchFailed
from tests import tiny
from workers.data import Prepared
from workers.samples import Told
from workers.stages.passed_on import Inputs, Searched
from workers.stages.search import best
from workers.stages.winner import describe_samples, paired

RANGES = [{"pointer": "/method/lr", "low": 1e-4, "high": 1e-2, "log": True}]


def wanted(n_samples: int, n_seeds: int, **more: Any) -> SearchRequest:
    return tiny.request(ranges=RANGES, trials={"n_seeds": n_seeds, "n_samples": n_samples}, **more)


def described(request: SearchRequest, *told: Told) -> dict[str, Any]:
    table = tiny.table(request.space)
    inputs = Inputs(request, table, Prepared(request, None), (table,), {}, {})
    return describe_samples(inputs, Searched(0, {}, {}, told))


def sample(lr: float, *losses: float, cost: float | None = None) -> Told:
    return Told({"/method/lr": lr}, "succeeded", losses, cost, 2)


def test_of_one_sample_there_is_nothing_to_tell() -> None:
    assert described(tiny.request(), Told({}, "succeeded", (1.0,))) == {"samples": [], "winner": None}


def test_samples_are_listed_with_what_came_of_each() -> None:
    pruned = Told({"/method/lr": 2e-3}, "pruned", (2.0, 3.0), None, 1, "pruned at step 4: behind 2 of 2 other samples")
    failed = Told({"/method/lr": 3e-3}, "failed", reason="trial search-2-1 failed: no")
    found = described(wanted(3, 2), sample(1e-3, 1.0, 1.5), pruned, failed)["samples"]
    assert found[0] == {
        "sample": 0, "values": {"/method/lr": 1e-3}, "state": "succeeded", "reason": None, "seeds": [0, 1],
        "losses": [1.0, 1.5], "loss": 1.25, "sd": pytest.approx(math.sqrt(0.125)), "cost": None,
    }  # fmt: skip
    assert [each["state"] for each in found] == ["succeeded", "pruned", "failed"]
    assert found[1]["reason"] == "pruned at step 4: behind 2 of 2 other samples"
    assert (found[1]["loss"], found[2]["loss"], found[2]["sd"]) == (2.5, None, None)


def test_the_margin_is_paired_over_seeds() -> None:
    one, other = (1.0, 1.4, 0.9), (1.3, 1.6, 1.3)
    margin, se, half = paired(one, other)
    assert se is not None
    assert half is not None
    test = ttest_rel(other, one)
    assert margin / se == pytest.approx(test.statistic)
    interval = test.confidence_interval(0.95)
    assert (margin - half, margin + half) == pytest.approx((interval.low, interval.high))


def test_a_winner_beyond_its_interval_is_told_with_what_it_won_by() -> None:
    won = described(wanted(3, 3), sample(1e-3, 1.31, 1.61, 1.29), sample(2e-3, 1.0, 1.3, 1.0), sample(3e-3, 9, 9, 9))
    winner = won["winner"]
    assert (winner["sample"], winner["runner_up"], winner["clear"]) == (1, 0, True)
    assert winner["values"] == {"/method/lr": 2e-3}
    assert winner["margin"] == pytest.approx(0.3033, abs=1e-4)
    assert winner["se"] == pytest.approx(0.0067, abs=1e-4)
    assert winner["sentence"] == (
        "sample 1 (lr 0.002) won: 0.3033 nats per token (95% interval +0.2746 to +0.3320, 3 paired seeds) below sample "
        "0; 3 of 3 samples came to their end"
    )


def test_a_difference_within_its_interval_cannot_be_told() -> None:
    winner = described(wanted(2, 3), sample(1e-3, 1.0, 1.3, 1.0), sample(2e-3, 1.1, 1.3, 1.3))["winner"]
    assert (winner["sample"], winner["clear"]) == (0, False)
    assert winner["sentence"] == (
        "cannot tell sample 0 (lr 0.001) from sample 1: 0.1333 nats per token (95% interval -0.2461 to +0.5128, "
        "3 paired seeds) apart; 2 of 2 samples came to their end"
    )


def test_one_seed_cannot_tell() -> None:
    winner = described(wanted(2, 1), sample(1e-3, 1.0), sample(2e-3, 2.0))["winner"]
    assert (winner["margin"], winner["se"], winner["low"], winner["clear"]) == (1.0, None, None, False)
    assert winner["sentence"].startswith(
        "cannot tell sample 0 (lr 0.001) from sample 1: 1.0000 nats per token on one seed, which tells no interval, "
        "apart; "
    )


def test_the_only_one_that_came_to_its_end_has_nobody_to_be_held_against() -> None:
    winner = described(wanted(2, 2), Told({"/method/lr": 1e-2}, "failed", reason="no"), sample(1e-3, 1.0, 1.0))[
        "winner"
    ]
    assert (winner["sample"], winner["runner_up"], winner["clear"]) == (1, None, False)
    assert winner["sentence"] == "sample 1 (lr 0.001) is the only one of 2 samples that came to its end"


def test_with_a_budget_the_least_loss_within_it_wins() -> None:
    request = wanted(3, 2, budget={"latency": {"ms": 4}})
    dear, good, bad = sample(1e-3, 1, 1, cost=5), sample(2e-3, 2, 2.1, cost=4), sample(3e-3, 3, 3.2, cost=2)
    winner = described(request, dear, good, bad)["winner"]
    assert (winner["sample"], winner["runner_up"]) == (1, 2)
    alone = described(request, dear, good)["winner"]
    assert alone["clear"]
    assert alone["sentence"] == (
        "sample 1 (lr 0.002) won: it alone meets the 4 ms of budget.latency, with 4 ms against 5 of sample 0; "
        "2 of 2 samples came to their end"
    )


def test_where_none_meets_the_budget_the_nearest_wins() -> None:
    request = wanted(2, 2, budget={"parameters": {"at_most": 100}})
    far, near = sample(1e-3, 1, 1, cost=300), sample(2e-3, 2, 2, cost=120)
    winner = described(request, far, near)["winner"]
    assert winner["sample"] == 1
    assert winner["sentence"] == (
        "sample 1 (lr 0.002) won: no sample meets the 100 parameters of budget.parameters, and it is nearest, with 120 "
        "parameters against 300 of sample 0; 2 of 2 samples came to their end"
    )


def test_without_any_that_came_to_its_end_the_last_reason_is_told() -> None:
    with pytest.raises(SearchFailed, match=r"^second$"):
        best(
            [Told({}, "failed", reason="first"), Told({}, "failed", reason="second"), Told({}, "pruned", (1.0,))], None
        )
