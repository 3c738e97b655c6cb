"""Weighted sums of candidates that keep only their input: what is differentiated is run again in the backward pass.

An alpha step asks two things of a slot: what each candidate's weight is worth, which is the product of the output's
gradient with what the candidate gives, and, where the sum flows through it, the gradient of its input. Neither needs
anything of the forward pass but the slot's input, so that memory does not grow with candidates; and in
straight-through mode, where losers have weight 0, they are run once, in the backward pass alone. The idea is
checkpointing's (Chen et al. 2016, arXiv:1604.06174), with the candidate as its segment. The candidates' own weights
get no gradient here: they must be frozen. B batch, T tokens, K candidates, D model width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Part = Callable[[int, Tensor], Tensor]
"""A candidate's number and the slot's (B, T, D) input, to the (B, T, D) that its weight multiplies."""


@dataclass(frozen=True)
class Conditions:
    """Under which a candidate runs, so that a later run gives the same bits.

    Args:
        device: cpu or cuda.
        seed: of dropout, the same for all candidates of a slot; None where nothing is dropped.
        autocast: the type that products are taken in; None: that of their factors.
    """

    device: torch.device
    seed: int | None
    autocast: torch.dtype | None

    @classmethod
    def now(cls, device: torch.device, drops: bool) -> Conditions:
        """Those of a slot that is about to run; its seed is drawn from the global generator."""
        autocast = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else None
        return cls(device, int(torch.randint(2**62, ())) if drops else None, autocast)

    @contextmanager
    def again(self) -> Iterator[None]:
        """Inside, what is run is run under them; the global generators are put back afterwards."""
        with torch.autocast(self.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            if self.seed is None:
                yield
                return
            with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
                torch.manual_seed(self.seed)
                yield


def weighted_sum(weights: Tensor, x: Tensor, part: Part, run: Sequence[int], conditions: Conditions) -> Tensor:
    """sum_k w_k part_k(x) over the candidates that run, each of which is run again in the backward pass.

    Args:
        weights: (K,).
        x: (B, T, D).
        part: of frozen candidates.
        run: numbers of the candidates whose weight is not 0.
        conditions: of each.
    """
    total: Tensor = _WeightedSum.apply(weights, x, part, run, conditions)  # type: ignore[no-untyped-call]
    return total


def credited(
    chosen: Tensor, weights: Tensor, x: Tensor, part: Part, only: int, run: Sequence[int], conditions: Conditions
) -> Tensor:
    """What the chosen candidate gives, as it is, with the gradient of a sum of all with one-hot weights.

    Args:
        chosen: (B, T, D), part(only, x), through which the gradient reaches x.
        weights: (K,), 1 at `only` and 0 elsewhere.
        x: (B, T, D).
        part: of frozen candidates.
        only: the chosen one.
        run: numbers of those whose weights get a gradient; the chosen one may be among them.
        conditions: of each.
    """
    out: Tensor = _Credited.apply(chosen, weights, x, part, only, run, conditions)  # type: ignore[no-untyped-call]
    return out


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, x: Tensor, part: Part, run: Sequence[int], conditions: Conditions) -> Tensor:
        total = torch.zeros_like(x)
        for number in run:
            with conditions.again():
                total = total + weights[number] * part(number, x)
        ctx.save_for_backward(weights, x)
        ctx.rest = part, run, conditions
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None, None, None]:
        weights, x = ctx.saved_tensors
        part, run, conditions = ctx.rest
        of_weights, of_x = torch.zeros_like(weights), None
        for number in run:
            given = x.detach().requires_grad_(ctx.needs_input_grad[1])
            with torch.enable_grad(), conditions.again():
                found = part(number, given)
            of_weights[number] = (gradient * found.detach()).sum()
            if found.requires_grad:
                (through,) = torch.autograd.grad(found, given, (gradient * weights[number]).to(found.dtype))
                of_x = through if of_x is None else of_x + through
        return of_weights, of_x, None, None, None


class _Credited(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        chosen: Tensor,
        weights: Tensor,
        x: Tensor,
        part: Part,
        only: int,
        run: Sequence[int],
        conditions: Conditions,
    ) -> Tensor:
        ctx.save_for_backward(chosen, weights, x)
        ctx.rest = part, only, run, conditions
        return chosen.view_as(chosen)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None, None, None]:
        chosen, weights, x = ctx.saved_tensors
        part, only, run, conditions = ctx.rest
        of_weights = torch.zeros_like(weights)
        for number in run:
            with torch.no_grad(), conditions.again():
                found = chosen if number == only else part(number, x)
            of_weights[number] = (gradient * found).sum()
        return gradient, of_weights, None, None, None, None, None
