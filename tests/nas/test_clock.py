"""A time by which exact answers must be there."""

from __future__ import annotations

import math
import time

import pytest

from nas import constrain, what_if
from nas.config.constraints import Constraints
from nas.errors import InvalidInput
from nas.exact import clock
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


def test_a_conflict_among_many_constraints_ends_in_time() -> None:
    """Each of 30 counts can be met, and thousands of sets of five cannot: the smallest takes minutes."""
    labels = ("attention", "ffn", "identity", "sgu", "mgk")
    request = tiny.request(space={"n_slots": 96, "candidates": list(labels)})
    counts = [{"label": label, "at_least": 20 + more} for more in range(6) for label in labels]
    constraints = constrain.read(Constraints.model_validate({"counts": counts}), request, None)
    began = time.monotonic()
    with clock.within(0.5), pytest.raises(InvalidInput, match=MESSAGE):
        what_if.check(request, constraints)
    assert time.monotonic() - began < 20, "also on a machine that is busy, and with scipy to load"
