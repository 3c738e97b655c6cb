"""When the budget presses, and how hard: par-search.md section 9, items 21-23."""

import pytest
import torch

from nas import cost
from nas.pressure import Pressure, hinge, target_ms
from tests import tiny


def test_hinge_is_zero_with_zero_gradient_below_the_target() -> None:
    for value, expected, slope in ((3.9, 0.0, 0.0), (8.0, 1.0, 0.25)):
        latency = torch.tensor(value, requires_grad=True)
        penalty = hinge(latency, 4.0)
        assert penalty.item() == pytest.approx(expected)
        assert float(torch.autograd.grad(penalty, latency)[0]) == pytest.approx(slope)


def test_gradient_of_expected_latency_is_pi_times_excess_over_the_mean() -> None:
    alpha = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    costs = torch.tensor([3.0, 2.0, 0.0], dtype=torch.float64)
    pi = torch.softmax(alpha, -1)
    (gradient,) = torch.autograd.grad(cost.expected(pi, costs, 1.0), alpha)
    expected = pi * (costs - (pi * costs).sum(-1, keepdim=True))
    torch.testing.assert_close(gradient, expected.detach())
    torch.testing.assert_close(gradient.sum(-1), torch.zeros(4, dtype=torch.float64))
    step = 1e-6
    for index in ((0, 0), (3, 2)):
        shift = torch.zeros(4, 3, dtype=torch.float64)
        shift[index] = step
        up, down = (cost.expected(torch.softmax(alpha.detach() + s * shift, -1), costs, 1.0) for s in (1, -1))
        assert float(gradient[index]) == pytest.approx(float((up - down) / (2 * step)), rel=1e-6)


def test_descent_on_the_penalty_alone_raises_identity_and_lowers_attention() -> None:
    request = tiny.request(method={"n_steps": 10, "warmup_share": 0.0, "cost_weight": 1.0})
    pressure = Pressure(request.method, target=1.0)
    pressure.start = 0
    costs = torch.tensor([3.0, 2.0, 0.0])
    alpha = torch.zeros(2, 3, requires_grad=True)
    for _ in range(20):
        penalty = pressure.penalty(cost.expected(torch.softmax(alpha, -1), costs, 0.0), step=10)
        assert isinstance(penalty, torch.Tensor)
        (gradient,) = torch.autograd.grad(penalty, alpha)
        with torch.no_grad():
            alpha -= 0.5 * gradient
    probabilities = torch.softmax(alpha.detach(), -1)
    assert (probabilities[:, 2] > 1 / 3).all()
    assert (probabilities[:, 0] < probabilities[:, 1]).all()


def test_pressure_waits_for_the_plateau_and_then_rises() -> None:
    method = tiny.request(method={"n_steps": 400, "warmup_share": 0.2, "cost_weight": 2.0}).method
    pressure = Pressure(method, target=1.0)
    latency = torch.tensor(2.0)
    for step in range(5, 125, 5):  # still falling fast
        pressure.observe(step, 5.0 * 0.9 ** (step / 5), searching=step > 80)
        assert pressure.penalty(latency, step) == 0.0
    for step in range(125, 215, 5):  # flat
        pressure.observe(step, 0.1, searching=True)
    assert pressure.start is not None
    assert 125 <= pressure.start < 240  # before the half of the alternation, where it would start anyway
    at = [float(pressure.penalty(latency, pressure.start + k)) for k in (0, 40, 80, 120)]
    assert at == pytest.approx([0.0, 1.0, 2.0, 2.0])  # full after a quarter of the 320 steps beyond warm-up


def test_pressure_starts_half_way_even_without_a_plateau() -> None:
    method = tiny.request(method={"n_steps": 100, "warmup_share": 0.2}).method
    pressure = Pressure(method, target=1.0)
    for step in range(5, 61, 5):
        pressure.observe(step, 5.0 * 0.8 ** (step / 5), searching=step > 20)
    assert pressure.start == 60


def test_without_a_budget_nothing_presses() -> None:
    request = tiny.request()
    assert target_ms(request, tiny.table(request.space)) is None
    pressure = Pressure(request.method, None)
    pressure.start = 0
    assert pressure.penalty(torch.tensor(99.0), 10) == 0.0


@pytest.mark.parametrize(
    ("latency", "expected"), [({"ms": 4.0}, 4.0), ({"ratio_to_parent": 1.0}, 6.0), ({"ratio_to_parent": 0.5}, 3.0)]
)
def test_target_is_absolute_or_relative_to_the_interleaved_parent(latency: dict[str, float], expected: float) -> None:
    request = tiny.request(budget={"latency": latency})
    assert target_ms(request, tiny.table(request.space)) == pytest.approx(expected)  # 1 + 3 + 2 ms for AF
