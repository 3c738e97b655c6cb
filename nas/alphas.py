"""Alpha, its optimiser, and the chance level it must exceed before anything is claimed.

Adam moves alpha whatever the signal: a gradient of pure noise still takes steps of the learning rate. So beside
alpha run `n_nulls` copies that get the same gradients with the sign of each slot's row flipped at random, through
the same optimiser. How far apart their two largest entries drift is what chance alone does; a slot whose gap is
not beyond the 95th percentile of that is *undecided*. This is ours; no paper of the four does it.
L slots, K candidates, S null copies.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from nas.config import Method

N_NULLS = 64
_QUANTILE = 0.95


class Alphas:
    """Architecture parameters (L, K), float32, all equal at the start; and their null copies (S, L, K).

    Args:
        n_slots: L.
        n_candidates: K.
        method: alpha_lr; random_signs makes a control run, whose own alpha gets flipped gradients.
        signs: source of the flips.
    """

    def __init__(self, n_slots: int, n_candidates: int, method: Method, signs: Generator) -> None:
        self.values = nn.Parameter(torch.zeros(n_slots, n_candidates))
        self.nulls = nn.Parameter(torch.zeros(N_NULLS, n_slots, n_candidates))
        # betas of DARTS; no decay: it would pull alpha back whatever the data say
        self.optimiser = torch.optim.Adam([self.values, self.nulls], lr=method.alpha_lr, betas=(0.5, 0.999))
        self.random_signs = method.random_signs
        self.signs = signs
        self.n_updates = 0

    @property
    def names(self) -> dict[str, nn.Parameter]:
        return {"values": self.values, "nulls": self.nulls}

    def update(self, gradient: Tensor) -> None:
        """One step of alpha and of its null copies; `gradient` is (L, K)."""
        gradient = gradient.cpu()
        flips = (
            torch.randint(0, 2, (N_NULLS + 1, gradient.shape[0], 1), generator=self.signs).to(gradient.dtype) * 2 - 1
        )
        self.values.grad = gradient * flips[-1] if self.random_signs else gradient.clone()
        self.nulls.grad = gradient * flips[:-1]
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.n_updates += 1

    def probabilities(self) -> Tensor:
        """softmax(alpha), (L, K) float32: what is stored and shown, never a sample."""
        return torch.softmax(self.values.detach(), dim=-1)

    def null_gaps(self) -> Tensor:
        """(L,) gap between the two largest entries that chance reaches in 95 of 100 copies; 0 with one candidate."""
        if self.nulls.shape[-1] < 2:
            return torch.zeros(self.nulls.shape[1])
        top = self.nulls.detach().topk(2, dim=-1).values  # (S, L, 2)
        return (top[..., 0] - top[..., 1]).quantile(_QUANTILE, dim=0)
