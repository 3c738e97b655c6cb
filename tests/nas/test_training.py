"""The optimiser set-up, the learning-rate schedule and evaluation."""

import pytest
import torch
from torch import nn

from nas.config import Method
from nas.training import evaluate, generator, learning_rate, loss_of, weight_step, weights_optimiser


def test_learning_rate_rises_then_falls_to_a_tenth() -> None:
    method = Method(lr=1e-2, lr_warmup_steps=10)
    rates = [learning_rate(step, 100, method) for step in range(100)]
    assert rates[0] == pytest.approx(1e-3)
    assert max(rates) == pytest.approx(1e-2)
    assert rates.index(max(rates)) in (9, 10)
    assert rates[-1] == pytest.approx(1e-3, rel=0.01)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_short_runs_rise_for_at_most_a_quarter() -> None:
    method = Method(lr=1e-2, lr_warmup_steps=100)
    assert learning_rate(2, 8, method) == pytest.approx(1e-2)


def test_decay_is_on_matrices_only() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    optimiser = weights_optimiser(dict(model.named_parameters()), Method(weight_decay=0.1))
    decayed = {id(p) for group in optimiser.param_groups if group["weight_decay"] for p in group["params"]}
    assert decayed == {id(model[0].weight)}


def test_a_step_touches_only_what_ran_moments_included() -> None:
    ran, idle = nn.Linear(3, 5), nn.Linear(3, 5)
    parameters = {f"{name}.{k}": p for name, m in (("ran", ran), ("idle", idle)) for k, p in m.named_parameters()}
    optimiser = weights_optimiser(parameters, Method(weight_decay=0.1))
    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    embed = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    windows = torch.randint(0, 5, (2, 4), generator=torch.Generator().manual_seed(1))
    weight_step(lambda tokens: ran(embed[tokens]), windows, optimiser, lr=0.1, grad_clip=1.0)
    for name, parameter in parameters.items():
        assert torch.equal(parameter, before[name]) == name.startswith("idle")
        assert (parameter in optimiser.state) == name.startswith("ran")
        assert parameter.grad is None


def test_evaluate_gives_each_windows_mean_whatever_the_batch() -> None:
    torch.manual_seed(0)
    table = torch.randn(7, 7)
    windows = torch.randint(0, 7, (5, 9))
    per_window = evaluate(lambda tokens: table[tokens], windows, batch_size=2)
    assert per_window.shape == (5,)
    torch.testing.assert_close(per_window, evaluate(lambda tokens: table[tokens], windows, batch_size=5))
    torch.testing.assert_close(per_window.mean(), loss_of(table[windows[:, :-1]], windows))


def test_streams_of_a_seed_differ_and_seeds_do_not_share_streams() -> None:
    draws = {
        (seed, stream): float(torch.rand((), generator=generator(seed, stream)))
        for seed in range(4)
        for stream in range(16)
    }
    assert len(set(draws.values())) == len(draws)
