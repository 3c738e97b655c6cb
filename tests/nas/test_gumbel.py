"""Sampling identities: par-search.md section 9, items 1-7."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nas.gumbel import gumbel, path_factor, sample, sample_pair, straight_through, temperature


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(seed=st.integers(0, 2**31), tau=st.floats(0.05, 100), scale=st.floats(0, 50))
def test_soft_sample_is_on_the_simplex(seed: int, tau: float, scale: float) -> None:
    alpha = torch.randn(5, 3, generator=seeded(seed)) * scale
    soft = sample(alpha, tau, generator=seeded(seed))
    assert soft.shape == (5, 3)
    assert soft.dtype == torch.float32
    assert (soft >= 0).all()
    torch.testing.assert_close(soft.sum(-1), torch.ones(5), atol=1e-6, rtol=0)


@given(seed=st.integers(0, 2**31), tau=st.floats(0.05, 100))
def test_hard_sample_is_one_hot_at_the_soft_samples_argmax(seed: int, tau: float) -> None:
    alpha = torch.randn(6, 4, generator=seeded(seed))
    hard = sample(alpha, tau, generator=seeded(seed), hard=True)
    soft = sample(alpha, tau, generator=seeded(seed))
    assert sorted(hard.unique().tolist()) == [0.0, 1.0]
    assert (hard.sum(-1) == 1).all()
    assert (hard.argmax(-1) == soft.argmax(-1)).all()


def test_hard_sample_carries_the_soft_gradient() -> None:
    target = torch.randn(4, 3, generator=seeded(9))
    gradients = []
    for hard in (False, True):
        alpha = torch.randn(4, 3, generator=seeded(1)).requires_grad_()
        (sample(alpha, 0.7, generator=seeded(2), hard=hard) * target).sum().backward()
        gradients.append(alpha.grad)
    torch.testing.assert_close(gradients[0], gradients[1])


def test_low_temperature_gives_the_one_hot_and_high_the_uniform() -> None:
    alpha = torch.zeros(2000, 3)
    noise = gumbel(torch.rand(2000, 3, generator=seeded(3)))
    top = noise.topk(2, dim=-1).values
    clear = (top[:, 0] - top[:, 1]) > 0.02
    cold = sample(alpha, 1e-3, generator=seeded(3))
    onehot = torch.nn.functional.one_hot(noise.argmax(-1), 3).float()
    torch.testing.assert_close(cold[clear], onehot[clear], atol=1e-6, rtol=0)
    warm = sample(alpha, 1e4, generator=seeded(3))
    torch.testing.assert_close(warm, torch.full_like(warm, 1 / 3), atol=1e-3, rtol=0)


@pytest.mark.parametrize("tau", [0.1, 3.0])
def test_argmax_frequencies_are_the_softmax_at_any_temperature(tau: float) -> None:
    alpha = torch.tensor([0.3, -0.2, 0.7]).expand(200_000, 3)
    drawn = sample(alpha, tau, generator=seeded(4)).argmax(-1)
    frequencies = torch.bincount(drawn, minlength=3) / 200_000
    # 0.005 is four standard errors of a frequency at 200,000 draws
    torch.testing.assert_close(frequencies, torch.tensor([0.3228, 0.1958, 0.4815]), atol=0.005, rtol=0)


@given(shift=st.floats(-20, 20), seed=st.integers(0, 1000))
def test_a_shift_of_a_row_changes_nothing(shift: float, seed: int) -> None:
    alpha = torch.randn(3, 5, generator=seeded(seed))
    torch.testing.assert_close(
        sample(alpha + shift, 0.5, generator=seeded(seed)),
        sample(alpha, 0.5, generator=seeded(seed)),
        atol=2e-5,  # alpha + shift itself rounds in float32, and tau doubles that
        rtol=0,
    )


def test_the_ends_of_the_uniform_stay_finite() -> None:
    assert torch.isfinite(gumbel(torch.tensor([0.0, 1.0, 1.0 - 2**-24, 1e-45]))).all()
    for alpha in (torch.full((2, 3), 50.0), torch.tensor([[50.0, -50.0, 0.0]])):
        assert torch.isfinite(sample(alpha, 0.1, generator=seeded(5))).all()


@pytest.mark.parametrize("tau", [0.0, -1.0, float("nan")])
def test_a_temperature_that_is_not_positive_is_refused(tau: float) -> None:
    with pytest.raises(ValueError, match=r"tau is .*; it must be positive"):
        sample(torch.zeros(1, 2), tau, generator=seeded(0))
    with pytest.raises(ValueError, match=r"tau is .*; it must be positive"):
        sample_pair(torch.zeros(1, 2), tau, generator=seeded(0))


def test_straight_through_is_exactly_one_hot() -> None:
    soft = torch.softmax(torch.randn(100_000, 5, generator=seeded(6)) / 0.3, dim=-1)
    values = straight_through(soft)
    assert set(values.unique().tolist()) == {0.0, 1.0}


def test_path_factor_is_exactly_one_and_carries_the_chosen_gradient() -> None:
    alpha = torch.randn(50, 4, generator=seeded(7)).requires_grad_()
    soft = torch.softmax(alpha, dim=-1)
    path = soft.argmax(-1)
    factor = path_factor(soft, path)
    assert (factor == 1.0).all()
    (gradient,) = torch.autograd.grad(factor.sum(), alpha)
    chosen = soft.gather(-1, path[:, None])
    expected = chosen * (torch.nn.functional.one_hot(path, 4) - soft)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize(("n_steps", "warmup"), [(10, 0), (100, 33), (2, 0), (1, 0), (1, 1), (5, 4)])
def test_schedule_starts_and_ends_at_its_parameters(n_steps: int, warmup: int) -> None:
    taus = [temperature(step, warmup_steps=warmup, n_steps=n_steps, start=5.0, end=0.2) for step in range(n_steps)]
    assert taus[-1] == 0.2  # the value itself, not 5.0 * 0.2
    assert n_steps == 1 or taus[0] == 5.0
    assert all(later <= earlier for earlier, later in itertools.pairwise(taus))
    assert all(tau == 5.0 for tau in taus[: min(warmup, n_steps - 1)])


def test_schedule_is_exponential_after_warm_up() -> None:
    taus = [temperature(step, warmup_steps=10, n_steps=50, start=5.0, end=0.2) for step in range(10, 50)]
    ratios = [later / earlier for earlier, later in itertools.pairwise(taus)]
    assert max(ratios) - min(ratios) < 1e-9


@given(seed=st.integers(0, 2**31), tau=st.floats(0.05, 100))
def test_a_pair_has_two_allowed_candidates_and_all_the_weight(seed: int, tau: float) -> None:
    allowed = torch.tensor([[True, True, True, True], [True, False, True, False], [False, False, True, False]])
    alpha = torch.randn(3, 4, generator=seeded(seed)).masked_fill(~allowed, -torch.inf)
    soft, pair = sample_pair(alpha, tau, generator=seeded(seed))
    assert pair.sum(-1).tolist() == [2, 2, 1]
    assert not (pair & ~allowed).any()
    assert not soft[~pair].any()
    torch.testing.assert_close(soft.sum(-1), torch.ones(3), atol=1e-6, rtol=0)
    whole = sample(alpha, tau, generator=seeded(seed))  # of the same noise
    assert (soft.argmax(-1) == whole.argmax(-1)).all() or tau > 50
    kept = torch.where(pair, whole, 0.0)
    torch.testing.assert_close(soft, kept / kept.sum(-1, keepdim=True), atol=1e-5, rtol=0)


def test_pairs_are_drawn_without_replacement_from_softmax_alpha() -> None:
    alpha = torch.tensor([0.3, -0.2, 0.7])
    p = torch.softmax(alpha, -1)
    _, pair = sample_pair(alpha.expand(200_000, 3), 1.0, generator=seeded(4))
    left_out = (~pair).float().mean(0)
    # the last of three drawn one after the other
    expected = [
        sum(float(p[i] * p[j] / (1 - p[i])) for i in range(3) for j in range(3) if {i, j, k} == {0, 1, 2})
        for k in range(3)
    ]
    torch.testing.assert_close(left_out, torch.tensor(expected), atol=0.005, rtol=0)  # four standard errors


def test_only_the_two_of_a_pair_get_a_gradient_and_it_sums_to_zero() -> None:
    alpha = torch.randn(40, 5, generator=seeded(1)).requires_grad_()
    soft, pair = sample_pair(alpha, 0.7, generator=seeded(2))
    worth = torch.randn(40, 5, generator=seeded(3))
    (gradient,) = torch.autograd.grad((straight_through(soft) * worth).sum(), alpha)
    mean = (soft * worth).sum(-1, keepdim=True)
    torch.testing.assert_close(gradient, (soft * (worth - mean) / 0.7).detach())
    assert not gradient[~pair].any()
    assert gradient[pair].abs().min() > 0


def test_what_is_not_allowed_is_never_drawn_and_leaves_all_numbers_finite() -> None:
    alpha = torch.zeros(500, 3).masked_fill(torch.tensor([False, True, False]), -torch.inf).requires_grad_()
    for soft in (sample(alpha, 0.1, generator=seeded(0)), sample_pair(alpha, 0.1, generator=seeded(0))[0]):
        assert not soft[:, 1].any()
        (gradient,) = torch.autograd.grad((soft * torch.tensor([1.0, 7.0, 2.0])).sum(), alpha)
        assert torch.isfinite(gradient).all()
        assert not gradient[:, 1].any()
