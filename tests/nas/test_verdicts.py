"""A verdict follows from seeds, corrected p and retraining, and says why in one sentence."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from nas.confirmation import Confirmation, Difference, confirm
from nas.errors import InvalidInput
from nas.statement import Statement
from nas.statements import state
from nas.verdicts import confirmed, judge, worth_confirming
from tests.nas.test_statements import stacks

EARLY = "AAFFFFFF"


def judged(*seeds: str, kind: str = "position") -> Statement:
    (found,) = [each for each in judge(state(stacks(*seeds)), {"n_slots": 8}) if each.kind == kind]
    return found


def outcome(random: tuple[float, float] | None, parent: tuple[float, float] | None = (-0.1, 0.01)) -> Confirmation:
    placed, against = (None if ends is None else Difference(sum(ends) / 2, *ends) for ends in (random, parent))
    return Confirmation("AAFFFFFF", "bits per byte", (6, 7, 8), 5 if random else 0, placed, against)


def test_a_p_value_above_the_level_is_not_supported() -> None:
    found = judged("AFFFFFFA", "FFAFFFAF", "FFFAAFFF")
    assert (found.verdict, found.found_at) == ("not supported", {"n_slots": 8})
    assert found.reason == (
        "blocks placed by chance would look like this with p = 1 after correction for 2 tests, above 0.05 (3 seeds)"
    )
    assert judged("AFFFFFFA").reason.endswith("(one seed)")
    assert not worth_confirming(found)


def test_under_five_seeds_nothing_is_better_than_suggested() -> None:
    for n_seeds in (2, 3, 4):
        found = judged(*[EARLY] * n_seeds)
        assert found.verdict == "suggested"
        assert found.reason.endswith(f", but {n_seeds} seeds alone cannot support a rule; it takes 5 at least")
        assert not worth_confirming(found)
        assert confirmed(found, outcome((-0.2, -0.1))).verdict == "suggested"


def test_from_five_seeds_on_retraining_is_what_is_missing() -> None:
    found = judged(*[EARLY] * 5)
    assert (found.verdict, worth_confirming(found)) == ("suggested", True)
    assert found.reason == (
        "blocks placed by chance would hardly look like this (p = 2.3e-07 after correction for 2 tests), and its "
        "layout has not been retrained against others of the same cost"
    )


@pytest.mark.parametrize(
    ("random", "parent", "verdict", "reason"),
    [
        (
            (-0.2, -0.1),
            (-0.1, 0.01),
            "supported",
            "is better than random placements of the same blocks by 0.100 to 0.200 bits per byte and no worse than the "
            "parent by more than 0.02",
        ),
        ((-0.2, -0.1), None, "supported", "by 0.100 to 0.200 bits per byte"),
        (
            (-0.2, 0.1),
            (-0.1, 0.01),
            "suggested",
            "but retrained its layout cannot be told from chance: -0.200 to +0.100 bits per byte against random "
            "placements of the same blocks on 3 fresh seeds",
        ),
        ((0.1, 0.2), (-0.1, 0.01), "not supported", "on 3 fresh seeds"),
        (None, (-0.1, 0.01), "suggested", "too few other placements to hold its layout against"),
        ((-0.2, -0.1), (-0.1, 0.03), "suggested", "its layout may be worse than the parent: -0.100 to +0.030 bits per"),
        ((-0.2, -0.1), (0.03, 0.1), "not supported", "is worse than the parent: +0.030 to +0.100 bits per byte on 3"),
    ],
    ids=[
        *("confirmed", "without a parent", "cannot tell", "worse", "no placements"),
        *("perhaps worse than the parent", "worse than parent"),
    ],
)
def test_retraining_decides_about_a_placement(random: Any, parent: Any, verdict: str, reason: str) -> None:
    found = confirmed(judged(*[EARLY] * 5), outcome(random, parent))
    assert found.verdict == verdict
    assert reason in found.reason
    assert found.reason.startswith("blocks placed by chance would hardly look like this (p = 2.3e-07 after correction")
    assert json.loads(json.dumps(found.confirmation)) == found.confirmation


@pytest.mark.parametrize(
    ("seeds", "verdict", "reason"),
    [
        ([EARLY], "not supported", "one seed alone has no interval"),
        (
            ["AAAF", "FFFF"],
            "not supported",
            "the seeds differ too much: the 95% interval goes from 1.0 : 1 to no such block",
        ),
        ([EARLY] * 3, "suggested", "the 95% interval over 3 seeds is 2.9 to 6.2 : 1, but 3 seeds alone cannot"),
        ([EARLY] * 6, "suggested", "seeds is 3.5 to 4.7 : 1, and its layout has not been retrained against others"),
    ],
    ids=["one seed", "they differ", "few", "enough"],
)
def test_a_ratio_is_as_good_as_its_interval(seeds: list[str], verdict: str, reason: str) -> None:
    found = judged(*seeds, kind="ratio")
    assert found.verdict == verdict
    assert reason in found.reason


@pytest.mark.parametrize(
    ("random", "parent", "verdict", "reason"),
    [
        ((-0.1, 0.1), (-0.1, 0.01), "supported", "is no worse than the parent by more than 0.02 bits per byte"),
        (None, (-0.1, 0.01), "supported", "is no worse than the parent by more than 0.02 bits per byte"),
        ((-0.2, -0.1), None, "suggested", "and there is no interleaved parent to hold its layout against"),
        ((-0.2, -0.1), (0.0, 0.1), "suggested", "may be worse than the parent"),
    ],
    ids=["does for the parent", "no placements", "no parent", "cannot tell"],
)
def test_a_ratio_is_confirmed_by_the_parent(random: Any, parent: Any, verdict: str, reason: str) -> None:
    found = confirmed(judged(*[EARLY] * 6, kind="ratio"), outcome(random, parent))
    assert found.verdict == verdict
    assert reason in found.reason


# -- the comparison ---------------------------------------------------------------------------------------------------


def compared(rule: Any, random: Any, parent: Any = None, n_seeds: int = 3) -> Confirmation:
    return confirm(rule, random, parent, layout="AF", unit="bits per byte", seeds=range(10, 10 + n_seeds))


def test_the_interval_over_seeds_is_students() -> None:
    found = compared([1.0, 1.1, 1.2], [[2.0, 2.1, 2.2]] * 3, [1.0, 1.2, 1.4])
    assert found.random == Difference(pytest.approx(-1), pytest.approx(-1), pytest.approx(-1))
    assert found.parent is not None
    half = 4.302653 * 0.1 / 3**0.5
    assert (found.parent.low, found.parent.high) == pytest.approx((-0.1 - half, -0.1 + half), rel=1e-5)
    assert (found.placement, found.against_parent) == ("better", "cannot tell")
    assert compared([1.0, 1.1, 1.2], [[2.0, 2.1, 2.2]] * 3).against_parent is None
    alone = compared([1.0, 1.1, 1.2], None, [1.0, 1.2, 1.4])
    assert (alone.random, alone.n_random, alone.placement, alone.parent) == (None, 0, "cannot tell", found.parent)


def test_placements_are_a_sample_as_seeds_are() -> None:
    same = compared([1.0] * 3, [[1.2] * 3, [1.3] * 3, [1.4] * 3])
    assert same.random is not None
    half = 4.302653 * 0.1 / 3**0.5
    assert (same.random.mean, same.random.high) == pytest.approx((-0.3, -0.3 + half), rel=1e-5)


@pytest.mark.parametrize(("n_seeds", "n_random"), [(3, 3), (5, 5), (8, 5)])
def test_an_interval_holds_the_truth_in_95_of_100(n_seeds: int, n_random: int) -> None:
    generator = np.random.default_rng(0)
    held = []
    for _ in range(1000):
        placements, seeds = 0.05 * generator.normal(size=(n_random, 1)), 0.02 * generator.normal(size=(2, n_seeds))
        noise = 0.02 * generator.normal(size=(n_random, n_seeds))
        found = compared(seeds[0] - 0.1, placements + seeds[1] + noise, n_seeds=n_seeds).random
        assert found is not None
        held.append(found.low <= -0.1 <= found.high)
    assert np.mean(held) >= 0.95 - 3 * (0.05 * 0.95 / 1000) ** 0.5  # three standard errors of a share


@pytest.mark.parametrize(
    ("rule", "random", "message"),
    [
        ([1.0, 1.0], [[1.0] * 3] * 3, "losses of 3 seeds must be (3,) each and do not pair up"),
        (
            [1.0] * 3,
            [[1.0] * 3] * 2,
            "a confirmation has 3 seeds and 2 random placements; it needs 3 of each at least",
        ),
        ([1.0, 1.0, float("nan")], [[1.0] * 3] * 3, "a test loss is not a number; one of the trainings has diverged"),
    ],
    ids=["shapes", "too few", "not a number"],
)
def test_what_cannot_be_compared_is_refused(rule: Any, random: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        compared(rule, random)
    assert str(refused.value) == message
