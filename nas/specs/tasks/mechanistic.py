"""In-context recall and the other tasks of mechanistic architecture design, and sorting. No torch.

MAD: Poli et al. 2024 (arXiv:2403.17844), section 3 and its released settings. Each task asks for one skill: to look up
what the context says, to pass over noise, to take several tokens for one, to keep an order, to gather a sequence in one
place, or to remember what no context says. In each the answer is a class at each token. T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from nas.options import ranged
from nas.specs.tasks.base import RangedOptions, TaskSpec


def _at_least(least: int, what: str, length: int) -> None:
    if length < least:
        raise ValueError(f"train_length is {length}; it must be at least {least}: {what}")


@dataclass(frozen=True)
class RecallOptions(RangedOptions):
    """Pairs of a key and a value, one token each; a key that comes again has the same value.

    Args:
        n_keys: keys.
        n_values: values; which one a key has is drawn anew for every example.
    """

    n_keys: int = ranged(8, 2, 4096)
    n_values: int = ranged(8, 2, 4096)

    @property
    def vocab_size(self) -> int:
        """Keys, and values behind them."""
        return self.n_keys + self.n_values

    @property
    def n_classes(self) -> int:
        return self.n_values

    def check(self, length: int) -> None:
        """Raises: ValueError: no key could come again."""
        _at_least(3, "a pair, and its key again", length)


@dataclass(frozen=True)
class NoisyRecallOptions(RecallOptions):
    """Recall with pairs of noise between the pairs.

    Args:
        n_noise: tokens of noise.
        noise_percent: share of pairs whose two tokens are noise instead.
    """

    n_noise: int = ranged(16, 1, 4096)
    noise_percent: int = ranged(20, 0, 95)

    @property
    def vocab_size(self) -> int:
        """Keys, values, noise."""
        return self.n_keys + self.n_values + self.n_noise


@dataclass(frozen=True)
class FuzzyRecallOptions(RangedOptions):
    """Recall whose keys and values are several tokens each.

    Args:
        n_key_tokens: tokens that keys are made of.
        n_value_tokens: tokens that values are made of.
        n_pairs: keys of an example, at most; all are drawn anew for each.
        longest_key: tokens of a key are 1 to so many, all different.
        longest_value: tokens of a value are 1 to so many, all different.
    """

    n_key_tokens: int = ranged(7, 2, 1024)
    n_value_tokens: int = ranged(8, 2, 1024)
    n_pairs: int = ranged(8, 1, 256)
    longest_key: int = ranged(3, 1, 16)
    longest_value: int = ranged(3, 1, 16)

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("key", "value"):
            longest, known = getattr(self, f"longest_{what}"), getattr(self, f"n_{what}_tokens")
            if longest > known:
                raise ValueError(f"longest_{what} is {longest} with n_{what}_tokens {known}; all tokens of one differ")

    @property
    def vocab_size(self) -> int:
        """Tokens of keys, and those of values behind them."""
        return self.n_key_tokens + self.n_value_tokens

    @property
    def n_classes(self) -> int:
        return self.n_value_tokens

    def check(self, length: int) -> None:
        """Raises: ValueError: an example might have no key twice."""
        most = (self.n_pairs + 1) * (self.longest_key + self.longest_value)
        _at_least(most, f"then {self.n_pairs + 1} pairs fit in, one more than n_pairs", length)


@dataclass(frozen=True)
class SelectiveCopyingOptions(RangedOptions):
    """Symbols at random places among blanks; behind a mark, as many blanks, which the symbols answer in their order.

    Args:
        n_symbols: different symbols.
        n_copied: symbols of an example.
    """

    n_symbols: int = ranged(14, 2, 4096)
    n_copied: int = ranged(16, 1, 4096)

    @property
    def vocab_size(self) -> int:
        """Symbols, the blank, the mark."""
        return self.n_symbols + 2

    @property
    def n_classes(self) -> int:
        return self.n_symbols

    def check(self, length: int) -> None:
        """Raises: ValueError: symbols and answers do not fit in."""
        _at_least(2 * self.n_copied + 1, "n_copied symbols, a mark, and an answer to each symbol", length)


@dataclass(frozen=True)
class CompressionOptions(RangedOptions):
    """Symbols, and a mark at the end whose hidden state alone must tell them all.

    Args:
        n_symbols: different symbols.
    """

    n_symbols: int = ranged(15, 2, 4096)

    @property
    def vocab_size(self) -> int:
        """Symbols and the mark."""
        return self.n_symbols + 1

    @property
    def n_classes(self) -> int:
        return self.n_symbols

    def check(self, length: int) -> None:
        """Any length will do: two tokens are a symbol and the mark."""


@dataclass(frozen=True)
class MemorisationOptions(RangedOptions):
    """Keys, each followed by a mark that asks for the key's value: a map that is the same in all examples.

    Args:
        n_keys: keys, and as many values.
        map_seed: of the map, a permutation.
    """

    n_keys: int = ranged(128, 2, 65536)
    map_seed: int = ranged(0, 0, 2**31 - 1)

    @property
    def vocab_size(self) -> int:
        """Keys and the mark; values are not seen."""
        return self.n_keys + 1

    @property
    def n_classes(self) -> int:
        return self.n_keys

    def check(self, length: int) -> None:
        """Any length will do: two tokens are a key and the mark."""


@dataclass(frozen=True)
class SortingOptions(RangedOptions):
    """Symbols, a mark, and the same symbols in rising order, each to be told from what stands before it.

    Args:
        n_symbols: different symbols; they may come more than once.
    """

    n_symbols: int = ranged(32, 2, 4096)

    @property
    def vocab_size(self) -> int:
        """Symbols and the mark."""
        return self.n_symbols + 1

    @property
    def n_classes(self) -> int:
        return self.n_symbols

    def check(self, length: int) -> None:
        """Raises: ValueError: the answer would be cut."""
        if length % 2:
            raise ValueError(f"train_length is {length}; it must be even: half of it is sorted")


_SEEN = (1.0, "a key is scored only where it has come before with its value")
_MAD = "MAD (arXiv:2403.17844), section 3"

SPECS: tuple[TaskSpec, ...] = (
    TaskSpec(
        name="in-context-recall",
        description="the value that a key had earlier in the same example",
        objective="token_classification",
        options=RecallOptions,
        best=_SEEN,
        class_path="nas.data.synthetic.recall:Recall",
        source=_MAD,
    ),
    TaskSpec(
        name="noisy-recall",
        description="in-context recall with noise between the pairs",
        objective="token_classification",
        options=NoisyRecallOptions,
        best=_SEEN,
        class_path="nas.data.synthetic.recall:NoisyRecall",
        source=_MAD,
    ),
    TaskSpec(
        name="fuzzy-recall",
        description="in-context recall of keys and values that are one to three tokens each",
        objective="token_classification",
        options=FuzzyRecallOptions,
        best=_SEEN,
        class_path="nas.data.synthetic.fuzzy_recall:FuzzyRecall",
        source=_MAD,
    ),
    TaskSpec(
        name="selective-copying",
        description="symbols that stand among blanks, told again in their order",
        objective="token_classification",
        options=SelectiveCopyingOptions,
        best=(1.0, "all symbols stand before the first answer"),
        class_path="nas.data.synthetic.copying:SelectiveCopying",
        source=_MAD,
    ),
    TaskSpec(
        name="compression",
        description="a sequence told again from the hidden state of the one token that ends it",
        objective="token_classification",
        options=CompressionOptions,
        best=(1.0, "the last token sees all others, and a vector of real numbers can hold them"),
        class_path="nas.data.synthetic.compression:Compression",
        source=_MAD,
        unrolled=True,
    ),
    TaskSpec(
        name="memorisation",
        description="values of keys that no context tells: a map fixed for good",
        objective="token_classification",
        options=MemorisationOptions,
        best=(1.0, "the map is the same in training and in test"),
        class_path="nas.data.synthetic.memorisation:Memorisation",
        source=_MAD,
    ),
    TaskSpec(
        name="sorting",
        description="a sequence's symbols in rising order, behind it",
        objective="token_classification",
        options=SortingOptions,
        best=(1.0, "all symbols stand before the first answer"),
        class_path="nas.data.synthetic.sorting:Sorting",
        source="our own",
    ),
)
