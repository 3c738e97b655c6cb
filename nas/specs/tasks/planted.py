"""Planted tasks: the right stack of blocks is known, so that a search can be scored on whether it finds it. No torch.

In each the answer is a class at each token. Only the named mix of tokens helps: none at all (token-wise), by place
(offset), by content (lookup), or by content behind some other mix (shift-then-match). On `offset` a network must know
no positions: with them attention solves it too, and then it tells nothing.

Beside each task stand its reference lines: accuracies of readers that do not do what the task asks. T tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from nas.options import ranged
from nas.specs.tasks.base import RangedOptions, TaskSpec


def commonest_shares(n_drawn: int, n_values: int) -> list[float]:
    """How often the commonest of some values is that of a random one among them: E[largest count] / number of them.

    Args:
        n_drawn: most values that are drawn, independent and uniform.
        n_values: values that there are.

    Returns:
        For 1, 2, ... n_drawn values.
    """
    largest = [Fraction(0)] * (n_drawn + 1)
    for most in range(n_drawn):
        for drawn, probability in enumerate(_none_above(most, n_drawn, n_values)):
            largest[drawn] += 1 - probability
    return [float(largest[drawn] / drawn) for drawn in range(1, n_drawn + 1)]


def _none_above(most: int, n_drawn: int, n_values: int) -> list[Fraction]:
    """Probability that no value stands more than `most` times, for 0 to n_drawn values.

    Of all assignments of n values, n! [x^n] (sum over j <= most of x^j / j!)^n_values are such; the power p = q^k by
    its recurrence, p' q = k q' p.
    """
    series = [Fraction(1, math.factorial(count)) for count in range(most + 1)]
    power = [Fraction(1)]
    for place in range(1, n_drawn + 1):
        counts = range(1, min(place, most) + 1)
        terms = [((n_values + 1) * count - place) * series[count] * power[place - count] for count in counts]
        power.append(sum(terms, Fraction(0)) / place)
    return [each * Fraction(math.factorial(drawn), n_values**drawn) for drawn, each in enumerate(power)]


@dataclass(frozen=True)
class TokenWiseOptions(RangedOptions):
    """Each token has an answer of its own.

    Args:
        n_symbols: tokens, and as many answers.
        permutation: seed of the permutation that maps one to the other; the same in all examples.
    """

    n_symbols: int = ranged(32, 2, 4096)
    permutation: int = ranged(0, 0, 2**31 - 1)

    @property
    def vocab_size(self) -> int:
        return self.n_symbols

    @property
    def n_classes(self) -> int:
        return self.n_symbols

    def check(self, length: int) -> None:
        """Any length will do."""

    def reference_lines(self, length: int) -> dict[str, float]:
        """Accuracy of readers by name."""
        return {"any answer": 1 / self.n_symbols}


@dataclass(frozen=True)
class OffsetOptions(RangedOptions):
    """The answer is the token that stood some places before.

    Args:
        n_symbols: tokens, and as many answers.
        distance: places; the first tokens, which have none there, are not scored.
    """

    n_symbols: int = ranged(32, 2, 4096)
    distance: int = ranged(7, 1, 65535)

    @property
    def vocab_size(self) -> int:
        return self.n_symbols

    @property
    def n_classes(self) -> int:
        return self.n_symbols

    def check(self, length: int) -> None:
        """Raises: ValueError: no token of a window would be scored."""
        if self.distance >= length:
            raise ValueError(f"distance is {self.distance} at length {length}; it must be at most {length - 1}")

    def reference_lines(self, length: int) -> dict[str, float]:
        """Accuracy of readers by name; the second knows all earlier tokens, but not their order."""
        shares = commonest_shares(length - 1, self.n_symbols)[self.distance - 1 :]
        return {"any answer": 1 / self.n_symbols, "commonest token so far": fmean(shares)}


class _Pairs(RangedOptions):
    """What tasks have in common that show pairs of a key and a value and then ask for values of keys."""

    n_keys: int
    n_values: int
    n_pairs: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_pairs > self.n_keys:
            raise ValueError(f"n_pairs is {self.n_pairs} with n_keys {self.n_keys}; each pair has a key of its own")

    @property
    def n_classes(self) -> int:
        return self.n_values

    def _check_room(self, taken: int, length: int) -> None:
        if taken >= length:
            raise ValueError(
                f"n_pairs {self.n_pairs} take {taken} tokens of length {length}; one must be left for a query"
            )

    def reference_lines(self, length: int) -> dict[str, float]:
        """Accuracy of readers by name; the second knows which values stand in the window, but not with which keys."""
        commonest = commonest_shares(self.n_pairs, self.n_values)[-1]
        return {"any answer": 1 / self.n_values, "commonest value in the window": commonest}


@dataclass(frozen=True)
class LookupOptions(_Pairs):
    """Pairs of a key and a value, one token each; then keys, whose values are the answers.

    Args:
        n_keys: keys, of which each pair has another one.
        n_values: values, drawn anew for every example.
        n_pairs: pairs at the start; all further tokens are queries, of keys that stand there.
    """

    n_keys: int = ranged(48, 1, 4096)
    n_values: int = ranged(8, 2, 4096)
    n_pairs: int = ranged(44, 1, 4096)

    @property
    def vocab_size(self) -> int:
        """Pairs are key * n_values + value, and queries stand behind them."""
        return self.n_keys * self.n_values + self.n_keys

    def check(self, length: int) -> None:
        """Raises: ValueError: no place is left for a query."""
        self._check_room(self.n_pairs, length)


@dataclass(frozen=True)
class ShiftThenMatchOptions(_Pairs):
    """Pairs of a key and a value, two tokens each; then keys, whose values are the answers: multi-query recall.

    Args:
        n_keys: keys, of which each pair has another one; a query is the same token.
        n_values: values, drawn anew for every example.
        n_pairs: pairs at the start; all further tokens are queries, of keys that stand there.
    """

    n_keys: int = ranged(32, 1, 4096)
    n_values: int = ranged(32, 2, 4096)
    n_pairs: int = ranged(8, 1, 4096)

    @property
    def vocab_size(self) -> int:
        """Keys, and values behind them."""
        return self.n_keys + self.n_values

    def check(self, length: int) -> None:
        """Raises: ValueError: no place is left for a query."""
        self._check_room(2 * self.n_pairs, length)


_SOURCE = "our own"
_CERTAIN = (1.0, "what has been read tells every answer")

SPECS: tuple[TaskSpec, ...] = (
    TaskSpec(
        name="token-wise",
        description="planted: each token's image under a fixed permutation; the right answer is no block at all",
        objective="token_classification",
        options=TokenWiseOptions,
        best=_CERTAIN,
        class_path="nas.data.synthetic.planted:TokenWise",
        source=_SOURCE,
    ),
    TaskSpec(
        name="offset",
        description="planted: the token some places before; a mix by place solves it, attention alone does not",
        objective="token_classification",
        options=OffsetOptions,
        best=_CERTAIN,
        class_path="nas.data.synthetic.planted:Offset",
        source=_SOURCE,
    ),
    TaskSpec(
        name="lookup",
        description="planted: the value of a key among pairs of one token each; a mix by content solves it",
        objective="token_classification",
        options=LookupOptions,
        best=_CERTAIN,
        class_path="nas.data.synthetic.planted:Lookup",
        source=_SOURCE,
    ),
    TaskSpec(
        name="shift-then-match",
        description="planted: the value behind a key, two tokens a pair; a mix by content behind another mix solves it",
        objective="token_classification",
        options=ShiftThenMatchOptions,
        best=_CERTAIN,
        class_path="nas.data.synthetic.planted:ShiftThenMatch",
        source=_SOURCE,
    ),
)
