"""Short ListOps: nested MIN, MAX, MED and SM over digits, and what simple readers of an expression score on it.

The generator's rules are those of long-range-arena's ListOps (Tay et al. 2020, arXiv:2011.04006) with its repaired
lengths: each node is a digit with probability 3/4, else an operator with 2 to `max_args` children; at `max_depth` all
are digits; MED is the truncated mean of the middle two where their number is even; SM is the sum modulo 10; each
operator and each closing bracket is one token. The original keeps lengths between 500 and 2000 at depth 10, where most
trained attention scores what a look at the first token scores; short expressions leave room to tell models apart.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

DIGITS = tuple(range(1, 11))  # token ids; 0 is padding
MIN, MAX, MED, SM, CLOSE = range(11, 16)
OPERATORS = (MIN, MAX, MED, SM)
PADDING, VOCAB_SIZE, N_CLASSES = 0, 16, 10
_LEAF = 0.75


def _median(values: Sequence[int]) -> int:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) // 2


_APPLY: dict[int, Callable[[Sequence[int]], int]] = {
    MIN: min,
    MAX: max,
    MED: _median,
    SM: lambda values: sum(values) % 10,
}


@dataclass(frozen=True)
class Rules:
    """What is drawn and what is kept.

    Args:
        max_depth: of nodes, the root's being 1, so that at most max_depth - 1 operators are nested.
        max_args: children of an operator, at least 2.
        shorter_than: tokens, strictly.
        longer_than: tokens, strictly.
    """

    max_depth: int = 5
    max_args: int = 5
    longer_than: int = 10
    shorter_than: int = 60


def values(tokens: Sequence[int]) -> dict[int, int]:
    """What each part of a whole expression comes to, 0 to 9, by the place of its operator, or of the digit it is.

    Raises:
        ValueError: brackets do not match, or an operator has no arguments.
    """
    outer: list[tuple[int, list[int]]] = [(-1, [])]
    found = {}
    for place, token in enumerate(tokens):
        if token in OPERATORS:
            outer.append((place, []))
            continue
        start, value = place, token - DIGITS[0]
        if token == CLOSE:
            start, arguments = outer.pop()
            if not arguments or not outer:
                raise ValueError(f"a closing bracket ends nothing in {list(tokens)}; operators need arguments")
            value = _APPLY[tokens[start]](arguments)
        found[start] = value
        outer[-1][1].append(value)
    if len(outer) != 1 or len(outer[0][1]) != 1:
        raise ValueError(f"{list(tokens)} is not one whole expression; it must be a digit or one bracket")
    return found


def evaluate(tokens: Sequence[int]) -> int:
    """The value of a whole expression, 0 to 9.

    Raises:
        ValueError: as `values`.
    """
    return values(tokens)[0]


def draw(rng: random.Random, rules: Rules, depth: int = 1) -> list[int]:
    """Tokens of a random node at `depth`, of any length."""
    if depth >= rules.max_depth or rng.random() < _LEAF:
        return [rng.choice(DIGITS)]
    tokens = [rng.choice(OPERATORS)]
    for _ in range(rng.randint(2, rules.max_args)):
        tokens += draw(rng, rules, depth + 1)
    return [*tokens, CLOSE]


def expressions(n: int, seed: int, rules: Rules | None = None) -> list[tuple[int, ...]]:
    """The first n different expressions of the wanted lengths, in the order drawn: any two slices are disjoint."""
    rules = rules or Rules()
    rng = random.Random(seed)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < n:
        tokens = draw(rng, rules)
        if rules.longer_than < len(tokens) < rules.shorter_than:
            found[tuple(tokens)] = None
    return list(found)


def near_value(tokens: Sequence[int]) -> int | None:
    """The root's operator applied to the digits directly under it alone; None if there are none."""
    depth, near = 0, []
    for token in tokens:
        depth += (token in OPERATORS) - (token == CLOSE)
        if depth == 1 and token in DIGITS:
            near.append(token - DIGITS[0])
    return _APPLY[tokens[0]](near) if near else None


def reference_lines(train: Sequence[tuple[int, ...]], test: Sequence[tuple[int, ...]]) -> dict[str, float]:
    """Accuracy on `test` of readers that see little of an expression and answer the label most frequent in `train`.

    A model that does not clear the last line has not been shown to have learnt nesting.
    """
    labels = [evaluate(each) for each in train]
    readers: dict[str, Callable[[tuple[int, ...]], Hashable]] = {
        "majority": lambda tokens: None,
        "root operator": lambda tokens: tokens[0],
        "root operator and its direct digits": lambda tokens: (tokens[0], near_value(tokens)),
    }
    accuracy = {}
    for name, read in readers.items():
        counts: dict[Hashable, Counter[int]] = {}
        for tokens, label in zip(train, labels, strict=True):
            counts.setdefault(read(tokens), Counter())[label] += 1
        answers = {seen: counter.most_common(1)[0][0] for seen, counter in counts.items()}
        accuracy[name] = sum(answers.get(read(each)) == evaluate(each) for each in test) / len(test)
    return accuracy
