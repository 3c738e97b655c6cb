"""What a network reads and what it is scored on: next tokens, masked ones, or classes. B batch, T tokens.

A masked LM has one id more than its tokenizer, behind all others, which stands where a token is hidden. 15% of a
window's tokens are scored: 80% of them are hidden, 10% replaced by a random token, 10% left as they are (BERT: Devlin
et al. 2018, arXiv:1810.04805, section 3.1; sgu.md section 6.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Generator, Tensor

from nas.config.task import Task
from nas.heads import IGNORE

SHARE, HIDDEN, RANDOM = 0.15, 0.8, 0.1  # of a window's tokens; of those


@dataclass(frozen=True, eq=False)
class Batch:
    """What is read and what is to be predicted there.

    Args:
        tokens: (B, T) token ids.
        targets: (B, T) token ids or classes, IGNORE where nothing is scored; (B, 1) classes of whole sequences.
        key_padding: (B, T) bool, True where a token is real; None when all are.
        scored: as targets, on the CPU wherever these are: where one is not IGNORE; None: as they say.
    """

    tokens: Tensor
    targets: Tensor
    key_padding: Tensor | None = None
    scored: Tensor | None = None

    def to(self, device: str) -> Batch:
        """The same on a device. What is scored is told by the CPU from then on: to ask the device would be to wait for
        all that it has been given before."""
        padding = self.key_padding
        return Batch(
            moved(self.tokens, device),
            moved(self.targets, device),
            None if padding is None else moved(padding, device),
            self._scored(),
        )

    def rows(self, rows: Sequence[int] | Tensor | slice) -> Batch:
        """Some of its rows."""
        padding, scored = self.key_padding, self.scored
        return Batch(
            self.tokens[rows],
            self.targets[rows],
            None if padding is None else padding[rows],
            None if scored is None else scored[rows],
        )

    @cached_property
    def places(self) -> Tensor:
        """(N,) the numbers of what is scored among all targets, in their order, where these are."""
        scored, device = self._scored(), self.targets.device
        if bool(scored.all()):
            return torch.arange(scored.numel(), device=device)
        return moved(scored.flatten().nonzero()[:, 0], device)

    def _scored(self) -> Tensor:
        return (self.targets != IGNORE).cpu() if self.scored is None else self.scored


def moved(tensor: Tensor, device: str | torch.device) -> Tensor:
    """On a device, without waiting for it: to a GPU from pinned memory, behind what it has been given before."""
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def next_tokens(windows: Tensor) -> Batch:
    """Each next token of (B, T + 1) windows."""
    return Batch(windows[:, :-1], windows[:, 1:])


def shuffled(shape: Sequence[int], generator: Generator) -> Tensor:
    """Permutations of 0 to the last axis's end, along it: the same for a seed on every machine.

    Equal numbers come about once in 2,000 rows of 128. How a sort that is not stable orders them is up to the vector
    instructions that a processor has.
    """
    return torch.rand(tuple(shape), generator=generator).argsort(dim=-1, stable=True)


def masked_tokens(windows: Tensor, mask_id: int, generator: Generator) -> Batch:
    """15% of the tokens of each window, at least one, and in all windows equally many.

    Args:
        windows: (B, T + 1) token ids below mask_id; the last column, another objective's target, is not read.
        mask_id: what stands for a hidden token.
        generator: the only source of randomness, on the CPU.
    """
    tokens = windows[:, :-1]
    n_scored = max(1, round(SHARE * tokens.shape[1]))
    order = shuffled(tokens.shape, generator)
    scored = torch.zeros_like(tokens, dtype=torch.bool).scatter(1, order[:, :n_scored], True)
    fate = torch.rand(tokens.shape, generator=generator)
    other = torch.randint(0, mask_id, tokens.shape, generator=generator)
    shown = torch.where(fate < HIDDEN, mask_id, torch.where(fate < HIDDEN + RANDOM, other, tokens))
    return Batch(torch.where(scored, shown, tokens), torch.where(scored, tokens, IGNORE))


def training_batch(task: Task, windows: Tensor, generator: Generator) -> Batch:
    """A batch of language to learn from; `generator` chooses what is masked, and is not touched where nothing is."""
    return next_tokens(windows) if task.objective == "causal_lm" else masked_tokens(windows, task.mask_id, generator)


def held_out_batch(task: Task, windows: Tensor) -> Batch:
    """A batch to be scored on, masked by each window's number: the same for every architecture, seed and search."""
    if task.objective == "causal_lm":
        return next_tokens(windows)
    masked = [
        masked_tokens(window[None], task.mask_id, Generator().manual_seed(number))
        for number, window in enumerate(windows)
    ]
    return Batch(torch.cat([each.tokens for each in masked]), torch.cat([each.targets for each in masked]))
