"""Statements about several seeds: what is tested, what is said, and how it is corrected."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from math import comb, isclose
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.statement import Statement
from nas.statements import countable, exchangeable, found_at, holm, ratio_interval, state

FAMILIES = {"A": "attention", "F": "ffn", "S": "sgu", "M": "mgk", ".": "identity"}


def stacks(*seeds: str) -> list[list[str]]:
    return [[FAMILIES[letter] for letter in seed] for seed in seeds]


def told(statements: Sequence[Statement], kind: str, family: str = "attention") -> Statement:
    (found,) = [each for each in statements if (each.kind, each.family) == (kind, family)]
    return found


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.04, 0.04, 0.04], [0.12, 0.12, 0.12]),
        ([0.5, 0.9, 0.001], [1.0, 1.0, 0.003]),
    ],
    ids=["none", "one", "by hand", "ties", "never above 1"],
)
def test_holm_by_hand(p_values: list[float], corrected: list[float]) -> None:
    assert holm(p_values) == pytest.approx(corrected)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_never_lowers(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(one >= other for one, other in zip(corrected, p_values, strict=True))
    for i, one in enumerate(p_values):
        assert all(corrected[i] <= corrected[j] for j, other in enumerate(p_values) if one <= other)


def test_position_is_the_exact_chance_of_the_rank_sum() -> None:
    found = told(state(stacks("AAFFFFFF", "AAFFFFFF")), "position")
    assert found.p == pytest.approx(2 / comb(8, 2) ** 2)
    assert (found.direction, found.at, found.n_draws, found.n_seeds) == ("early", 0.125, None, 2)
    assert found.by_seed == (0.125, 0.125)
    assert found.statistic == 1.0
    assert found.statement == (
        "attention stands earlier than chance would place it, at 0.12 of the depth on average (0: its beginning)"
    )
    late = told(state(stacks("FFFFFFAA", "FFFFFFAA")), "position")
    assert (late.direction, late.p) == ("late", found.p)


def test_cut_is_the_exact_chance_of_the_blocks_in_the_last_third() -> None:
    found = told(state(stacks("FAAFFF", "AFAFFF")), "cut")
    assert found.p == pytest.approx(2 * (comb(4, 2) / comb(6, 2)) ** 2)
    assert (found.direction, found.at, found.statistic, found.by_seed) == ("first", 1.0, 0.0, (1.0, 1.0))
    assert found.statement == "attention keeps to the first two thirds of the blocks, with 100% of its own"
    last = told(state(stacks("FFFAAF", "FFFAFA")), "cut")
    assert (last.direction, last.p, last.at) == ("last", found.p, 1.0)


def test_one_block_beyond_does_not_undo_a_cut() -> None:
    within = ["AAFAFFFFFFFF", "AFAFAFFFFFFF", "FAAAFFFFFFFF", "FFAFAFAFFFFF", "AFFFFAAFFFFF"]
    found = told(state(stacks(*within, "AAFFFFFFFFFA")), "cut")
    assert found.at == pytest.approx(17 / 18)
    assert found.p is not None
    assert found.p < 0.01


def test_spacing_asks_only_how_the_inner_blocks_lie() -> None:
    even = told(state(stacks("AFFAFFAFF", "AFFAFFAFF")), "spacing")
    assert (even.direction, even.p, even.statistic, even.at) == ("even", pytest.approx(2 / 25), 0.0, 1.0)
    assert even.statement == "between its first and its last block, attention stands evenly spaced"
    moved = told(state(stacks("FFAFFAFFA", "FFAFFAFFA")), "spacing")
    assert moved.p == even.p
    clustered = told(state(stacks("AAFFFFA", "AFFFFAA")), "spacing")
    assert (clustered.direction, clustered.p) == ("clustered", pytest.approx(2 * 4 / 25))
    assert clustered.statement.endswith("attention stands in clusters")


def test_order_asks_only_which_of_two_families_holds_a_slot() -> None:
    found = state(stacks("AAFSS", "AFASS"))
    (order,) = [each for each in found if each.kind == "order"]
    assert (order.family, order.other, order.direction) == ("attention", "sgu", "before")
    assert order.p == pytest.approx(2 / comb(4, 2) ** 2)
    assert (order.at, order.statement) == (1.0, "attention stands before sgu, in 100% of pairs")
    moved = state(stacks("FAASS", "AASSF"))
    assert [each.p for each in moved if each.kind == "order"] == [order.p]
    (after,) = [each for each in state(stacks("SSFAA", "SFSAA")) if each.kind == "order"]
    assert (after.direction, after.statement) == ("after", "attention stands after sgu, in 100% of pairs")


def test_a_skipped_slot_is_no_place_in_the_chain() -> None:
    one, other = (state(stacks(*seeds)) for seeds in (("A.FAFF.S", ".SFAAF.."), ("AFAFFS..", "S..FAAF.")))
    assert one == other


def test_what_cannot_come_out_otherwise_is_not_tested() -> None:
    assert [each.kind for each in state(stacks("AAAA", "AAAA"))] == ["ratio"]
    kinds = [(each.kind, each.n_seeds) for each in state(stacks("AAFA", "AFFF", "FFFF"))]
    assert kinds == [("ratio", 3), ("position", 2), ("cut", 2)], "three in four have no two spacings"
    assert state(stacks("FF.F", "F...")) == []


def test_every_test_of_the_report_is_corrected_for() -> None:
    found = state(stacks("AASMFFFF", "AMASFFSF", "AASFMFSF"))
    tested = [each for each in found if each.p is not None]
    assert {each.n_tests for each in found} == {len(tested)}
    assert [(each.kind, each.family) for each in found] == [
        *(("ratio", family) for family in ("attention", "mgk", "sgu")),
        *((kind, "attention") for kind in ("position", "cut")),  # its two blocks have no inner one to space
        *((kind, "mgk") for kind in ("position", "cut")),
        *((kind, "sgu") for kind in ("position", "cut")),
        *(("order", family) for family in ("attention", "attention", "mgk")),
    ]
    assert [each.p_corrected for each in tested] == holm([each.p for each in tested if each.p is not None])


def test_a_ratio_has_a_t_interval_of_the_share() -> None:
    found = told(state(stacks("AAFFFFFFFFFF", "AAAFFFFFFFFF", "AAAAFFFFFFFF")), "ratio")
    half = 4.302653 * (1 / 12) / 3**0.5  # Student's t of 2 degrees of freedom
    assert (found.at, found.p, found.by_seed) == (pytest.approx(4), None, (6, 4, 3))
    assert (found.low, found.high) == pytest.approx((1 / (0.25 + half), 1 / (0.25 - half)), rel=1e-5)
    assert (found.range_low, found.range_high) == (None, None)
    assert found.statement == "one block in 4.0 is attention (all blocks : attention blocks 4.0 : 1)"


def test_a_ratio_of_one_says_every_block() -> None:
    found = told(state(stacks("A..", ".AA", "..A")), "ratio")
    assert found.statement == "every block is attention (all blocks : attention blocks 1.0 : 1)"


def test_a_ratio_tells_its_range_from_six_seeds_on() -> None:
    found = told(state(stacks(*["AFFF"] * 5, "AAFF")), "ratio")
    assert (found.range_low, found.range_high, found.n_seeds) == (2, 4, 6)
    without = told(state(stacks(*["AFFF"] * 5, "FFFF")), "ratio")
    assert (without.range_low, without.range_high, without.by_seed[5]) == (None, None, None)


def test_seeds_that_agree_have_an_interval_all_the_same() -> None:
    low, high = ratio_interval([0.25] * 3, [12] * 3)
    assert high - low == pytest.approx(2 * 4.302653 / (12 * 12**0.5 * 3**0.5), rel=1e-5)
    one = told(state(stacks("AFFF")), "ratio")
    assert (one.low, one.high) == (None, None)
    apart = told(state(stacks("AAAF", "FFFF", "FFFF")), "ratio")
    assert (apart.low, apart.high) == (1.0, None)


@pytest.mark.parametrize("n_seeds", [2, 3, 5, 6])
def test_the_test_of_a_report_is_never_too_sure(n_seeds: int) -> None:
    """Every p value of 300 exchangeable reports; at level 0.05 at most 8%, four standard errors above 5%, are below."""
    generator = np.random.default_rng(n_seeds)
    blocks = np.array(list("AAASSMFFFF.."))
    below: dict[Any, list[bool]] = {}
    for _ in range(300):
        for each in state(stacks(*("".join(generator.permutation(blocks)) for _ in range(n_seeds)))):
            if each.p is not None:
                below.setdefault((each.kind, each.family, each.other), []).append(each.p <= 0.05)
    assert len(below) == 3 + 3 + 1 + 3
    for key, rejected in below.items():
        assert np.mean(rejected) <= 0.05 + 4 * (0.05 * 0.95 / len(rejected)) ** 0.5, key


def test_only_slots_that_could_hold_the_same_trade_places() -> None:
    space = SearchSpace.model_validate(
        {
            "n_slots": 5,
            "layout": [{"present": "attention", "fixed": True}, {}, {"forbidden": ["sgu"]}, {"present": "ffn"}, {}],
        }
    )
    assert exchangeable(space) == (0, 1, 2, 3, 1)
    even = space.model_copy(update={"layout_prior": 0.0})
    assert exchangeable(even) == (0, 1, 2, 1, 1)
    assert exchangeable(SearchSpace(n_slots=3)) == (0, 0, 0)


def test_a_fixed_slot_is_no_evidence() -> None:
    seeds = stacks(*["AFFFFF"] * 6)
    assert told(state(seeds), "position").p == pytest.approx(2 / 6**6)
    assert [each.kind for each in state(seeds, [0, 1, 1, 1, 1, 1])] == ["ratio"]
    beside = told(state(stacks(*["AAFFFF"] * 2), [0, 1, 1, 1, 1, 1]), "position")
    assert beside.p == pytest.approx(2 / 5**2)


@pytest.mark.parametrize(
    ("layout", "kinds"),
    [
        (["A!", "A!", "F!", "F!"], []),
        (["A!", "A!", {"forbidden": ["attention"]}, {"forbidden": ["attention"]}], []),
        (["A!", "A!", {"forbidden": ["attention"]}, {"forbidden": ["sgu"]}], ["ratio"]),
        (["A!", "A!", {"forbidden": ["attention"]}, {"forbidden": ["ffn", "sgu", "mgk", "identity"]}], []),
        ([], ["ratio", "position"]),
    ],
    ids=["all fixed", "count fixed", "one slot free", "only attention", "free"],
)
def test_a_count_that_the_layout_fixes_is_no_evidence(layout: Any, kinds: list[str]) -> None:
    slots = [{"present": FAMILIES[each[0]], "fixed": True} if isinstance(each, str) else each for each in layout]
    space = SearchSpace.model_validate({"n_slots": 4, "layout": slots})
    found = state(stacks(*["AAFF"] * 6), exchangeable(space), countable(space))
    assert [each.kind for each in found if each.kind in ("ratio", "position")] == kinds


def test_a_statement_comes_back_from_where_it_was_stored() -> None:
    for each in state(stacks("AFFS", "AFS.")):
        body = json.loads(json.dumps(dataclasses.asdict(each)))
        assert Statement.from_json({**body, "of_a_newer_version": 1}) == each


def test_where_a_search_was_is_told() -> None:
    request = SearchRequest.model_validate({"task": {"dataset": "python-docs"}, "budget": {"latency": {"ms": 2.0}}})
    found = found_at(request)
    assert {name: found[name] for name in ("n_slots", "d_model", "train_length", "dataset", "n_steps")} == {
        "n_slots": request.space.n_slots,
        "d_model": 64,
        "train_length": 128,
        "dataset": "python-docs",
        "n_steps": request.method.n_steps,
    }
    assert isclose(found["budget"]["latency"]["ms"], 2.0)
    assert found["layout"] is None
    layout = [{"present": "ffn", "fixed": True}, {"forbidden": ["sgu", "mgk"]}, {"present": "ffn", "fixed": True}, {}]
    held = SearchRequest.model_validate({"task": {"dataset": "python-docs"}, "space": {"n_slots": 4, "layout": layout}})
    assert found_at(held)["layout"] == "ffn alone in slots 1, 3; no sgu or mgk in slot 2"


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([], "statements need at least one derived architecture; there is none"),
        (["AF", "AFAF"], "architectures of 2 and of 4 slots have no rule in common"),
    ],
    ids=["none", "two depths"],
)
def test_stacks_that_say_nothing_together_are_refused(seeds: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}$"):
        state(stacks(*seeds))


def test_statements_load_neither_torch_nor_scipy() -> None:
    code = "import sys, nas.verdicts; print(*sorted({'torch', 'scipy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
