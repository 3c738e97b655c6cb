"""The standard error of paired differences: of windows that stand alone, and of neighbours."""

from __future__ import annotations

import math

import pytest
import torch

from nas.paired import standard_error


def test_the_error_of_windows_that_stand_alone_is_the_textbooks() -> None:
    values = torch.randn(400, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = float(values.std(correction=0)) / math.sqrt(400)
    assert standard_error(values, neighbours=False) == pytest.approx(expected, rel=1e-12)
    assert standard_error(torch.full((8,), 0.25), neighbours=True) == 0


def test_neighbours_that_go_together_widen_the_error() -> None:
    """Of runs of eight equal windows the mean knows an eighth as many values; the blocks see most of that."""
    drawn = torch.randn(64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = drawn.repeat_interleave(8)
    truth = float(drawn.std()) / math.sqrt(64)
    alone, together = standard_error(values, neighbours=False), standard_error(values, neighbours=True)
    assert alone == pytest.approx(truth / math.sqrt(8), rel=0.02)
    assert 0.7 * truth < together < 1.1 * truth
