"""Sorting: a sequence's symbols in rising order, behind it. B examples, T tokens."""

from __future__ import annotations

import torch
from torch import Generator

from nas.data.objectives import Batch
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import SortingOptions


class Sorting:
    """T / 2 uniform symbols, the mark, and the sorted ones but the last; from the mark on the answer is the next."""

    def __init__(self, options: SortingOptions, length: int) -> None:
        self.options = options
        self.half = length // 2

    def draw(self, n: int, generator: Generator) -> Batch:
        symbols = torch.randint(self.options.n_symbols, (n, self.half), generator=generator)
        ordered = symbols.sort(dim=1).values
        mark = torch.full((n, 1), self.options.n_symbols)
        tokens = torch.cat([symbols, mark, ordered[:, :-1]], dim=1)
        return Batch(tokens, torch.cat([torch.full_like(symbols, IGNORE), ordered], dim=1))
