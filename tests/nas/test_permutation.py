"""Placements are counted exactly: against brute force, and p values are never too small under exchangeability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas import permutation
from nas.permutation import FAMILY, OTHER, SKIPPED, Stack, Statistic, null, placements, tails, values

CODES = {".": SKIPPED, "F": OTHER, "A": FAMILY}
STATISTICS: tuple[Statistic, ...] = ("ranks", "beyond", "gaps")


def stack(letters: str, groups: Sequence[int] | None = None) -> Stack:
    codes = np.array([CODES[letter] for letter in letters], np.int8)
    return Stack(codes, np.array(groups if groups is not None else [0] * len(letters), np.int64))


def orders(letters: str, groups: Sequence[int]) -> set[str]:
    """Every different string that trading places within groups gives, by brute force."""
    free = [slot for slot, group in enumerate(groups) if group != -1]
    found = set()
    for order in permutations(free):
        if all(groups[to] == groups[source] for to, source in zip(free, order, strict=True)):
            changed = list(letters)
            for to, source in zip(free, order, strict=True):
                changed[to] = letters[source]
            found.add("".join(changed))
    return found


def by_hand(statistic: Statistic, letters: str) -> int:
    chain = letters.replace(".", "")
    at = [place for place, letter in enumerate(chain) if letter == "A"]
    if statistic == "ranks":
        return sum(at)
    if statistic == "beyond":
        return sum(place >= 2 * len(chain) // 3 for place in at)
    gaps = [later - earlier for earlier, later in pairwise(at)]
    return sum(abs(gap * len(gaps) - sum(gaps)) for gap in gaps)


def inside(letters: str) -> list[int]:
    """Groups for spacing: only what lies between the first and the last A may move."""
    first, last = letters.index("A"), letters.rindex("A")
    return [0 if first < slot < last else -1 for slot in range(len(letters))]


def distribution(statistic: Statistic, letters: str, groups: Sequence[int]) -> dict[int, Fraction]:
    counts = Counter(by_hand(statistic, each) for each in orders(letters, groups))
    return {value: Fraction(count, counts.total()) for value, count in counts.items()}


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("letters", ["AFFAFA", "A.FAF.", "FAAAF", "AAFF.FA", "A", "AF", "FFFA", "AFAFAF."])
def test_the_distribution_of_a_seed_is_that_of_brute_force(statistic: Statistic, letters: str) -> None:
    groups = inside(letters) if statistic == "gaps" else [0] * len(letters)
    found = null(statistic, stack(letters, groups))
    assert found is not None
    expected = distribution(statistic, letters, groups)
    told = {found.first + index: chance for index, chance in enumerate(found.chances) if chance > 0}
    assert told == pytest.approx({value: float(chance) for value, chance in expected.items()}, abs=1e-12)


@pytest.mark.parametrize("statistic", ["ranks", "beyond"])
@pytest.mark.parametrize(
    ("letters", "groups"),
    [("AFFAFA", [0, 0, 1, 1, 1, 0]), ("A.FAF.", [0, 0, 1, 1, 1, 0]), ("AFAF", [-1, 0, 0, 0]), ("AFAF", [0, 1, 2, 3])],
    ids=["two groups", "skipped slots move too", "one stays", "none moves"],
)
def test_slots_of_other_groups_never_trade_places(statistic: Statistic, letters: str, groups: list[int]) -> None:
    found = null(statistic, stack(letters, groups))
    assert found is not None
    expected = distribution(statistic, letters, groups)
    told = {found.first + index: chance for index, chance in enumerate(found.chances) if chance > 0}
    assert told == pytest.approx({value: float(chance) for value, chance in expected.items()}, abs=1e-12)


@given(letters=st.text("AF.", min_size=1, max_size=6), groups=st.lists(st.integers(-1, 1), min_size=6, max_size=6))
def test_each_placement_comes_once(letters: str, groups: list[int]) -> None:
    one = stack(letters, groups[: len(letters)])
    found = ["".join(".FA"[code] for code in codes) for codes in placements(one)]
    assert sorted(found) == sorted(orders(letters, groups[: len(letters)]))


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize(
    "seeds", [["AFFA", "FAFA"], ["AAFFF", "FAF.A", "AFFFF"], ["AFAFA.", "AFFAA"]], ids=["2", "3", "other lengths"]
)
def test_the_sum_over_seeds_is_that_of_brute_force(statistic: Statistic, seeds: list[str]) -> None:
    groups = [inside(each) if statistic == "gaps" else [0] * len(each) for each in seeds]
    observed = sum(by_hand(statistic, each) for each in seeds)
    low = high = Fraction(0)
    each = (distribution(statistic, letters, group).items() for letters, group in zip(seeds, groups, strict=True))
    for combination in product(*each):
        chance = Fraction(1)
        for _, part in combination:
            chance *= part
        total = sum(value for value, _ in combination)
        low += chance * (total <= observed)
        high += chance * (total >= observed)
    found = tails(statistic, [stack(letters, group) for letters, group in zip(seeds, groups, strict=True)])
    assert (found.observed, found.n_draws) == (observed, None)
    assert (found.low, found.high) == pytest.approx((float(low), float(high)), abs=1e-12)
    assert found.both == pytest.approx(min(1, 2 * min(low, high)), abs=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_p_values_are_never_too_small(statistic: Statistic) -> None:
    """Over all placements of two seeds, each as likely: P(p <= x) <= x at every p value that occurs."""
    letters = ("AFAFFA", "AFFAA")
    groups = [inside(each) if statistic == "gaps" else [0] * len(each) for each in letters]
    found = []
    for pair in product(*(sorted(orders(each, group)) for each, group in zip(letters, groups, strict=True))):
        stacks = [stack(each, group) for each, group in zip(pair, groups, strict=True)]
        found.append(tails(statistic, stacks))
    for p in (np.array([each.low for each in found]), np.array([each.high for each in found])):
        assert all((p <= x + 1e-12).mean() <= x + 1e-12 for x in p)
    p = np.array([each.both for each in found])
    assert all((p <= x + 1e-12).mean() <= x + 1e-12 for x in p)


def test_drawn_placements_agree_with_counted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = [stack("AAFFAFFF"), stack("FAAFFFFA.")]
    exact = tails("ranks", seeds)
    monkeypatch.setattr(permutation, "_MOST_SUMS", 0)
    monkeypatch.setattr(permutation, "_MOST_PLACEMENTS", 0)
    drawn = tails("ranks", seeds)
    assert drawn.n_draws == permutation.N_DRAWS
    assert drawn == tails("ranks", seeds), "the draws have a seed"
    error = 4 * (0.25 / permutation.N_DRAWS) ** 0.5  # four standard errors of a share, at most
    assert (drawn.low, drawn.high) == pytest.approx((exact.low, exact.high), abs=error)


def test_too_many_placements_are_drawn_and_no_p_value_is_nothing() -> None:
    halves = [0] * 12 + [1] * 12
    seeds = [stack("AAAAAAFFFFFF" * 2, halves), stack("AAAAAA.FFFFF" * 2, halves)] * 3
    found = tails("ranks", seeds)
    assert found.n_draws == permutation.N_DRAWS
    assert found.low == 1 / (permutation.N_DRAWS + 1)


def test_a_deep_stack_is_still_counted() -> None:
    found = tails("ranks", [stack("A" * 12 + "F" * 84)] * 6)
    assert found.n_draws is None
    assert found.low == pytest.approx(permutation.rank_sums(96, 12).chances[0] ** 6)  # type: ignore[union-attr]
    assert tails("gaps", [stack("AFFA" * 8, inside("AFFA" * 8))] * 6).n_draws is None


def test_a_skipped_slot_changes_nothing_wherever_it_stands() -> None:
    for statistic in STATISTICS:
        one, other = (tails(statistic, [stack(each, inside(each))]) for each in ("AFFAFA..", ".AF.FAFA"))
        assert one == other


def test_values_are_of_every_row() -> None:
    codes = np.array([stack("AF.A").codes, stack("A.AF").codes])
    assert [values(statistic, codes).tolist() for statistic in STATISTICS] == [[2, 1], [1, 0], [0, 0]]
