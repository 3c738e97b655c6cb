"""What a derived stack is held against: the fixed layouts, and random stacks of equal cost."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.architecture import Architecture
from nas.baselines import baseline, sandwich
from nas.config.request import SearchRequest
from nas.errors import InvalidInput
from nas.random_stacks import TOLERANCE, random_stacks
from tests import tiny


def searched(n_slots: int, **space: Any) -> SearchRequest:
    return tiny.request(space={"n_slots": n_slots, "d_model": 16, "n_heads": 2, "max_len": 16, **space})


@pytest.mark.parametrize(
    ("name", "n_slots", "string"),
    [
        ("interleaved", 5, "AFAFA"),
        ("sandwich", 4, "AAFF"),
        ("sandwich", 8, "AAAFAFFF"),
        ("sandwich", 32, "A" * 6 + "AF" * 10 + "F" * 6),
        ("par", 5, "AFFFF"),
        ("par", 12, "AFFFFFFAFFFF"),
        ("all-ffn", 3, "FFF"),
        ("all-attention", 3, "AAA"),
    ],
)
def test_layouts(name: str, n_slots: int, string: str) -> None:
    assert str(baseline(name, searched(n_slots).space)) == string


@given(n_pairs=st.integers(2, 96))
def test_a_sandwich_has_the_parents_blocks_in_another_order(n_pairs: int) -> None:
    families = sandwich(2 * n_pairs)
    assert Counter(families) == {"attention": n_pairs, "ffn": n_pairs}
    assert families != ["attention", "ffn"] * n_pairs


def test_a_family_that_is_missing_is_named() -> None:
    space = tiny.request(**tiny.MASKED).space
    with pytest.raises(InvalidInput, match=r"^the all-attention baseline needs a candidate of family 'attention'"):
        baseline("all-attention", space)


def drawn(request: SearchRequest, labels: tuple[str, ...], n: int, seed: int, *without: Architecture) -> list[str]:
    like = Architecture(labels, request.space.candidates)
    found = random_stacks(request, tiny.table(request.space), like, n, seed=seed, without=without)
    return [str(each) for each in found]


@given(
    seed=st.integers(0, 50),
    labels=st.lists(st.sampled_from(["attention", "ffn", "sgu", "mgk"]), min_size=6, max_size=6),
)
def test_random_stacks_cost_the_same_are_distinct_and_never_the_stack_itself(seed: int, labels: list[str]) -> None:
    request = searched(6)
    table = tiny.table(request.space)
    like = Architecture(tuple(labels), request.space.candidates)
    found = random_stacks(request, table, like, 3, seed=seed)
    target = table.predict_ms(like, request.space)
    assert len({str(each).replace(".", "") for each in [*found, like]}) == len(found) + 1
    for each in found:
        assert abs(table.predict_ms(each, request.space) / target - 1) <= TOLERANCE + 1e-12
    assert found == random_stacks(request, table, like, 3, seed=seed)


def test_every_stack_of_that_cost_is_equally_likely() -> None:
    request = searched(3)
    table, like = tiny.table(request.space), Architecture(("attention", "ffn", "sgu"), request.space.candidates)
    target = table.predict_ms(like, request.space)
    others = {
        str(each)
        for labels in product(request.space.labels, repeat=3)
        if abs(table.predict_ms(each := Architecture(labels, request.space.candidates), request.space) / target - 1)
        <= TOLERANCE
    } - {"AFS"}
    counts = Counter(drawn(request, like.labels, 1, seed)[0] for seed in range(40 * len(others)))
    assert set(counts) == others
    spread = sum((counts[each] - 40) ** 2 / 40 for each in others)  # chi squared
    assert spread < len(others) + 4 * (2 * len(others)) ** 0.5


def test_a_space_that_holds_fewer_gives_fewer() -> None:
    request = searched(2, candidates=["attention", "ffn", "identity"])
    assert drawn(request, ("attention", "identity"), 3, 0) == []  # the same block in the other slot is the same stack
    request = searched(2, candidates=["attention", "ffn"])
    assert drawn(request, ("attention", "ffn"), 3, 0) == ["FA"]
    without = Architecture(("ffn", "attention"), request.space.candidates)
    assert drawn(request, ("attention", "ffn"), 3, 0, without) == []


def test_random_stacks_keep_to_the_layout() -> None:
    layout = [{"present": "sgu", "fixed": True}, {}, {}, {"forbidden": ["attention"]}]
    request = searched(4, layout=layout)
    for string in drawn(request, ("sgu", "attention", "ffn", "ffn"), 5, 1):
        assert string[0] == "S"
        assert string[3] != "A"


def test_a_deep_space_is_drawn_from_too() -> None:
    request = searched(512)
    assert len(drawn(request, ("attention", "ffn") * 256, 2, 0)) == 2
