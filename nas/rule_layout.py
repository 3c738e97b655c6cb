"""The layout that statements about several families make together: how many blocks of each, and where.

Position and cut say in which part of the depth a family stands, spacing how it lies there, order which of two families
comes first. What nothing is said of is spread evenly over the whole depth. Ours; that such a layout is any good is what
retraining it may show. N blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.statement import Statement

_THIRD = 1 / 3


@dataclass(frozen=True)
class Counts:
    """The blocks of a layout: label and family of each that is placed, and the label of all others."""

    placed: Sequence[tuple[str, str]]
    other: str


def place(statements: Sequence[Statement], counts: Counts, n_blocks: int) -> tuple[str, ...]:
    """The label of each block, (N,).

    Raises:
        InvalidInput: more blocks are to be placed than there are.
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
    families = dict(zip(_apart([target for target, _ in wanted], n_blocks), [f for _, f in wanted], strict=True))
    for each in statements:
        if each.kind == "order" and each.other is not None:
            pair = (each.family, each.other) if each.direction == "before" else (each.other, each.family)
            slots = sorted(slot for slot, family in families.items() if family in pair)
            n_first = sum(families[slot] == pair[0] for slot in slots)
            families |= {slot: pair[0] if number < n_first else pair[1] for number, slot in enumerate(slots)}
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
            raise InvalidInput(f"their layout has {label!r} in slot {slot}, where the space does not allow it")
    return found


def _targets(statements: Sequence[Statement], n: int, n_blocks: int) -> list[float]:
    """Where n blocks of a family should stand, shares of the depth: of n equal parts of its own, at the beginning of
    each; in the middle, where a mean place is to be kept."""
    by_kind = {each.kind: each for each in statements}
    first, last = 0.0, 1.0
    if "cut" in by_kind:
        first, last = (0.0, 2 * _THIRD) if by_kind["cut"].direction == "first" else (_THIRD, 1.0)
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
