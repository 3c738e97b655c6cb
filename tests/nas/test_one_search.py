"""A search as one call: which of its seeds is its answer."""

from __future__ import annotations

from typing import Any

from nas.architecture import Architecture
from nas.one_search import SearchResult, SeedResult
from nas.steps import StepRecord
from tests import tiny


def result(*losses: dict[str, float | None]) -> SearchResult:
    """Of seeds from 0 on, whose last records have these."""
    request = tiny.request()
    architecture = Architecture(("attention", "ffn"), request.space.candidates)
    each: list[dict[str, Any]] = [dict(one) for one in losses]
    seeds = tuple(SeedResult(seed, (StepRecord(9, **one),), architecture) for seed, one in enumerate(each))
    return SearchResult(request, tiny.table(request.space), seeds, tiny.parts(request))


def test_behind_a_pass_seeds_are_ranked_by_the_path_that_is_derived() -> None:
    found = result({"val_loss": 1.0, "val_loss_argmax": 3.0}, {"val_loss": 2.0, "val_loss_argmax": 2.5})
    assert found.best.seed == 0
    assert [seed.val_loss for seed in found.seeds] == [1.0, 2.0]


def test_without_a_pass_seeds_are_ranked_by_the_leading_path_and_before_one_leads_by_the_mixture() -> None:
    found = result({"val_loss_argmax": 3.0}, {"val_loss_argmax": 2.5}, {"val_loss_soft": 2.75})
    assert found.best.seed == 1
    assert [seed.val_loss for seed in found.seeds] == [3.0, 2.5, 2.75]
