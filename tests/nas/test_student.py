"""Student's t against its table."""

from __future__ import annotations

import math

import pytest

from nas.student import critical, half_width


@pytest.mark.parametrize(("freedom", "value"), [(1, 12.706), (2, 4.303), (5, 2.571), (1000, 1.962)])
def test_the_quantile_is_the_table_s(freedom: int, value: float) -> None:
    assert critical(freedom) == pytest.approx(value, abs=1e-3)


def test_half_the_width_is_the_quantile_times_the_standard_error() -> None:
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.3027 / math.sqrt(3), abs=1e-4)
    assert half_width([2.0, 2.0]) == 0
    assert half_width([2.0]) is None
    assert half_width([]) is None
