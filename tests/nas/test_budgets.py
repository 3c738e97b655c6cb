"""The bounds of a budget against counting by hand, by torch and by real caches."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
import torch

from nas import catalog, cost
from nas.architecture import Architecture, interleaved
from nas.blocks import block_classes
from nas.budgets import BoundedCost, bounds, check_each, counted, told
from nas.config.request import SearchRequest
from nas.errors import Infeasible, InvalidInput
from nas.network import Network
from tests import tiny


def one(budget: dict[str, Any], **overrides: Any) -> BoundedCost:
    """The only bound of a small request, by the made-up table."""
    request = tiny.request(budget=budget, **overrides)
    (found,) = bounds(request, tiny.table(request.space, request.task.serve[0]))
    return found


def built(request: SearchRequest, label: str) -> Network:
    labels = [label] * request.space.n_slots
    return Network(request.network_config(labels, 256), block_classes([request.space.candidate(label).block]))


@pytest.mark.parametrize(
    ("latency", "target"), [({"ms": 4.0}, 4.0), ({"ratio_to_parent": 1.0}, 6.0), ({"ratio_to_parent": 0.5}, 3.0)]
)
def test_latency_is_bounded_by_the_table_absolutely_or_against_the_parent(
    latency: dict[str, float], target: float
) -> None:
    found = one({"latency": latency})
    assert (found.name, found.unit, found.offset, found.slot_costs) == ("latency", "ms", 1.0, (3.0, 2.0, 0.0, 2.5, 3.5))
    assert found.target == pytest.approx(target)
    assert found.parent == 6.0  # attention and ffn
    assert found.of([0, 4]) == 7.5


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_parameters_are_those_of_real_slots_with_their_norms(norm: str) -> None:
    request = tiny.request(space={"norm": norm}, budget={"parameters": {"ratio_to_parent": 0.5}})
    found = one({"parameters": {"ratio_to_parent": 0.5}}, space={"norm": norm})
    for label, counted_ in zip(request.space.labels, found.slot_costs, strict=True):
        parameters = [each for name, each in built(request, label).named_parameters() if name.startswith("slots.")]
        assert 2 * counted_ == sum(each.numel() for each in parameters)
    parent = cost.parameters(interleaved(request.space), request.space)
    assert (found.parent, found.target, found.offset) == (parent, parent / 2, 0)
    architecture = Architecture(("sgu", "mgk"), request.space.candidates)
    assert found.of([3, 4]) == cost.parameters(architecture, request.space)


def test_flops_are_those_of_one_sequence_at_the_first_serve_modes_lengths() -> None:
    serve = {"batch": 4, "query_length": 8, "memory_length": 24}
    found = one({"flops": {"at_most": 1e6}}, **{**tiny.RECURRENT, "task": {"train_length": 16, "serve": [serve]}})
    request = tiny.request(**tiny.RECURRENT)
    assert found.slot_costs == tuple(float(cost.flops([label], request.space, 8, 24)) for label in request.space.labels)
    assert found.target == 1e6


def test_cache_bytes_are_those_that_real_caches_of_one_sequence_hold() -> None:
    request = tiny.request(task={"serve": [{"batch": 4, "query_length": 12}]})
    found = one({"cache_bytes": {"at_most": 1000}}, task={"serve": [{"batch": 4, "query_length": 12}]})
    for label, n_bytes in zip(request.space.labels, found.slot_costs, strict=True):
        assert built(request, label).new_cache(1, 12).nbytes == 2 * n_bytes, label
    assert found.slot_costs[request.space.labels.index("ffn")] == 0


def test_expected_cost_of_probabilities_is_that_of_the_tensors() -> None:
    found = one({"latency": {"ms": 4.0}})
    probabilities = torch.softmax(torch.randn(2, 5, generator=torch.Generator().manual_seed(0)).double(), -1)
    by_torch = cost.expected(probabilities, torch.tensor(found.slot_costs, dtype=torch.float64), found.offset)
    assert found.expected(probabilities.tolist()) == pytest.approx(float(by_torch))


def test_bounds_of_all_kinds_are_in_the_order_of_the_budget_and_none_without_one() -> None:
    names = ("latency", "parameters", "flops", "cache_bytes")
    request = tiny.request(budget={name: {"ratio_to_parent": 1.0} for name in names})
    found = bounds(request, tiny.table(request.space))
    assert tuple(each.name for each in found) == names
    assert all(each.target == pytest.approx(each.parent) for each in found)
    request = tiny.request(space={"candidates": ["sgu", "identity"]}, retrain={"baselines": []})
    assert bounds(request, tiny.table(request.space)) == []


def test_without_a_parent_in_the_space_a_bound_has_none() -> None:
    found = one({"latency": {"ms": 4.0}}, space={"candidates": ["sgu", "identity"]}, retrain={"baselines": []})
    assert (found.parent, found.target) == (None, 4.0)


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (BoundedCost("latency", "ms", (3.0, 2.0), 1.0, 4.0, None), "latency allows 4 ms; the smallest architecture has "
         "6 ms"),
        (BoundedCost("parameters", "parameters", (30_000.0, 23_456.0), 0.0, 40_000.0, None),
         "parameters allows 40,000 parameters; the smallest architecture has 53,456 parameters"),
    ],
    ids=["latency", "parameters"],
)  # fmt: skip
def test_a_bound_below_the_smallest_architecture_is_refused_with_its_value_and_the_smallest(
    bound: BoundedCost, message: str
) -> None:
    with pytest.raises(Infeasible, match=f"^{re.escape('budget.' + message)}$"):
        check_each([bound], [[True, True], [True, False]])


def test_a_ratio_to_a_parent_that_costs_nothing_is_refused() -> None:
    request = tiny.request(budget={"latency": {"ratio_to_parent": 1}})
    free = tiny.table(request.space, attention=0.0, ffn=0.0).model_copy(update={"offset_ms": 0.0})
    said = (
        r"^budget\.latency\.ratio_to_parent is 1, but the interleaved parent costs 0 ms, so no ratio to it says "
        r"anything; give the bound in ms, or another latency table$"
    )
    with pytest.raises(InvalidInput, match=said):
        bounds(request, free)


def test_a_bound_is_met_up_to_rounding() -> None:
    bound = BoundedCost("latency", "ms", (0.1, 0.2), 0.0, 0.3, None)
    assert bound.of([0, 1]) > 0.3
    assert bound.holds([0, 1])
    check_each([bound], [[True, False], [False, True]])


def test_a_block_that_does_not_tell_its_cache_cannot_be_bounded_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    silent = {**catalog.blocks(), "ffn": replace(catalog.block("ffn"), cache_bytes=None)}
    monkeypatch.setattr(catalog, "blocks", lambda: silent)
    message = "^block 'ffn' does not tell its cache_bytes, so budget.cache_bytes cannot bound it; take the bound or the"
    with pytest.raises(InvalidInput, match=message):
        counted("cache_bytes", tiny.request())


@pytest.mark.parametrize(("value", "text"), [(5.2, "5.2"), (0.12345, "0.1235"), (53_456.0, "53,456"), (999.0, "999")])
def test_costs_are_told_with_four_digits_or_whole(value: float, text: str) -> None:
    assert told(value) == text


def test_budgets_load_no_torch() -> None:
    code = "import sys, nas.budgets; assert 'torch' not in sys.modules and 'scipy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
