"""Exact search by labels: all ways through the slots that can still be among the best, and no others.

Ours, of known parts. With multipliers y >= 0 of the rows, a path's score is at most its Lagrangian value, the sum of
score - y . row plus y . limit, and two passes over the slots tell the best value of any path through each candidate of
each slot. Candidates that lie further behind the best than `gap` cannot be in an answer that scores within `gap` of
that bound; what is left is a few candidates in a few slots, through which every path is followed by dynamic
programming. Two paths of the same word and the same counts of candidates go on alike, so the better one stands for
both; of those of the same counts and state the k best words are kept, since whatever follows, these k stay ahead.
An answer is proven once its score is within `gap` of the bound; until then `gap` grows.

Where very many tie, labels of different counts are too many. With the cost inside the score, and no more than one row,
a label that k others of its state beat in score and use can be in no answer either (`_undominated`).

Words and counts are compared by 64-bit hashes: among 10^5 labels two different ones meet with a chance of 10^-9.
L slots, K candidates, R rows, S states, N labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nas.exact.clock import left_s
from nas.exact.problem import SKIPPED, Floats, Problem

MOST_LABELS = 60_000  # at one slot; some 10 MB, and half a second a slot
_MOST_TRIED = 8 * MOST_LABELS  # before those that go on alike are merged
_ROUNDING = 4e-9  # nats: answers that tie with the best within 1e-9 must be among the labels too
_FIRST, _WIDER = 24, 3  # candidates beyond one a slot in the first round, and by how many times more in the next

Hashes = NDArray[np.uint64]


class TooMany(Exception):
    """More labels than are worth following; another way must be found."""


@dataclass(frozen=True)
class _Ahead:
    """What the rest of the slots can give, whatever came before.

    Args:
        values: score - y . row, (L, K); -inf where a candidate may not stand.
        best: largest sum of values from a slot's state on, (L + 1, S + 1); the last state is the forbidden one.
        behind: how far the best path through each candidate lies behind the best of all, (L, K).
    """

    values: Floats
    best: Floats
    behind: Floats

    @classmethod
    def of(cls, problem: Problem, multipliers: Floats) -> _Ahead:
        n_slots, n_candidates = problem.scores.shape
        n_states = len(problem.steps)
        values = problem.scores - multipliers @ problem.rows
        best = np.full((n_slots + 1, n_states + 1), -np.inf)
        best[n_slots, :n_states] = 0.0
        through = np.full((n_slots, n_states, n_candidates), -np.inf)
        for slot in range(n_slots - 1, -1, -1):
            through[slot] = values[slot] + best[slot + 1][problem.steps]
            best[slot, :n_states] = through[slot].max(axis=1)
        before = np.full((n_slots, n_states), -np.inf)
        before[0, 0] = 0.0
        into = [np.nonzero(problem.steps == state) for state in range(n_states)]
        for slot in range(n_slots - 1):
            for state, (origin, candidate) in enumerate(into):
                if len(origin):
                    before[slot + 1, state] = (before[slot, origin] + values[slot, candidate]).max()
        reach = (before[:, :, None] + through).max(axis=1)
        behind = np.full(values.shape, np.inf)
        behind[np.isfinite(reach)] = best[0, 0] - reach[np.isfinite(reach)]
        return cls(values, best, behind)


def best_words(problem: Problem, multipliers: Floats, k: int, *, by_score: bool = False) -> list[tuple[int, ...]]:
    """The k best of all networks, or all there are, each by its best choices, in no order.

    Args:
        problem: to solve.
        multipliers: of the rows, (R,); any that are not negative give the right answer, good ones soon.
        k: how many, at least 1; others that tie with the last of them, at another cost, are there too.
        by_score: the score alone counts, so that such others are left out; only with one row at most, and candidates
            that are the same block adding the same to it.

    Raises:
        TooMany: there are more than MOST_LABELS labels in a slot.
        InvalidInput: no time is left (nas.exact.clock).
    """
    ahead = _Ahead.of(problem, multipliers)
    if not np.isfinite(ahead.best[0, 0]):
        return []
    bound = ahead.best[0, 0] + float(multipliers @ (problem.limits + problem.slack))
    losses = np.sort(ahead.behind[np.isfinite(ahead.behind)])
    allowed = len(problem.scores) + _FIRST
    while True:
        whole = allowed >= len(losses)
        gap = np.inf if whole else float(losses[allowed])
        found = _follow(problem, ahead, multipliers, gap + _ROUNDING, k, by_score)
        reached = _kth(problem, found, k)
        if whole or (reached is not None and reached >= bound - gap):
            return found
        if reached is not None:  # as far below the bound as the answer can be
            return _follow(problem, ahead, multipliers, bound - reached + _ROUNDING, k, by_score)
        allowed = len(problem.scores) + _WIDER * (allowed - len(problem.scores))


def _kth(problem: Problem, found: list[tuple[int, ...]], k: int) -> float | None:
    """Score of the k-th best word; None: there are fewer."""
    best: dict[tuple[int, ...], float] = {}
    for choices in found:
        word, score = problem.word(choices), problem.score(choices)
        best[word] = max(score, best.get(word, -np.inf))
    return sorted(best.values(), reverse=True)[k - 1] if len(best) >= k else None


def _follow(
    problem: Problem, ahead: _Ahead, multipliers: Floats, gap: float, k: int, by_score: bool
) -> list[tuple[int, ...]]:
    """Every path that is not behind others and whose Lagrangian value is within `gap` of the best."""
    n_slots, _ = problem.scores.shape
    candidates = [np.flatnonzero(np.isfinite(row) & (row <= gap)) for row in ahead.behind]
    rooms = problem.limits + problem.slack
    least = np.zeros((n_slots + 1, len(rooms)))
    for slot in range(n_slots - 1, -1, -1):
        least[slot] = least[slot + 1] + problem.rows[:, candidates[slot]].min(axis=1, initial=np.inf)
    counted, coded = _hashes(problem)
    top = ahead.best[0, 0]

    value, used = np.zeros(1), np.zeros((1, len(rooms)))
    state, count, word = np.zeros(1, np.int64), np.zeros(1, np.uint64), np.zeros(1, np.uint64)
    trail: list[tuple[NDArray[np.int32], NDArray[np.int8]]] = []
    for slot, options in enumerate(candidates):
        left_s()
        if len(value) * len(options) > _MOST_TRIED:
            raise TooMany
        parent = np.repeat(np.arange(len(value), dtype=np.int32), len(options))
        taken = np.tile(options, len(value))
        next_state = problem.steps[state[parent], taken]
        next_value = value[parent] + ahead.values[slot, taken]
        next_used = used[parent] + problem.rows[:, taken].T
        reach = next_value + ahead.best[slot + 1, next_state]
        keep = np.isfinite(reach) & (reach >= top - gap)
        keep &= (next_used + least[slot + 1] <= rooms).all(axis=1)
        parent, taken, state = parent[keep], taken[keep], next_state[keep]
        value, used = next_value[keep], next_used[keep]
        count = count[parent] + counted[taken]
        word = np.where(coded[taken] == SKIPPED, word[parent], _mixed(word[parent] ^ coded[taken]))
        if len(options) > 1 and len(value) > 1:
            first = _leaders(value, state, count, word, k)
            if by_score:
                # Of a state, the Lagrangian value is the score but for what is used, which has its price in it.
                score = value[first] + used[first] @ multipliers
                first = first[_undominated(score, used[first].sum(axis=1), state[first], k)]
            parent, taken, value, used = parent[first], taken[first], value[first], used[first]
            state, count, word = state[first], count[first], word[first]
            if len(value) > MOST_LABELS:
                raise TooMany
        if not len(value):
            return []
        trail.append((parent, taken.astype(np.int8)))
    return _choices(trail)


def _leaders(value: Floats, state: NDArray[np.int64], count: Hashes, word: Hashes, k: int) -> NDArray[np.int64]:
    """Which labels stay, in their order: of each word its best way, then of each count and state the k best words."""
    stays = np.arange(len(value))
    if k > 1:
        order = np.lexsort((-value, word, count))
        stays = order[_starts(count[order], word[order])]
    order = stays[np.lexsort((-value[stays], state[stays], count[stays]))]
    starts = np.flatnonzero(_starts(count[order], state[order]))
    sizes = np.diff(np.append(starts, len(order)))
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    return np.sort(order[rank < k])


def _undominated(score: Floats, used: Floats, state: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Labels that fewer than k others of their state beat in score while using no more, and perhaps some others.

    In k layers: behind a layer of those that no other beats, each that is left is beaten by one of that layer.
    """
    kept = []
    for each in np.unique(state):
        left = np.flatnonzero(state == each)
        left = left[np.lexsort((-score[left], used[left]))]
        for _ in range(k):
            best = np.maximum.accumulate(np.append(-np.inf, score[left]))[:-1]
            leads = score[left] > best
            kept.append(left[leads])
            left = left[~leads]
    return np.sort(np.concatenate(kept))


def _starts(*columns: NDArray[np.int64] | Hashes) -> NDArray[np.bool_]:
    """Where a row differs from the one before it."""
    differs = np.ones(len(columns[0]), np.bool_)
    differs[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return differs


def _choices(trail: list[tuple[NDArray[np.int32], NDArray[np.int8]]]) -> list[tuple[int, ...]]:
    """Each last label's candidates, slot by slot."""
    at = np.arange(len(trail[-1][0]), dtype=np.int32)
    back = []
    for parent, taken in reversed(trail):
        back.append(taken[at])
        at = parent[at]
    return [tuple(int(choice) for choice in path) for path in np.stack(back[::-1], axis=1)]


def _hashes(problem: Problem) -> tuple[Hashes, Hashes]:
    """A number for each candidate to count it by, (K,), and one for its code, SKIPPED for a skipped slot, (K,).

    Candidates that add the same to every row and to the cost count as one.
    """
    columns = np.vstack([problem.rows, problem.costs[None]])
    _, kinds = np.unique(columns, axis=1, return_inverse=True)
    counted = _mixed(np.asarray(kinds, np.uint64).reshape(-1) + np.uint64(1))
    codes = np.asarray(problem.codes, np.uint64)
    return counted, np.where(codes == SKIPPED, np.uint64(SKIPPED), _mixed(codes + np.uint64(1 << 32)))


def _mixed(numbers: Hashes) -> Hashes:
    """Steele et al. 2014, SplitMix64: every bit of a number changes half of the bits of the result."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
