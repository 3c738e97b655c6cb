"""Memorisation: a map that no context tells. Poli et al. 2024 (arXiv:2403.17844), section 3. B examples, T tokens."""

from __future__ import annotations

import torch
from torch import Generator

from nas.data.objectives import Batch
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import MemorisationOptions


class Memorisation:
    """Uniform keys, each followed by the mark, where the answer is the key's value. Of an odd length a key is last."""

    def __init__(self, options: MemorisationOptions, length: int) -> None:
        self.options = options
        self.length = length
        self.values = torch.randperm(options.n_keys, generator=Generator().manual_seed(options.map_seed))

    def draw(self, n: int, generator: Generator) -> Batch:
        keys = torch.randint(self.options.n_keys, (n, -(-self.length // 2)), generator=generator)
        mark, unscored = torch.full_like(keys, self.options.n_keys), torch.full_like(keys, IGNORE)
        tokens = torch.stack([keys, mark], dim=2).flatten(1)[:, : self.length]
        targets = torch.stack([unscored, self.values[keys]], dim=2).flatten(1)[:, : self.length]
        return Batch(tokens, targets)
