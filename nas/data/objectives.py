"""What a network reads and what it is scored on: next tokens, or masked ones. B batch, T tokens.

Tokens are bytes. A masked LM has one id more, MASK, which stands where a byte is hidden. 15% of a window's tokens are
scored: 80% of them are hidden, 10% replaced by a random byte, 10% left as they are (BERT: Devlin et al. 2018,
arXiv:1810.04805, section 3.1; sgu.md section 6.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from nas.heads import IGNORE

MASK = 256
SHARE, HIDDEN, RANDOM = 0.15, 0.8, 0.1  # of a window's tokens; of those

Objective = Literal["causal_lm", "masked_lm"]


@dataclass(frozen=True, eq=False)
class Batch:
    """What is read and what is to be predicted there.

    Args:
        tokens: (B, T) token ids.
        targets: (B, T) token ids, IGNORE where nothing is scored. Every row has equally many that are.
    """

    tokens: Tensor
    targets: Tensor

    def to(self, device: str) -> Batch:
        return Batch(self.tokens.to(device), self.targets.to(device))


def next_tokens(windows: Tensor) -> Batch:
    """Each next token of (B, T + 1) windows."""
    return Batch(windows[:, :-1], windows[:, 1:])


def masked_tokens(windows: Tensor, generator: Generator) -> Batch:
    """15% of the tokens of each window, at least one, and in all windows equally many.

    Args:
        windows: (B, T + 1) bytes; the last column, another objective's target, is not read.
        generator: the only source of randomness, on the CPU.
    """
    tokens = windows[:, :-1]
    n_scored = max(1, round(SHARE * tokens.shape[1]))
    order = torch.rand(tokens.shape, generator=generator).argsort(dim=1)
    scored = torch.zeros_like(tokens, dtype=torch.bool).scatter(1, order[:, :n_scored], True)
    fate = torch.rand(tokens.shape, generator=generator)
    other = torch.randint(0, MASK, tokens.shape, generator=generator)
    shown = torch.where(fate < HIDDEN, MASK, torch.where(fate < HIDDEN + RANDOM, other, tokens))
    return Batch(torch.where(scored, shown, tokens), torch.where(scored, tokens, IGNORE))


def training_batch(objective: Objective, windows: Tensor, generator: Generator) -> Batch:
    """A batch to learn from; `generator` chooses what is masked, and is not touched where nothing is."""
    return next_tokens(windows) if objective == "causal_lm" else masked_tokens(windows, generator)


def held_out_batch(objective: Objective, windows: Tensor) -> Batch:
    """A batch to be scored on, masked by each window's number: the same for every architecture, seed and search."""
    if objective == "causal_lm":
        return next_tokens(windows)
    masked = [masked_tokens(window[None], Generator().manual_seed(number)) for number, window in enumerate(windows)]
    return Batch(torch.cat([each.tokens for each in masked]), torch.cat([each.targets for each in masked]))
