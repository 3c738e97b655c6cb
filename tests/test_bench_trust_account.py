"""What the blocks of stacks explain, on losses that are made of them."""

from __future__ import annotations

import itertools

import pytest

from bench.trust_account import FEWEST, account

STACKS = ["".join(letters) for letters in itertools.product("AFS.", repeat=3)]


def test_losses_that_are_sums_over_blocks_are_explained_by_them() -> None:
    nats = {"A": 0.3, "F": 0.1, "S": -0.2, ".": 0.0}
    found = account({stack: 2 - sum(nats[letter] for letter in stack) for stack in STACKS})
    assert found is not None
    assert found.explained == pytest.approx(1)
    assert found.buys == pytest.approx({"A": 0.3, "F": 0.1, "S": -0.2, "M": 0.0}, abs=1e-9)


def test_losses_that_hang_on_the_order_are_not() -> None:
    """An SGU anywhere before attention takes off a nat, whatever else there is."""
    found = account({stack: 2.0 - (stack.find("S") < stack.find("A") if "S" in stack else 0) for stack in STACKS})
    assert found is not None
    assert found.explained < 0.5
    assert found.by_order == pytest.approx(0.8, abs=0.1)


def test_more_blocks_that_are_better_are_told_by_their_number() -> None:
    found = account({stack: float(stack.count(".")) for stack in STACKS})
    assert found is not None
    assert found.by_count == pytest.approx(1)


def test_too_few_stacks_and_equal_losses_have_no_account() -> None:
    few = dict.fromkeys(STACKS[: FEWEST - 1], 1.0) | {STACKS[0]: 2.0}
    assert account(few) is None
    assert account(dict.fromkeys(STACKS, 1.0)) is None
