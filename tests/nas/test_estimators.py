"""Alpha's gradients by estimator: par-search.md section 2.4, by finite differences and by formula, in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from nas.data.objectives import Batch
from nas.gumbel import sample, sample_pair
from nas.search import Search
from nas.training import loss_of
from tests import tiny

ESTIMATORS = ["soft", "straight_through", "single_path", "two_path"]


def make(estimator: str, n_slots: int = 1, **method: Any) -> Search:
    """In float64, with weights that are not those of a start, where blocks are much alike."""
    request = tiny.request(
        space={"n_slots": n_slots, "d_model": 16, "n_heads": 2, "max_len": 16},
        method={"alpha_estimator": estimator, "warmup_share": 0.0, "tau_start": 0.7, "tau_end": 0.7, **method},
    )
    search = Search(request, parts=tiny.parts(request), table=tiny.table(request.space))
    search.supernet.double()
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in search.weights.values():
            parameter += 0.2 * torch.randn(parameter.shape, generator=noise, dtype=torch.float64)
        search.alphas.values.data = torch.randn(search.allowed.shape, generator=noise).double()
    return search


def loss_at(search: Search, batch: Batch, seed: int) -> Tensor:
    """Of one draw of the estimator, its noise from a seed."""
    search.generators["noise"].manual_seed(seed)
    nats, _ = search._alpha_nats()(batch, None)
    return loss_of(nats, batch)


def gradient_at(search: Search, batch: Batch, seed: int) -> Tensor:
    with search.supernet.frozen():
        return search._alpha_gradient(loss_at(search, batch, seed))


@pytest.mark.parametrize("n_slots", [1, 3])
def test_the_soft_gradient_is_that_of_finite_differences(n_slots: int) -> None:
    search = make("soft", n_slots)
    batch = search.streams["alpha_data"].next()
    found = gradient_at(search, batch, 5)
    step, expected = 1e-5, torch.zeros_like(found)
    with torch.no_grad():
        for cell in torch.cartesian_prod(*map(torch.arange, found.shape)).tolist():
            losses = []
            for sign in (1, -1):
                search.alphas.values[tuple(cell)] += sign * step
                losses.append(loss_at(search, batch, 5))
                search.alphas.values[tuple(cell)] -= sign * step
            expected[tuple(cell)] = (losses[0] - losses[1]) / (2 * step)
    # 1e-5: gradients are of order 0.01, and central differences in float64 err by 1e-10
    torch.testing.assert_close(found, expected.to(found), rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(found.sum(-1), torch.zeros(n_slots).to(found), atol=1e-7, rtol=0)


def worth(search: Search, batch: Batch, mixed: Tensor) -> Tensor:
    """(K,) inner products of what each candidate of the one slot gives with the loss's gradient, at `mixed` (K,)."""
    n_candidates = len(search.space.candidates)
    with torch.no_grad():
        outs = [search.supernet.forward_path(batch.tokens, [choice])[0] for choice in range(n_candidates)]
    y = sum(weight * out for weight, out in zip(mixed, outs, strict=True))
    y = torch.as_tensor(y).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(loss_of(search.supernet.backbone.nats(y, batch.targets, None), batch), y)
    identity = search.space.labels.index("identity")
    return torch.stack([(gradient * (out - outs[identity])).sum() for out in outs])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_gradients_are_those_of_the_formulas(estimator: str, seed: int) -> None:
    """One slot: c_b = <dL/dy, F_b>, at the mixture for soft, at the chosen output for the others."""
    search, tau = make(estimator), 0.7
    batch = search.streams["alpha_data"].next()
    found = gradient_at(search, batch, seed)[0]
    noise = torch.Generator().manual_seed(seed)
    alpha = search.alphas.values.detach()
    y = (
        sample_pair(alpha, tau, generator=noise)[0] if estimator == "two_path" else sample(alpha, tau, generator=noise)
    )[0]
    chosen = torch.nn.functional.one_hot(y.argmax(), len(y)).double()
    c = worth(search, batch, y if estimator == "soft" else chosen)
    one = chosen @ c * (chosen @ y) * (chosen - y) / tau
    expected = one if estimator == "single_path" else y * (c - y @ c) / tau
    torch.testing.assert_close(found, expected.to(found), rtol=1e-5, atol=1e-7)
    assert float(found.sum()) == pytest.approx(0, abs=1e-7)
    if estimator == "two_path":
        assert int((found != 0).sum()) == 2
    if estimator == "straight_through":
        assert (found != 0).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_rows_of_every_estimators_gradient_sum_to_zero_in_deeper_networks(estimator: str) -> None:
    search = make(estimator, n_slots=3)
    batch = search.streams["alpha_data"].next()
    found = torch.stack([gradient_at(search, batch, seed) for seed in range(4)])
    torch.testing.assert_close(found.sum(-1), torch.zeros(4, 3).to(found), atol=1e-7, rtol=0)
    assert found.abs().max() > 1e-4


def test_a_single_path_of_identities_has_no_gradient() -> None:
    search = make("single_path", n_slots=2)
    with torch.no_grad():
        search.alphas.values.zero_()[:, search.space.labels.index("identity")] = 50.0
    assert not gradient_at(search, search.streams["alpha_data"].next(), 0).any()


@pytest.mark.parametrize("estimator", ["straight_through", "single_path", "two_path"])
def test_draws_are_averaged_and_noise_falls_with_them(estimator: str) -> None:
    def spread(draws: int) -> float:
        search = make(estimator, n_slots=2, alpha_draws=draws)
        seen: list[Tensor] = []
        search.alphas.update = lambda data, penalties: seen.append(data)  # type: ignore[assignment]
        batch = search.streams["alpha_data"].next()
        search.streams["alpha_data"].next = lambda: batch  # type: ignore[method-assign]
        for _ in range(40):
            search._alpha_step()
        return float(torch.stack(seen).var(dim=0).mean())

    # An eighth is expected; variances of 40 gradients of heavy tails are within a factor of two.
    assert spread(8) < spread(1) / 3


def test_the_temperature_sharpens_what_alpha_steps_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    request = tiny.request(
        method={"alpha_estimator": "soft", "n_steps": 60, "warmup_share": 0.2, "tau_start": 20.0, "tau_end": 0.05}
    )
    search = Search(request, parts=tiny.parts(request), table=tiny.table(request.space))
    mixed: list[float] = []
    plain = search._alpha_nats

    def drawing() -> Any:
        def noting(weights: Tensor, *rest: Any) -> Any:
            mixed.append(float(weights.detach().max(dim=-1).values.mean()))
            return type(search).mixture_nats(search, weights, *rest)

        with monkeypatch.context() as patched:
            patched.setattr(search, "mixture_nats", noting)
            return plain()

    monkeypatch.setattr(search, "_alpha_nats", drawing)
    taus = [record.tau for record in search.run()]
    assert taus[0] == 20.0
    assert taus[-1] == 0.05
    assert mixed[0] < 0.3  # five candidates nearly alike
    assert sum(mixed[-3:]) / 3 > 0.85


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_temperature_next_to_nothing_keeps_alpha_and_its_records_numbers(estimator: str) -> None:
    request = tiny.request(method={"n_steps": 20, "tau_end": 5e-324, "alpha_estimator": estimator, "alpha_share": 0.5})
    search = Search(request, parts=tiny.parts(request), table=tiny.table(request.space))
    *_, last = search.run()
    assert torch.isfinite(search.alphas.values).all()
    assert last.tau == 1e-6


def test_two_end_temperatures_end_in_two_alphas() -> None:
    ends = []
    for tau in (0.1, 5.0):
        request = tiny.request(method={"n_steps": 20, "warmup_share": 0.1, "tau_end": tau})
        search = Search(request, parts=tiny.parts(request), table=tiny.table(request.space))
        list(search.run())
        ends.append(search.alphas.mean)
    assert not torch.equal(ends[0], ends[1])
