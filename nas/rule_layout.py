"""The layout that statements about several families make together: how many blocks of each, and where.

Position and cut say in which part of the depth a family stands, spacing how it lies there, order which of two families
comes first. What nothing is said of is spread evenly over the whole depth. Statements may want what cannot all be had,
so a finished layout is held against each (`broken`). Ours; that such a layout is any good is what retraining it may
show. N blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from math import ceil

from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.statement import Statement

_ROUNDING = 1e-9  # of shares


@dataclass(frozen=True)
class Counts:
    """The blocks of a layout: label and family of each that is placed, and the label of all others."""

    placed: Sequence[tuple[str, str]]
    other: str


def place(statements: Sequence[Statement], counts: Counts, n_blocks: int) -> tuple[str, ...]:
    """The label of each block, (N,).

    Raises:
        InvalidInput: more blocks are to be placed than there are, or orders go in a circle.
    """
    if len(counts.placed) > n_blocks:
        raise InvalidInput(f"{len(counts.placed)} blocks of the rule do not fit into {n_blocks}")
    by_family: dict[str, list[str]] = {}
    for label, family in counts.placed:
        by_family.setdefault(family, []).append(label)
    wanted = [
        (target, family)
        for family, labels in by_family.items()
        for target in _targets([each for each in statements if each.family == family], len(labels), n_blocks)
    ]
    wanted.sort()
    slots = _apart([target for target, _ in wanted], n_blocks)
    families = _in_order(dict(zip(slots, [family for _, family in wanted], strict=True)), _pairs(statements))
    rest = {family: iter(labels) for family, labels in by_family.items()}
    return tuple(next(rest[families[slot]]) if slot in families else counts.other for slot in range(n_blocks))


def at_same_cost(statements: Sequence[Statement], labels: Sequence[str], space: SearchSpace) -> tuple[str, ...]:
    """The blocks of an architecture in the order that the statements want; skipped slots go to the end.

    Raises:
        InvalidInput: the space does not let one of them stand there.
    """
    families = {candidate.label: candidate.family for candidate in space.candidates}
    skipped = [label for label in labels if families[label] == "identity"]
    placed = [(label, families[label]) for label in labels if families[label] not in ("identity", "ffn")]
    plain = [label for label in labels if families[label] == "ffn"]
    # All that are not placed hold a mark; then each of them takes what was there, in its order.
    mark = ""
    chain = place(statements, Counts(placed, mark), len(placed) + len(plain))
    rest = iter(plain)
    found = (*(next(rest) if label == mark else label for label in chain), *skipped)
    for slot, label in enumerate(found):
        if not space.allowed[slot][space.labels.index(label)]:
            raise InvalidInput(f"their layout has {label!r} in slot {slot + 1}, where the space does not allow it")
    return found


def broken(statement: Statement, families: Sequence[str]) -> str | None:
    """How a layout contradicts a statement, for people; None: it does not. A ratio is rounded to whole blocks, so it is
    never said to be broken here.

    Position and spacing must lie on the stated side of what chance would leave; cuts and orders must hold for as many
    blocks as the statement says.

    Args:
        statement: that the layout was made for.
        families: of its slots; identity is a skipped one.
    """
    chain = [family for family in families if family != "identity"]
    places, n_blocks = [place for place, family in enumerate(chain) if family == statement.family], len(chain)
    if not places or statement.kind == "ratio":
        return None
    if statement.kind == "position":
        return _misplaced(statement, (sum(places) / len(places) + 0.5) / n_blocks)
    if statement.kind == "cut":
        room = 2 * n_blocks // 3
        ends = range(room) if statement.direction == "first" else range(n_blocks - room, n_blocks)
        share, needed = sum(place in ends for place in places) / len(places), _share(statement.at)
        if share < needed - _ROUNDING:
            held = f"{share:.0%} of {statement.family} in the {statement.direction} two thirds"
            return f"its layout has {held}, {needed:.0%} is stated"
        return None
    if statement.kind == "order":
        others = [place for place, family in enumerate(chain) if family == statement.other]
        return _disordered(statement, [one < other for one in places for other in others])
    return _misspaced(statement, [later - place for place, later in pairwise(places)])


def _misplaced(statement: Statement, at: float) -> str | None:
    wanted = 0.5 if statement.at is None else statement.at
    is_early = statement.direction == "early"
    if at < max(0.5, wanted + _ROUNDING) if is_early else at > min(0.5, wanted - _ROUNDING):
        return None
    return f"its layout has {statement.family} at {at:.2f} of the depth on average, which is not {statement.direction}"


def _disordered(statement: Statement, is_first: Sequence[bool]) -> str | None:
    """Given of each pair of blocks whether the family's comes first."""
    if not is_first:
        return None
    is_before = statement.direction == "before"
    share = sum(is_first) / len(is_first) if is_before else 1 - sum(is_first) / len(is_first)
    needed = _share(statement.at if is_before or statement.at is None else 1 - statement.at)
    if share >= needed - _ROUNDING:
        return None
    pairs = f"{statement.family} {statement.direction} {statement.other} in {share:.0%} of pairs"
    return f"its layout has {pairs}, {needed:.0%} is stated"


def _misspaced(statement: Statement, gaps: Sequence[int]) -> str | None:
    """By the widest gap, against what it is on average where blocks stand by chance, and what it can be at all."""
    if len(gaps) < 2:
        return None
    mean, widest = sum(gaps) / len(gaps), max(gaps)
    # Uniform spacings: the widest of k is H(k) = 1 + 1/2 + .. + 1/k times their mean; each gap is 1 at least.
    by_chance = 1 + (mean - 1) * sum(1 / number for number in range(1, len(gaps) + 1))
    if statement.direction == "even":
        broken, word = widest > max(by_chance, ceil(mean)), "even"
    else:
        broken, word = widest < min(by_chance, sum(gaps) - len(gaps) + 1), "in clusters"
    gap = f"the widest gap of {statement.family} {widest / mean:.1f} times the even one"
    return f"its layout has {gap}, which is not {word}" if broken else None


def _share(at: float | None) -> float:
    return 1.0 if at is None else at


def _pairs(statements: Sequence[Statement]) -> list[tuple[str, str]]:
    """Of each order, the family that comes first and the one behind it.

    Raises:
        InvalidInput: they go in a circle.
    """
    pairs = []
    for each in statements:
        if each.kind == "order" and each.other is not None:
            pairs.append((each.family, each.other) if each.direction == "before" else (each.other, each.family))
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for first, behind in pairs:
        sorter.add(behind, first)
    try:
        sorter.prepare()
    except CycleError as error:
        raise InvalidInput(f"no layout has the orders of all: {' before '.join(error.args[1])}") from None
    return pairs


def _in_order(families: dict[int, str], pairs: Sequence[tuple[str, str]]) -> dict[int, str]:
    """The families of slots with every pair in order; what is in order already stays where it is.

    Each pair is sorted within its own slots, which may undo another, so again until nothing moves. That ends: in any
    order of all families that keeps the pairs, each move brings a family that is nearer its beginning further forward.
    """
    while True:
        before = families
        for first, behind in pairs:
            slots = sorted(slot for slot, family in families.items() if family in (first, behind))
            n_first = sum(families[slot] == first for slot in slots)
            families = families | {slot: first if number < n_first else behind for number, slot in enumerate(slots)}
        if families == before:
            return families


def _targets(statements: Sequence[Statement], n: int, n_blocks: int) -> list[float]:
    """Where n blocks of a family should stand, shares of the depth: of n equal parts of its own, at the beginning of
    each; in the middle, where a mean place is to be kept."""
    by_kind = {each.kind: each for each in statements}
    first, last = 0.0, 1.0
    if "cut" in by_kind:  # as many whole blocks as the test counts
        room = 2 * n_blocks // 3 / n_blocks
        first, last = (0.0, room) if by_kind["cut"].direction == "first" else (1 - room, 1.0)
    position = by_kind["position"].at if "position" in by_kind else None
    if position is not None:
        middle = min(max(position, first), last)
        half = min(middle - first, last - middle)
        first, last = middle - half, middle + half
    if "spacing" in by_kind and by_kind["spacing"].direction == "clustered":  # two runs, at both ends of the part
        n_first = (n + 1) // 2
        return [first] * n_first + [max(first, last - (n - number) / n_blocks) for number in range(n_first, n)]
    inset = 0.0 if position is None else 0.5
    return [first + (number + inset) / n * (last - first) for number in range(n)]


def _apart(targets: Sequence[float], n_blocks: int) -> list[int]:
    """Different blocks, in order, as near to their targets as that leaves room for."""
    found: list[int] = []
    for target in targets:
        wanted = min(int(target * n_blocks + 1e-9), n_blocks - 1)  # a third of 12 is 4
        found.append(max(wanted, found[-1] + 1 if found else 0))
    latest = n_blocks - 1
    for index in reversed(range(len(found))):
        found[index] = min(found[index], latest)
        latest = found[index] - 1
    return found
