"""Chance level of alpha: what sign-flipped gradients reach, and what a steady one reaches beyond it."""

import torch

from nas.alphas import N_NULLS, Alphas
from nas.config import Method


def make(**method: object) -> Alphas:
    return Alphas(2, 3, Method.model_validate({"alpha_lr": 0.02, **method}), torch.Generator().manual_seed(0))


def test_a_steady_gradient_moves_beyond_chance_and_noise_does_not() -> None:
    alphas = make()
    noise = torch.Generator().manual_seed(1)
    beyond = 0
    for trial in range(20):
        alphas = Alphas(2, 3, Method(alpha_lr=0.02), torch.Generator().manual_seed(trial))
        for _ in range(100):
            gradient = torch.randn(2, 3, generator=noise)
            gradient[0] = torch.tensor([-1.0, 0.5, 0.5])  # slot 0 is told the same each time
            alphas.update(gradient)
        top = alphas.values.detach().topk(2, dim=-1).values
        gap = top[:, 0] - top[:, 1]
        assert gap[0] > alphas.null_gaps()[0]
        beyond += int(gap[1] > alphas.null_gaps()[1])
    assert beyond <= 4  # 5% of 20 expected; five or more would come about once in 400 runs of chance


def test_null_copies_take_the_same_steps_with_signs_of_their_own() -> None:
    alphas = make()
    gradient = torch.tensor([[1.0, -0.5, -0.5], [0.2, 0.2, -0.4]])
    alphas.update(gradient)
    # Adam's first step is the learning rate in the gradient's direction
    torch.testing.assert_close(alphas.values.detach(), -0.02 * gradient.sign(), atol=1e-6, rtol=0)
    torch.testing.assert_close(alphas.nulls.detach().abs(), torch.full((N_NULLS, 2, 3), 0.02), atol=1e-6, rtol=0)
    signs = (alphas.nulls.detach() / alphas.values.detach()).sign()
    assert (signs == signs[..., :1]).all()  # a row flips as a whole, so that it still sums to zero
    assert 0 < int((signs[:, 0, 0] > 0).sum()) < N_NULLS


def test_one_candidate_has_no_gap() -> None:
    alphas = Alphas(2, 1, Method(), torch.Generator().manual_seed(0))
    assert alphas.null_gaps().tolist() == [0.0, 0.0]


def test_control_run_gets_flipped_gradients() -> None:
    alphas = make(random_signs=True)
    for _ in range(50):
        alphas.update(torch.tensor([[1.0, -0.5, -0.5], [1.0, -0.5, -0.5]]))
    assert alphas.values.detach().abs().max() < 0.02 * 50 * 0.7  # a steady gradient would be near 0.02 * 50
