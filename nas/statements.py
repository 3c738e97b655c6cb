"""What the derived stacks of several seeds say about each family of mixers, as statements with a p value.

Each seed's own derived stack is looked at, never averaged alpha: equivalent solutions sit in different slots. Kinds:
position (earlier or later than chance), cut (in the first or last part alone), spacing (even, or in clusters, between
the family's first and last block), order (one family before another), ratio (all blocks : the family's blocks). All but
ratio are tests by exact permutation (nas.permutation), corrected over all of a report by Holm 1979; a ratio is an
estimate with a t interval. Verdicts: nas.verdicts. Ours. L slots, S seeds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.permutation import FAMILY, OTHER, SKIPPED, Stack, Statistic, null, tails
from nas.rules import slots_text
from nas.statement import Kind, Statement
from nas.student import critical

RANGE_SEEDS = 6  # from which on a ratio also tells its range


def exchangeable(space: SearchSpace) -> tuple[int, ...]:
    """A number for each slot, (L,): only slots of equal numbers may trade places.

    Slots that may hold other candidates, or that began nearer to another one, differ before any training.
    """
    allowed = [tuple(row) for row in space.allowed]
    present = [choice.present if space.layout_prior else None for choice in space.layout] or [None] * space.n_slots
    kinds = list(zip(allowed, present, strict=True))
    return tuple(kinds.index(each) for each in kinds)


def countable(space: SearchSpace) -> frozenset[str]:
    """Families of which a stack may have more or fewer blocks: the layout says so of all others."""
    families = [candidate.family for candidate in space.candidates]
    rows = [{family for family, may in zip(families, row, strict=True) if may} for row in space.allowed]
    return frozenset(family for row in rows if len(row) > 1 for family in row)


def found_at(request: SearchRequest) -> dict[str, Any]:
    """Where the statements of a search hold, if they do: JSON."""
    return {
        "n_slots": request.space.n_slots,
        "d_model": request.space.d_model,
        "train_length": request.task.train_length,
        "dataset": request.task.dataset,
        "n_steps": request.method.n_steps,
        "budget": request.budget.model_dump(mode="json"),
        "layout": _restrictions(request.space),
    }


def _restrictions(space: SearchSpace) -> str | None:
    """What the user fixed or forbade, on one line."""
    slots: dict[str, list[int]] = {}
    for slot, choice in enumerate(space.layout):
        if choice.fixed or choice.forbidden:
            told = f"{choice.present} alone" if choice.fixed else f"no {' or '.join(choice.forbidden)}"
            slots.setdefault(told, []).append(slot)
    return "; ".join(f"{told} in {slots_text(where)}" for told, where in slots.items()) or None


def state(
    seeds: Sequence[Sequence[str]], groups: Sequence[int] | None = None, counted: Collection[str] | None = None
) -> list[Statement]:
    """All statements about the stacks of several seeds, tests corrected, without a verdict yet.

    Args:
        seeds: the family of each slot, seed by seed, (S, L); "identity" is a skipped slot.
        groups: (L,) as from `exchangeable`; None: every slot may trade places with every other.
        counted: families as from `countable`, of which a ratio is stated; None: all.

    Raises:
        InvalidInput: there is no seed, or seeds have different depths.
    """
    if not seeds:
        raise InvalidInput("statements need at least one derived architecture; there is none")
    depths = sorted({len(each) for each in seeds})
    if len(depths) > 1:
        raise InvalidInput(f"architectures of {depths[0]} and of {depths[-1]} slots have no rule in common")
    slots = np.asarray(groups if groups is not None else [0] * depths[0], np.int64)
    families = sorted({family for seed in seeds for family in seed} - {"identity", "ffn"})
    found = [_ratio(seeds, family) for family in families if counted is None or family in counted]
    found += [kind(seeds, family, slots) for family in families for kind in (_position, _cut, _spacing)]
    found += [_order(seeds, one, two, slots) for i, one in enumerate(families) for two in families[i + 1 :]]
    told = [each for each in found if each is not None]
    tested = [each for each in told if each.p is not None]
    corrected = iter(holm([each.p for each in tested if each.p is not None]))
    return [
        replace(each, n_tests=len(tested), p_corrected=None if each.p is None else next(corrected)) for each in told
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected for all of them, in their order: at 0.05 one is false in at most 5% (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = least
    return corrected


def ratio_interval(shares: Sequence[float], n_blocks: Sequence[int]) -> tuple[float, float]:
    """95% t interval of the mean share of a family's blocks over the seeds, at least 2; not cut off at 0 and 1.

    A count is whole, so seeds that agree are not known to agree beyond half a block: the variance is at least that of
    rounding, 1/12 of a block squared. Without it, three equal seeds would have an interval of width 0.
    """
    rounding = float(np.mean([1 / (12 * n**2) for n in n_blocks]))
    variance = max(float(np.var(shares, ddof=1)), rounding)
    half = critical(len(shares) - 1) * sqrt(variance / len(shares))
    mean = float(np.mean(shares))
    return mean - half, mean + half


def _ratio(seeds: Sequence[Sequence[str]], family: str) -> Statement | None:
    counts = [(seed.count(family), len(seed) - seed.count("identity")) for seed in map(list, seeds)]
    told = [(k, n) for k, n in counts if n]
    shares = [k / n for k, n in told]
    mean = float(np.mean(shares))
    low = high = None
    if len(told) > 1:
        least, most = ratio_interval(shares, [n for _, n in told])
        low, high = 1 / min(1.0, most), 1 / least if least > 0 else None
    ratios = [n / k if k else None for k, n in counts]
    known = [each for each in ratios if each is not None]
    has_range = len(told) >= RANGE_SEEDS and len(known) == len(told)
    some = "every block" if mean == 1 else f"one block in {1 / mean:.1f}"
    return Statement(
        kind="ratio",
        family=family,
        statement=f"{some} is {family} (all blocks : {family} blocks {1 / mean:.1f} : 1)",
        at=1 / mean,
        statistic=mean,
        low=low,
        high=high,
        range_low=min(known) if has_range else None,
        range_high=max(known) if has_range else None,
        n_seeds=len(told),
        by_seed=tuple(ratios),
    )


def _position(seeds: Sequence[Sequence[str]], family: str, groups: NDArray[np.int64]) -> Statement | None:
    shares = [(places.mean() + 0.5) / n if len(places) else None for places, n in _chains(seeds, family)]
    stacks = [_stack(seed, family, groups) for seed in seeds]
    test = _test("ranks", stacks, shares)
    if test is None:
        return None
    at = _mean(test.shares)
    direction, told = ("early", "earlier") if test.low <= test.high else ("late", "later")
    text = f"{family} stands {told} than chance would place it, at {at:.2f} of the depth on average (0: its beginning)"
    return _statement("position", family, direction, at, text, test)


def _cut(seeds: Sequence[Sequence[str]], family: str, groups: NDArray[np.int64]) -> Statement | None:
    """The paper's cut, two thirds, from either end. One block elsewhere does not undo it, as it would a sharper cut."""
    chains = _chains(seeds, family)
    forwards = [_stack(seed, family, groups) for seed in seeds]
    backwards = [Stack(each.codes[::-1], each.groups[::-1]) for each in forwards]
    firsts = [float((places < 2 * n // 3).mean()) if len(places) else None for places, n in chains]
    lasts = [float((places >= n - 2 * n // 3).mean()) if len(places) else None for places, n in chains]
    first, last = _test("beyond", forwards, firsts), _test("beyond", backwards, lasts)
    if first is None or last is None:
        return None
    direction, test = ("first", first) if first.low <= last.low else ("last", last)
    at = _mean(test.shares)
    text = f"{family} keeps to the {direction} two thirds of the blocks, with {100 * at:.0f}% of its own"
    return _statement("cut", family, direction, at, text, replace(test, p=min(1.0, 2 * test.low)))  # of two directions


def _spacing(seeds: Sequence[Sequence[str]], family: str, groups: NDArray[np.int64]) -> Statement | None:
    """Given where the family's first and last block stand, which position and cut are about."""
    stacks = [_stack(seed, family, groups) for seed in seeds]
    inside = []
    for each in stacks:
        at = np.flatnonzero(each.codes == FAMILY)
        moves = np.zeros(len(each.codes), np.bool_)
        if len(at):
            moves[at[0] + 1 : at[-1]] = True
        inside.append(Stack(each.codes, np.where(moves, each.groups, -1)))
    gaps = [np.diff(places) for places, _ in _chains(seeds, family)]
    # Widest gap against the even one: 1 where the gaps are equal.
    shares = [float(each.max() / each.mean()) if len(each) > 1 else None for each in gaps]
    test = _test("gaps", inside, shares)
    if test is None:
        return None
    even = test.low <= test.high
    told = "evenly spaced" if even else "in clusters"
    text = f"between its first and its last block, {family} stands {told}"
    return _statement("spacing", family, "even" if even else "clustered", _mean(test.shares), text, test)


def _order(seeds: Sequence[Sequence[str]], one: str, two: str, groups: NDArray[np.int64]) -> Statement | None:
    """Given which slots the two families hold, which the others are about."""
    shares = []
    for seed in seeds:
        ones, twos = ([slot for slot, family in enumerate(seed) if family == name] for name in (one, two))
        pairs = [first < second for first in ones for second in twos]
        shares.append(sum(pairs) / len(pairs) if pairs else None)
    test = _test("ranks", [_pair(seed, one, two, groups) for seed in seeds], shares)
    if test is None:
        return None
    before = test.low <= test.high
    at = _mean(test.shares)
    text = f"{one} stands {'before' if before else 'after'} {two}, in {100 * (at if before else 1 - at):.0f}% of pairs"
    return replace(_statement("order", one, "before" if before else "after", at, text, test), other=two)


@dataclass(frozen=True)
class _Test:
    low: float
    high: float
    p: float
    n_draws: int | None
    statistic: float
    shares: tuple[float | None, ...]


def _test(statistic: Statistic, stacks: Sequence[Stack], shares: Sequence[float | None]) -> _Test | None:
    """Over the seeds in which anything could have come out otherwise; None where there is none."""
    telling = [share is not None and _varies(statistic, stack) for stack, share in zip(stacks, shares, strict=True)]
    chosen = [stack for stack, tells in zip(stacks, telling, strict=True) if tells]
    if not chosen:
        return None
    found = tails(statistic, chosen)
    told = tuple(share if tells else None for share, tells in zip(shares, telling, strict=True))
    return _Test(found.low, found.high, found.both, found.n_draws, found.observed / len(chosen), told)


def _varies(statistic: Statistic, stack: Stack) -> bool:
    known = null(statistic, stack)
    return known is None or int((known.chances > 0).sum()) > 1


def _statement(kind: Kind, family: str, direction: str, at: float, text: str, test: _Test) -> Statement:
    return Statement(
        kind=kind,
        family=family,
        statement=text,
        direction=direction,
        at=float(at),
        statistic=test.statistic,
        p=test.p,
        n_draws=test.n_draws,
        n_seeds=sum(share is not None for share in test.shares),
        by_seed=tuple(None if share is None else float(share) for share in test.shares),
    )


def _chains(seeds: Sequence[Sequence[str]], family: str) -> list[tuple[NDArray[np.int64], int]]:
    """Of each seed: the family's places in the chain of blocks, and the length of the chain."""
    chains = [np.array([each for each in seed if each != "identity"]) for seed in seeds]
    return [(np.flatnonzero(chain == family), len(chain)) for chain in chains]


def _stack(seed: Sequence[str], family: str, groups: NDArray[np.int64]) -> Stack:
    codes = [SKIPPED if each == "identity" else FAMILY if each == family else OTHER for each in seed]
    return Stack(np.array(codes, np.int8), groups)


def _pair(seed: Sequence[str], one: str, two: str, groups: NDArray[np.int64]) -> Stack:
    """The blocks of both alone trade places; all others stay, and count as skipped."""
    codes = np.array([FAMILY if each == one else OTHER if each == two else SKIPPED for each in seed], np.int8)
    return Stack(codes, np.where(codes > SKIPPED, groups, -1))


def _mean(shares: Sequence[float | None]) -> float:
    return float(np.mean([share for share in shares if share is not None]))
