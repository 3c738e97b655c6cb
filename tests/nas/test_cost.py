"""Costs: formulas against real networks, tables as data, and the latency identities of par-search.md section 9."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nas import cost
from nas.architecture import Architecture, interleaved
from nas.blocks import block_classes
from nas.config.space import Candidate, SearchSpace
from nas.config.task import ServeMode
from nas.cost import LatencyTable, entry_key, expected, fbnet_loss
from nas.errors import InvalidInput
from nas.network import Network
from tests import tiny

SPACE = SearchSpace(n_slots=6)
TABLE = tiny.table(SPACE)
COSTS = TABLE.slot_ms(SPACE)
paths = st.lists(st.sampled_from(range(len(COSTS))), min_size=6, max_size=6)


def one_hot(path: list[int]) -> torch.Tensor:
    return torch.nn.functional.one_hot(torch.tensor(path), len(COSTS)).double()


@given(path=paths)
def test_expected_latency_of_one_hot_weights_is_offset_plus_the_counts_times_the_entries(path: list[int]) -> None:
    """Section 9, item 19, first half."""
    counted = 1.0 + sum(path.count(candidate) * ms for candidate, ms in enumerate(COSTS))
    costs = torch.tensor(COSTS, dtype=torch.float64)
    assert float(expected(one_hot(path), costs, TABLE.offset_ms)) == pytest.approx(counted, rel=1e-12)
    labels = tuple(SPACE.labels[candidate] for candidate in path)
    assert TABLE.predict_ms(Architecture(labels, SPACE.candidates), SPACE) == pytest.approx(counted, rel=1e-12)


@given(first=paths, second=paths)
def test_expected_latency_of_a_mean_is_the_mean_of_expected_latencies(first: list[int], second: list[int]) -> None:
    """Section 9, item 19, second half."""
    costs = torch.tensor(COSTS, dtype=torch.float64)
    one, other = one_hot(first), one_hot(second)
    both = expected((one + other) / 2, costs, 1.0)
    torch.testing.assert_close(both, (expected(one, costs, 1.0) + expected(other, costs, 1.0)) / 2)


def test_expected_latency_of_equal_alphas_is_offset_plus_the_mean_entry_per_slot() -> None:
    """Section 9, item 20."""
    weights = torch.softmax(torch.zeros(6, 5, dtype=torch.float64), dim=-1)
    found = expected(weights, torch.tensor(COSTS, dtype=torch.float64), TABLE.offset_ms)
    assert float(found) == pytest.approx(TABLE.offset_ms + 6 * sum(COSTS) / 5)


def test_expected_latency_is_the_same_of_arrays_and_of_tensors() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(5), 6)
    tensors = expected(torch.from_numpy(weights), torch.tensor(COSTS, dtype=torch.float64), 1.0)
    assert expected(weights, np.array(COSTS), 1.0) == pytest.approx(float(tensors))


def test_gradient_of_expected_latency_is_probability_times_excess_over_the_mean() -> None:
    """Section 9, item 21, with finite differences by torch."""
    costs = torch.tensor(COSTS, dtype=torch.float64)
    alpha = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()

    def latency(values: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = expected(torch.softmax(values, dim=-1), costs, 1.0)
        return found

    assert torch.autograd.gradcheck(latency, (alpha,))
    (gradient,) = torch.autograd.grad(latency(alpha), alpha)
    probabilities = torch.softmax(alpha.detach(), dim=-1)
    mean = (probabilities * costs).sum(dim=-1, keepdim=True)
    torch.testing.assert_close(gradient, probabilities * (costs - mean))
    torch.testing.assert_close(gradient.sum(dim=-1), torch.zeros(3, dtype=torch.float64), atol=1e-12, rtol=0)


def test_descent_on_expected_latency_alone_raises_identity_and_lowers_the_dearest() -> None:
    """Section 9, item 23, with a constant loss."""
    alpha = torch.zeros(2, 5, dtype=torch.float64, requires_grad=True)
    costs = torch.tensor(COSTS, dtype=torch.float64)
    loss = 2.0 + 0.1 * expected(torch.softmax(alpha, dim=-1), costs, 1.0)
    (gradient,) = torch.autograd.grad(loss, alpha)
    assert torch.equal(gradient.sign(), (costs - costs.mean()).sign().expand(2, 5))
    for _ in range(100):
        (gradient,) = torch.autograd.grad(expected(torch.softmax(alpha, dim=-1), costs, 1.0), alpha)
        alpha = (alpha - 0.1 * gradient).detach().requires_grad_()
    probabilities = torch.softmax(alpha, dim=-1)
    assert (probabilities[:, SPACE.labels.index("identity")] > 0.9).all()
    assert (probabilities[:, SPACE.labels.index("attention")] < 0.05).all()


def test_fbnet_form_has_its_hand_value() -> None:
    """Section 9, item 22: CE 2, LAT e, alpha 0.2, beta 0.6."""
    assert float(fbnet_loss(torch.tensor(2.0), torch.tensor(math.e))) == pytest.approx(0.4)
    assert float(fbnet_loss(torch.tensor(2.0), torch.tensor(math.e), cost_scale=0.5)) == pytest.approx(1.0)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_fbnet_form_and_its_gradient_are_finite_at_and_below_one_unit(value: float) -> None:
    latency = torch.tensor(value, requires_grad=True)
    loss = fbnet_loss(torch.tensor(2.0), latency)
    assert math.isfinite(float(loss.detach()))
    assert float(torch.autograd.grad(loss, latency)[0]) == 0.0


@given(path=paths)
def test_parameters_are_those_of_the_networks_slots(path: list[int]) -> None:
    labels = tuple(SPACE.labels[candidate] for candidate in path)
    config = tiny.request(space={"n_slots": 6}).network_config(labels, 256)
    space = tiny.request(space={"n_slots": 6}).space
    built = Network(config, block_classes(slot.block for slot in config.slots))
    counted = sum(tensor.numel() for name, tensor in built.named_parameters() if name.startswith("slots."))
    assert cost.parameters(Architecture(labels, space.candidates), space) == counted


def test_flops_of_an_architecture_are_the_sum_of_its_slots() -> None:
    each = {label: cost.flops([label], SPACE, 64) for label in SPACE.labels}
    assert cost.flops(["attention", "identity", "ffn", "ffn"], SPACE, 64) == each["attention"] + 2 * each["ffn"]
    assert each["identity"] == 0
    beside = {label: cost.flops([label], SPACE, 64, 32) for label in SPACE.labels}
    assert beside["attention"] > each["attention"]  # memory is more keys
    assert beside["ffn"] == each["ffn"]


def test_entries_belong_to_block_options_shape_and_serve_mode_not_to_a_label() -> None:
    serve = ServeMode()
    key = entry_key(Candidate(label="ffn", block="ffn"), SPACE, serve)
    assert key == entry_key(Candidate(label="other", block="ffn", options={"ratio": 4}), SPACE, serve)
    assert key == entry_key(Candidate(label="ffn", block="ffn"), SearchSpace(n_slots=3), serve)
    others = [
        entry_key(Candidate(label="ffn", block="ffn", options={"ratio": 2}), SPACE, serve),
        entry_key(Candidate(label="ffn", block="sgu"), SPACE, serve),
        entry_key(Candidate(label="ffn", block="ffn"), SearchSpace(d_model=128), serve),
        entry_key(Candidate(label="ffn", block="ffn"), SearchSpace(norm="rms"), serve),
        entry_key(Candidate(label="ffn", block="ffn"), SearchSpace(norm_position="post"), serve),
        entry_key(Candidate(label="ffn", block="ffn"), SearchSpace(memory_length=64), serve),
        entry_key(Candidate(label="ffn", block="ffn"), SPACE, ServeMode(batch=1)),
        entry_key(Candidate(label="ffn", block="ffn"), SPACE, ServeMode(memory_length=64)),
    ]
    assert len({key, *others}) == 9


def test_table_is_the_same_after_a_round_trip_through_json_and_so_is_its_id() -> None:
    again = LatencyTable.model_validate(json.loads(TABLE.model_dump_json()))
    assert again == TABLE
    assert again.id == TABLE.id
    assert TABLE.model_copy(update={"offset_ms": 2.0}).id != TABLE.id


def test_slot_costs_are_scaled_entries_in_the_order_of_the_space() -> None:
    doubled = TABLE.model_copy(update={"scale": 2.0})
    assert doubled.slot_ms(SPACE) == [6.0, 4.0, 0.0, 5.0, 7.0]
    assert doubled.predict_ms(interleaved(SPACE), SPACE) == pytest.approx(1.0 + 3 * 6.0 + 3 * 4.0)


def test_candidate_that_was_not_measured_at_this_shape_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^the latency table has no entry for candidate 'attention' at this shape$"):
        TABLE.slot_ms(SearchSpace(d_model=128))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("scale", 0.0, "Input should be greater than 0"),
        ("offset_ms", math.nan, "Input should be a finite number"),
        ("error_median", -0.1, "Input should be greater than or equal to 0"),
        ("author", "me", "Extra inputs are not permitted"),
    ],
)
def test_table_with_impossible_numbers_is_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        LatencyTable.model_validate({**TABLE.model_dump(), field: value})
