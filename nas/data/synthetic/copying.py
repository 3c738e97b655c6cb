"""Selective copying: symbols among blanks, told again in their order. Poli et al. 2024 (arXiv:2403.17844), section 3.

B examples, T tokens.
"""

from __future__ import annotations

import torch
from torch import Generator

from nas.data.objectives import Batch, shuffled
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import SelectiveCopyingOptions


class SelectiveCopying:
    """Tokens: symbols, then the blank, then the mark. The i-th blank behind the mark is answered by the i-th symbol."""

    def __init__(self, options: SelectiveCopyingOptions, length: int) -> None:
        self.options = options
        self.length = length

    def draw(self, n: int, generator: Generator) -> Batch:
        blank, mark, n_copied = self.options.n_symbols, self.options.n_symbols + 1, self.options.n_copied
        symbols = torch.randint(self.options.n_symbols, (n, n_copied), generator=generator)
        before = self.length - n_copied - 1  # tokens before the mark
        order = shuffled((n, before), generator)
        tokens = torch.full((n, self.length), blank)
        tokens.scatter_(1, order[:, :n_copied].sort(dim=1).values, symbols)
        tokens[:, before] = mark
        targets = torch.full_like(tokens, IGNORE)
        targets[:, before + 1 :] = symbols
        return Batch(tokens, targets)
