"""The PAR rule generator: par-search.md section 9, items 24-27."""

from fractions import Fraction
from itertools import pairwise

import pytest

from nas.errors import InvalidInput
from nas.placement import Spacing, attention_positions

# par-search.md section 5.3: N, p, uniform positions, stride positions, uniform layout (s attention, f FFN)
TABLE = [
    (32, 5, "0,4,8,12,16,20", "0,4,8,12,16,20", "sfffsfffsfffsfffsfffsfffffffffff"),
    (24, 5, "0,5,10,15", "0,5,10,15", "sffffsffffsffffsffffffff"),
    (24, 4, "0,3,6,9,12,15", "0,3,6,9,12,15", "sffsffsffsffsffsffffffff"),
    (24, 3, "0,2,4,6,8,10,12,15", "0,2,4,6,8,10,12,14", "sfsfsfsfsfsfsffsffffffff"),
    (36, 5, "0,3,7,11,15,19,23", "0,3,6,9,12,15,18", "sffsfffsfffsfffsfffsfffsffffffffffff"),
    (32, 4, "0,2,5,8,11,14,17,20", "0,2,4,6,8,10,12,14", "sfsffsffsffsffsffsffsfffffffffff"),
    (32, 3, "0,2,4,6,8,11,13,15,17,20", "0,2,4,6,8,10,12,14,16,18", "sfsfsfsfsffsfsfsfsffsfffffffffff"),
    (48, 5, "0,3,7,11,15,19,23,27,31", "0,3,6,9,12,15,18,21,24", "sffsfffsfffsfffsfffsfffsfffsfffsffffffffffffffff"),
    (12, 3, "0,2,4,7", "0,2,4,6", "sfsfsffsffff"),
    (6, 3, "0,3", "0,3", "sffsff"),
]


@pytest.mark.parametrize(("n", "p", "uniform", "stride", "layout"), TABLE, ids=[f"{n}:{p}" for n, p, *_ in TABLE])
def test_table_of_layouts(n: int, p: int, uniform: str, stride: str, layout: str) -> None:
    positions = attention_positions(n, p)
    assert ",".join(map(str, positions)) == uniform
    assert ",".join(map(str, attention_positions(n, p, spacing="stride"))) == stride
    assert "".join("s" if index in positions else "f" for index in range(n)) == layout


@pytest.mark.parametrize("spacing", ["uniform", "stride"])
def test_properties_hold_at_every_depth_and_ratio(spacing: Spacing) -> None:
    for n in range(3, 97):
        for p in range(2, n + 1):
            positions = attention_positions(n, p, spacing=spacing)
            gaps = {later - earlier for earlier, later in pairwise(positions)}
            last_allowed = 2 * n // 3 - 1
            assert len(positions) == n // p
            assert positions[0] == 0
            assert all(gap > 0 for gap in gaps)
            assert positions[-1] <= last_allowed
            if spacing == "uniform":
                assert len(positions) < 2 or positions[-1] == last_allowed
                assert not gaps or max(gaps) - min(gaps) <= 1


def test_main_case_has_five_eighths_fewer_attention_blocks_and_the_papers_sizes() -> None:
    attention, ffn = 5 * 512 * 512 + 2 * 512, 2 * 512 * 2048 + 2048 + 512 + 2 * 512
    n_attention = len(attention_positions(32, 5))
    assert 1 - n_attention / 16 == 0.625
    assert n_attention * attention + (32 - n_attention) * ffn == 62_489_600
    assert 16 * attention + 16 * ffn == 54_599_680


def test_a_ratio_may_be_a_fraction() -> None:
    assert len(attention_positions(32, Fraction(9, 2))) == 7


@pytest.mark.parametrize(
    ("n", "p", "message"),
    [
        (0, 5, "n_blocks is 0; it must be at least 1"),
        (-3, 5, "n_blocks is -3; it must be at least 1"),
        (8, 0, "ratio is 0; it must be positive"),
        (8, 9, "ratio 9 leaves no attention in 8 blocks; at most 8 is possible"),
        (32, Fraction(7, 5), "ratio 7/5 asks for 22 attention blocks; the first two thirds of 32 hold 21"),
    ],
)
def test_impossible_rules_are_refused(n: int, p: Fraction | int, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}"):
        attention_positions(n, p)
