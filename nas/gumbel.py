"""Gumbel-softmax samples of a choice per slot, pairs of them, the single-path factor, and the temperature schedule.

Jang et al. 2017 (arXiv:1611.01144) and GDAS (arXiv:1910.04465); properties in par-search.md section 2.
L slots, K candidates. Everything here is float32 whatever the network's precision: at tau 0.1 half precision
would lose the small weights that carry alpha's gradient.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

_SMALLEST = torch.finfo(torch.float32).tiny
_LARGEST = 1.0 - torch.finfo(torch.float32).eps / 2  # the float32 just below 1


def gumbel(uniform: Tensor) -> Tensor:
    """Turn uniform draws into Gumbel(0, 1) ones: -log(-log u), with u kept inside (0, 1).

    Args:
        uniform: any shape, in [0, 1]; the ends are clamped, so the result is always finite.
    """
    return -torch.log(-torch.log(uniform.clamp(_SMALLEST, _LARGEST)))


def sample(alpha: Tensor, tau: float, *, generator: Generator, hard: bool = False) -> Tensor:
    """Draw relaxed one-hot choices: softmax((alpha + g) / tau), with g ~ Gumbel(0, 1).

    Jang et al. 2017, section 2, with alpha as unnormalised log-weights.

    Args:
        alpha: architecture parameters, (L, K); -inf where a candidate is not allowed, which then has weight 0.
        tau: temperature, > 0; rows approach one-hot as it falls.
        generator: the only source of randomness; on the CPU, so that every device draws the same.
        hard: return one-hot rows that carry the soft rows' gradient (straight-through).

    Returns:
        (L, K); each row is non-negative and sums to 1.

    Raises:
        ValueError: tau is not positive.
    """
    soft = torch.softmax(_perturbed(alpha, generator) / _positive(tau), dim=-1)
    return straight_through(soft) if hard else soft


def sample_pair(alpha: Tensor, tau: float, *, generator: Generator) -> tuple[Tensor, Tensor]:
    """Draw two candidates of each slot, and relaxed one-hot choices between them.

    The two largest of alpha + g are drawn from softmax(alpha) without replacement (Gumbel-top-k, Kool et al. 2019,
    arXiv:1903.06059). Between them the weights are those of `sample`, renormalised; all others are exactly 0 and get
    no gradient, so they need not be run. The gradient is that of a choice among two, in slots of more a biased one.

    Args:
        alpha: (L, K), -inf where a candidate is not allowed.
        tau: temperature, > 0.
        generator: as in `sample`.

    Returns:
        (L, K) weights, and (L, K) bool: which two; one where only one is allowed.

    Raises:
        ValueError: tau is not positive.
    """
    perturbed = _perturbed(alpha, generator)
    pair = torch.zeros_like(perturbed, dtype=torch.bool)
    pair.scatter_(-1, perturbed.detach().topk(min(2, alpha.shape[-1]), dim=-1).indices, True)
    pair &= ~torch.isneginf(alpha.detach())
    return torch.softmax((perturbed / _positive(tau)).masked_fill(~pair, -torch.inf), dim=-1), pair


def _perturbed(alpha: Tensor, generator: Generator) -> Tensor:
    return alpha + gumbel(torch.rand(alpha.shape, generator=generator)).to(alpha.device)


def _positive(tau: float) -> float:
    if not tau > 0:
        raise ValueError(f"tau is {tau}; it must be positive")
    return tau


def straight_through(soft: Tensor) -> Tensor:
    """One-hot rows in value, the soft rows in gradient: (onehot - y) + y is exactly 0 or 1 in float32.

    Args:
        soft: (L, K), rows on the simplex.
    """
    hard = torch.zeros_like(soft).scatter_(-1, soft.argmax(dim=-1, keepdim=True), 1.0)
    return (hard - soft.detach()) + soft


def path_factor(soft: Tensor, path: Tensor) -> Tensor:
    """What multiplies the chosen block of each slot in single-path mode: 1 + (y_k - stopgrad(y_k)), exactly 1.

    The gradient keeps only the chosen candidate's term of the straight-through one (par-search.md section 2.4). A
    drawn identity adds nothing to the stream, so its factor multiplies zero and alpha gets no gradient there: a
    bias of this estimator.

    Args:
        soft: (L, K), rows on the simplex.
        path: (L,) chosen candidates.

    Returns:
        (L,) ones that carry d y_k.
    """
    chosen = soft.gather(-1, path[:, None])[:, 0]
    return 1.0 + (chosen - chosen.detach())


def temperature(step: int, *, warmup_steps: int, n_steps: int, start: float, end: float) -> float:
    """Temperature of the weight update `step` (0-based): `start` through warm-up, then exponential to `end`.

    The last step, n_steps - 1, has exactly `end`; `end` is the value itself, not a multiplier.
    """
    searching = n_steps - 1 - warmup_steps
    if step <= warmup_steps or searching <= 0:
        return start if step < n_steps - 1 else end
    if step >= n_steps - 1:
        return end
    return float(start * (end / start) ** ((step - warmup_steps) / searching))
