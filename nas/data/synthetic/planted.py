"""Examples of the planted tasks, whose rules and token ids `nas.specs.tasks.planted` tells. B batch, T tokens."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from nas.data.objectives import Batch, shuffled
from nas.heads import IGNORE
from nas.specs.tasks.planted import LookupOptions, OffsetOptions, ShiftThenMatchOptions, TokenWiseOptions


class TokenWise:
    """Uniform tokens; the answer is each one's image under the permutation."""

    def __init__(self, options: TokenWiseOptions, length: int) -> None:
        self.options = options
        self.length = length
        self.image = torch.randperm(options.n_symbols, generator=Generator().manual_seed(options.permutation))

    def draw(self, n: int, generator: Generator) -> Batch:
        tokens = torch.randint(self.options.n_symbols, (n, self.length), generator=generator)
        return Batch(tokens, self.image[tokens])


class Offset:
    """Uniform tokens; the answer is the one `distance` places before."""

    def __init__(self, options: OffsetOptions, length: int) -> None:
        self.options = options
        self.length = length

    def draw(self, n: int, generator: Generator) -> Batch:
        tokens = torch.randint(self.options.n_symbols, (n, self.length), generator=generator)
        targets = torch.full_like(tokens, IGNORE)
        targets[:, self.options.distance :] = tokens[:, : -self.options.distance]
        return Batch(tokens, targets)


class Lookup:
    """Pairs of one token each, then queries, which have tokens of their own."""

    def __init__(self, options: LookupOptions, length: int) -> None:
        self.options = options
        self.length = length

    def draw(self, n: int, generator: Generator) -> Batch:
        options = self.options
        keys, values = _pairs(n, options, generator)
        asked, answers = _queries(keys, values, self.length - options.n_pairs, generator)
        pairs = keys * options.n_values + values
        return _joined(pairs, options.n_keys * options.n_values + asked, answers)


class ShiftThenMatch:
    """Pairs of two tokens each, then queries, which are the keys' own tokens."""

    def __init__(self, options: ShiftThenMatchOptions, length: int) -> None:
        self.options = options
        self.length = length

    def draw(self, n: int, generator: Generator) -> Batch:
        options = self.options
        keys, values = _pairs(n, options, generator)
        asked, answers = _queries(keys, values, self.length - 2 * options.n_pairs, generator)
        pairs = torch.stack([keys, options.n_keys + values], dim=2).flatten(1)  # key, value, key, value, ...
        return _joined(pairs, asked, answers)


def _pairs(n: int, options: LookupOptions | ShiftThenMatchOptions, generator: Generator) -> tuple[Tensor, Tensor]:
    """Different keys and any values, (n, pairs) each."""
    keys = shuffled((n, options.n_keys), generator)[:, : options.n_pairs]
    return keys, torch.randint(options.n_values, keys.shape, generator=generator)


def _queries(keys: Tensor, values: Tensor, n_queries: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Keys drawn from the pairs, with replacement, and their values, (n, queries) each."""
    places = torch.randint(keys.shape[1], (len(keys), n_queries), generator=generator)
    return keys.gather(1, places), values.gather(1, places)


def _joined(pairs: Tensor, queries: Tensor, answers: Tensor) -> Batch:
    return Batch(torch.cat([pairs, queries], dim=1), torch.cat([torch.full_like(pairs, IGNORE), answers], dim=1))
