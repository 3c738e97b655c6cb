"""Compression: a sequence told again from its last token. Poli et al. 2024 (arXiv:2403.17844), section 3.

The network's head sees the hidden state of the last token alone, and the place that is asked for: `pooling` "unroll"
of `nas.options.BackboneConfig`. B examples, T tokens.
"""

from __future__ import annotations

import torch
from torch import Generator

from nas.data.objectives import Batch
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import CompressionOptions


class Compression:
    """T - 1 uniform symbols and the mark behind them; the answer at each place but the mark's is its symbol."""

    def __init__(self, options: CompressionOptions, length: int) -> None:
        self.options = options
        self.length = length

    def draw(self, n: int, generator: Generator) -> Batch:
        mark = self.options.n_symbols
        symbols = torch.randint(mark, (n, self.length), generator=generator)
        last = torch.arange(self.length) == self.length - 1
        return Batch(symbols.masked_fill(last, mark), symbols.masked_fill(last, IGNORE))
