"""Fuzzy recall: in-context recall whose keys and values are several tokens each, of lengths that vary.

Poli et al. 2024 (arXiv:2403.17844), section 3. B examples, T tokens, N pairs of an example, P places for pairs, L
tokens of a pair at most.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from nas.data.objectives import Batch, shuffled
from nas.heads import IGNORE
from nas.specs.tasks.mechanistic import FuzzyRecallOptions


class FuzzyRecall:
    """Pairs drawn again and again from N of the example's own, cut where T tokens are full.

    The answers stand one token before each token of a value whose key has come before, and are that token.
    """

    def __init__(self, options: FuzzyRecallOptions, length: int) -> None:
        self.options = options
        self.length = length

    def draw(self, n: int, generator: Generator) -> Batch:
        options = self.options
        n_places = -(-(self.length + 1) // 2)  # pairs have two tokens or more; one token more than T is answered
        keys, key_real = self._motifs(n, options.n_key_tokens, options.longest_key, generator)
        values, value_real = self._motifs(n, options.n_value_tokens, options.longest_value, generator)
        # Where a key has been drawn twice, both are the first of them, so that it has one value.
        spelt = torch.where(key_real, keys, -1)
        same = (spelt[:, :, None] == spelt[:, None, :]).all(dim=3)  # (B, N, N)
        chosen = torch.randint(options.n_pairs, (n, n_places), generator=generator)
        chosen = same.int().argmax(dim=2).gather(1, chosen)  # argmax: the first of equal ones

        places = torch.arange(n_places).expand(n, -1)
        first = torch.full((n, options.n_pairs), n_places).scatter_reduce(1, chosen, places, "amin")
        again = first.gather(1, chosen) < places  # (B, P)
        tokens = torch.cat([keys, options.n_key_tokens + values], dim=2)  # (B, N, L)
        answers = torch.cat([torch.full_like(keys, IGNORE), values], dim=2)
        real = torch.cat([key_real, value_real], dim=2)
        laid_out, wanted, kept = (each[torch.arange(n)[:, None], chosen] for each in (tokens, answers, real))
        wanted = wanted.where(again[:, :, None], IGNORE)  # (B, P, L)
        return Batch(_packed(laid_out, kept, self.length + 1)[:, :-1], _packed(wanted, kept, self.length + 1)[:, 1:])

    def _motifs(self, n: int, n_tokens: int, longest: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """(B, N, longest) different tokens each, and which of them are there: the first 1 to `longest`."""
        shape = (n, self.options.n_pairs)
        tokens = shuffled((*shape, n_tokens), generator)[:, :, :longest]
        sizes = torch.randint(1, longest + 1, (*shape, 1), generator=generator)
        return tokens, torch.arange(longest) < sizes


def _packed(values: Tensor, real: Tensor, length: int) -> Tensor:
    """The first `length` values that are real, in order: (B, P, L), (B, P, L) -> (B, length)."""
    values, real = values.flatten(1), real.flatten(1)
    places = torch.where(real, real.cumsum(dim=1) - 1, length).clamp_max(length)  # those behind the end fall into one
    return values.new_empty((len(values), length + 1)).scatter_(1, places, values)[:, :length]
