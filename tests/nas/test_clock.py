"""A time by which exact answers must be there."""

from __future__ import annotations

import math
import time

import pytest
import scipy.optimize  # before anything is timed

from nas import constrain, what_if
from nas.config.constraints import Constraints
from nas.config.request import SearchRequest
from nas.errors import Infeasible, InvalidInput
from nas.exact import clock
from nas.exact.constraint import Constraint
from tests import tiny

MESSAGE = (
    r"^no exact answer within 0\.5 s; ask with fewer or simpler constraints, or for fewer architectures, points or "
    r"seeds$"
)


def test_without_a_limit_there_is_all_the_time_there_is() -> None:
    assert clock.left_s() == math.inf
    with clock.within(60):
        assert 0 < clock.left_s() <= 60
    assert clock.left_s() == math.inf


LABELS = ("attention", "ffn", "identity", "sgu", "mgk")


def many() -> tuple[SearchRequest, list[Constraint]]:
    """Each of 30 counts can be met, and thousands of sets of five cannot: the smallest takes minutes."""
    request = tiny.request(space={"n_slots": 96, "candidates": list(LABELS)})
    counts = [{"label": label, "at_least": 20 + more} for more in range(6) for label in LABELS]
    return request, constrain.read(Constraints.model_validate({"counts": counts}), request, None)


def test_a_conflict_among_many_constraints_ends_in_time() -> None:
    assert scipy.optimize
    request, constraints = many()
    began = time.monotonic()
    with clock.within(0.5), pytest.raises(InvalidInput, match=MESSAGE):
        what_if.check(request, constraints)
    assert time.monotonic() - began < 20, "also on a machine that is busy"


def test_a_conflict_that_need_not_be_the_smallest_is_named_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.exact.conflict.SMALLEST_S", 0.2)
    request, constraints = many()
    with pytest.raises(Infeasible) as caught:
        what_if.check(request, constraints)
    words = str(caught.value)
    assert words.endswith("; there may be a conflict of fewer constraints, 0.2 s did not tell")
    named = [each for each in constraints if each.words in words]
    assert len(named) == len(caught.value.conflict) == 4  # four times 25 slots of 96
    for idle in named:  # each of them is needed for it
        what_if.check(request, [each for each in named if each is not idle])


def test_an_inner_limit_does_not_outlast_the_outer_one() -> None:
    with clock.within(0.5), clock.within(60):
        assert clock.left_s() <= 0.5
