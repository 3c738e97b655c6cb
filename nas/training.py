"""The one optimiser set-up, one training step and one evaluation, shared by search and retraining."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from nas.config import Method
from nas.errors import SearchFailed

_STREAMS = 16  # generators per seed; more than any trial uses


def generator(seed: int, stream: int) -> Generator:
    """An independent source of randomness: each use of chance in a trial has its own stream of the seed."""
    assert 0 <= stream < _STREAMS
    return Generator().manual_seed(seed * _STREAMS + stream)


def weights_optimiser(parameters: dict[str, nn.Parameter], method: Method) -> torch.optim.Optimizer:
    """AdamW; decay on matrices only, so that biases, norms and the SGU's open gate are not pulled to zero.

    Parameters without a gradient are skipped, moments and all: a step touches only the path that ran.
    """
    matrices = [parameter for parameter in parameters.values() if parameter.ndim >= 2]
    vectors = [parameter for parameter in parameters.values() if parameter.ndim < 2]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": method.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=method.lr,
        betas=(0.9, 0.98),
        fused=True,
    )


def learning_rate(step: int, n_steps: int, method: Method) -> float:
    """Linear rise over lr_warmup_steps (at most a quarter of the run), then cosine to a tenth of the peak."""
    rise = min(method.lr_warmup_steps, n_steps // 4)
    if step < rise:
        return method.lr * (step + 1) / rise
    share = (step - rise) / max(1, n_steps - rise)
    return method.lr * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share)))


def loss_of(logits: Tensor, windows: Tensor) -> Tensor:
    """Mean cross-entropy of each next token, nats.

    Args:
        logits: (B, T, V) for the first T tokens of each window.
        windows: (B, T + 1) token ids.
    """
    return F.cross_entropy(logits.flatten(0, 1).float(), windows[:, 1:].flatten())


def weight_step(
    forward: Callable[[Tensor], Tensor],
    windows: Tensor,
    optimiser: torch.optim.Optimizer,
    *,
    lr: float,
    grad_clip: float,
) -> Tensor:
    """One weight update; returns the loss, detached and still on its device.

    Args:
        forward: (B, T) tokens -> (B, T, V) logits.
        windows: (B, T + 1) token ids.
        optimiser: over the weights; gradients are cleared first and left for nobody.
        lr: learning rate of this step.
        grad_clip: largest norm of the gradient of what ran.
    """
    loss = loss_of(forward(windows[:, :-1]), windows)
    torch.autograd.backward(loss)
    ran = [parameter for group in optimiser.param_groups for parameter in group["params"] if parameter.grad is not None]
    nn.utils.clip_grad_norm_(ran, grad_clip)
    for group in optimiser.param_groups:
        group["lr"] = lr
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return loss.detach()


@torch.no_grad()
def evaluate(forward: Callable[[Tensor], Tensor], windows: Tensor, batch_size: int) -> Tensor:
    """Loss of each window, nats per token.

    Args:
        forward: (B, T) tokens -> (B, T, V) logits.
        windows: (N, T + 1) token ids.
        batch_size: windows per forward.

    Returns:
        (N,) on the CPU.
    """
    losses = []
    for batch in torch.split(windows, batch_size):
        logits = forward(batch[:, :-1])
        nats = F.cross_entropy(logits.transpose(1, 2).float(), batch[:, 1:], reduction="none")
        losses.append(nats.mean(dim=1).cpu())
    return torch.cat(losses)


def mean_or_fail(losses: list[Tensor], step: int) -> float | None:
    """Mean of the losses since the last report; None when there were none.

    Raises:
        SearchFailed: training diverged.
    """
    return finite_or_fail(torch.stack(losses).mean(), step) if losses else None


def finite_or_fail(loss: Tensor, step: int) -> float:
    """A loss as a number. The last weights may be broken though the step that broke them still had a finite loss.

    Raises:
        SearchFailed: training diverged.
    """
    value = float(loss)
    if not math.isfinite(value):
        raise SearchFailed(f"training diverged by step {step}: the loss is {value}; a lower lr or grad_clip may help")
    return value
