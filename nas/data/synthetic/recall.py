"""In-context recall: the value that a key had earlier in the same example; with noise or without.

Poli et al. 2024 (arXiv:2403.17844), section 3, in the form that asks at every key which has come before. B examples,
T tokens, P pairs, K keys.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from nas.data.objectives import Batch
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import NoisyRecallOptions, RecallOptions


class Recall:
    """Tokens: keys 0 to K - 1, then values. The answer stands at the key; the last key has always come before."""

    def __init__(self, options: RecallOptions, length: int) -> None:
        self.options = options
        self.length = length

    def draw(self, n: int, generator: Generator) -> Batch:
        n_pairs = -(-self.length // 2)  # of an odd length the last value is cut off
        return self._laid_out(torch.zeros((n, n_pairs), dtype=torch.bool), generator)

    def _laid_out(self, noisy: Tensor, generator: Generator) -> Batch:
        """Pairs where `noisy` (B, P) is False; where it is True there is a pair too, to be written over."""
        options, (n, n_pairs) = self.options, noisy.shape
        keys = torch.randint(options.n_keys, (n, n_pairs), generator=generator)
        values = torch.randint(options.n_values, (n, options.n_keys), generator=generator)
        places = torch.arange(n_pairs).expand(n, -1)
        unseen = torch.where(noisy, n_pairs, places)[:, :-1]
        first = torch.full((n, options.n_keys), n_pairs).scatter_reduce(1, keys[:, :-1], unseen, "amin")
        keys[:, -1:] = torch.multinomial((first < n_pairs).float(), 1, generator=generator)
        told = values.gather(1, keys)  # (B, P)
        scored = (first.gather(1, keys) < places) & ~noisy
        tokens = torch.stack([keys, options.n_keys + told], dim=2).flatten(1)
        targets = torch.full_like(tokens, IGNORE)
        targets[:, ::2] = told.where(scored, IGNORE)
        return Batch(tokens[:, : self.length], targets[:, : self.length])


class NoisyRecall(Recall):
    """Recall in which some pairs, neither the last nor all before it, give way to two tokens of noise each."""

    options: NoisyRecallOptions

    def draw(self, n: int, generator: Generator) -> Batch:
        options, n_pairs = self.options, -(-self.length // 2)
        noisy = torch.rand((n, n_pairs), generator=generator) < options.noise_percent / 100
        noisy.scatter_(1, torch.randint(n_pairs - 1, (n, 1), generator=generator), False)
        noisy[:, -1] = False
        batch = self._laid_out(noisy, generator)
        noise = torch.randint(options.n_noise, batch.tokens.shape, generator=generator)
        hidden = noisy.repeat_interleave(2, dim=1)[:, : self.length]
        return Batch(torch.where(hidden, options.n_keys + options.n_values + noise, batch.tokens), batch.targets)
