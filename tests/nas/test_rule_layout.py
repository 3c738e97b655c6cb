"""Statements make a layout of the blocks that are there, where the space lets them stand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.applied import costs, fixed
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.known_rules import lay_out
from nas.random_stacks import random_placements
from nas.rule_layout import Counts, at_same_cost, broken, place
from nas.statement import Statement
from nas.statements import state
from tests import tiny

A, S, M = ("attention", "attention"), ("sgu", "sgu"), ("mgk", "mgk")


def said(kind: Any, direction: str | None = None, at: float | None = None, **fields: Any) -> Statement:
    return Statement(kind, fields.pop("family", "attention"), "", direction=direction, at=at, **fields)


def string(statements: list[Statement], n_blocks: int, n_attention: int, n_sgu: int = 0) -> str:
    letters = {"attention": "A", "sgu": "S", "ffn": "F"}
    labels = place(statements, Counts([A] * n_attention + [S] * n_sgu, "ffn"), n_blocks)
    return "".join(letters[label] for label in labels)


@pytest.mark.parametrize(
    ("statements", "counts", "expected"),
    [
        ([], (8, 4), "AFAFAFAF"),
        ([said("cut", "first")], (12, 4), "AFAFAFAFFFFF"),
        ([said("cut", "last")], (12, 4), "FFFFAFAFAFAF"),
        ([said("position", "early", 0.2)], (10, 2), "FAFAFFFFFF"),
        ([said("position", "early", 0.05)], (10, 3), "AAAFFFFFFF"),
        ([said("position", "late", 0.95)], (10, 3), "FFFFFFFAAA"),
        ([said("spacing", "clustered"), said("cut", "first")], (12, 4), "AAFFFFAAFFFF"),
        ([said("order", "after", other="sgu")], (8, 2, 2), "SSFFAAFF"),
        ([said("order", "before", other="sgu")], (8, 2, 2), "AAFFSSFF"),
    ],
    ids=["nothing", "first", "last", "early", "very early", "late", "clustered", "after", "before"],
)
def test_a_layout_is_what_the_statements_say(statements: Any, counts: Any, expected: str) -> None:
    found = string(statements, *counts)
    assert sorted(found) == sorted(expected)
    assert found == expected


@given(st.integers(1, 24), st.integers(0, 12), st.integers(0, 12), st.floats(0, 1), st.sampled_from(["first", "last"]))
def test_every_block_is_placed_once(n: int, n_attention: int, n_sgu: int, at: float, cut: Any) -> None:
    statements = [said("position", "early", at), said("cut", cut), said("order", "after", other="sgu")]
    if n_attention + n_sgu > n:
        with pytest.raises(InvalidInput, match=rf"^{n_attention + n_sgu} blocks of the rule do not fit into {n}$"):
            string(statements, n, n_attention, n_sgu)
        return
    found = string(statements, n, n_attention, n_sgu)
    assert (found.count("A"), found.count("S"), len(found)) == (n_attention, n_sgu, n)


# -- a layout against its statements -----------------------------------------------------------------------------------


MIXERS = ("attention", "mgk", "sgu")


def families_of(statements: list[Statement], counts: list[int], n_blocks: int) -> list[str]:
    placed = [each for each, n in zip((A, M, S), counts, strict=True) for _ in range(n)]
    return list(place(statements, Counts(placed, "ffn"), n_blocks))


def at_of(kind: str, families: list[str], family: str) -> float:
    """What a report of this one layout says."""
    (found,) = [each for each in state([families]) if (each.kind, each.family) == (kind, family)]
    assert found.at is not None
    return found.at


@given(st.permutations(MIXERS), st.lists(st.integers(1, 4), min_size=3, max_size=3), st.integers(0, 8), st.data())
def test_orders_that_agree_hold_all_of_them(order: list[str], counts: list[int], n_more: int, data: Any) -> None:
    pairs = [(one, two) for i, one in enumerate(order) for two in order[i + 1 :]]
    statements = [
        said("order", "before", family=one, other=two) if straight else said("order", "after", family=two, other=one)
        for one, two in data.draw(st.permutations(pairs))
        for straight in [data.draw(st.booleans())]
    ]
    families = families_of(statements, counts, sum(counts) + n_more)
    assert [each for each in families if each != "ffn"] == [
        family for family in order for _ in range(counts[MIXERS.index(family)])
    ]
    assert {broken(each, families) for each in statements} == {None}


def test_orders_in_a_circle_are_refused() -> None:
    orders = [
        said("order", "before", other="mgk"),
        said("order", "before", family="mgk", other="sgu"),
        said("order", "after", other="sgu"),
    ]
    with pytest.raises(InvalidInput, match=r"^no layout has the orders of all: (\w+) before \w+ before \w+ before \1$"):
        families_of(orders, [1, 1, 1], 6)


@given(st.integers(1, 64), st.integers(1, 42), st.sampled_from(["first", "last"]))
def test_a_cut_holds_as_it_is_tested_wherever_there_is_room(n_blocks: int, n: int, cut: Any) -> None:
    statement = said("cut", cut)
    families = families_of([statement], [min(n, n_blocks), 0, 0], n_blocks)
    places = [place for place, family in enumerate(families) if family == "attention"]
    within = [
        place < 2 * n_blocks // 3 if cut == "first" else place >= n_blocks - 2 * n_blocks // 3 for place in places
    ]
    assert all(within) == (min(n, n_blocks) <= 2 * n_blocks // 3)
    assert (broken(statement, families) is None) == all(within)


@st.composite
def some_statements(draw: st.DrawFn) -> list[Statement]:
    statements = []
    for family in MIXERS:
        if draw(st.booleans()):
            at = draw(st.floats(0.05, 0.95))
            statements.append(said("position", "early" if at < 0.5 else "late", at, family=family))
        if draw(st.booleans()):
            statements.append(
                said("cut", draw(st.sampled_from(["first", "last"])), draw(st.floats(0.7, 1)), family=family)
            )
        if draw(st.booleans()):
            statements.append(said("spacing", draw(st.sampled_from(["even", "clustered"])), family=family))
    order = draw(st.permutations(MIXERS))
    for i, one in enumerate(order):
        statements += [said("order", "before", family=one, other=two) for two in order[i + 1 :] if draw(st.booleans())]
    return statements


@given(some_statements(), st.lists(st.integers(1, 6), min_size=3, max_size=3), st.integers(1, 24))
def test_what_is_not_broken_is_what_a_report_would_say_of_the_layout(
    statements: list[Statement], counts: list[int], n_more: int
) -> None:
    families = families_of(statements, counts, sum(counts) + n_more)
    for each in statements:
        held = broken(each, families) is None
        if each.kind == "spacing":
            continue  # below, by hand: what is even is a matter of degree
        if each.kind == "order":
            assert held
        elif each.kind == "position":
            at = at_of("position", families, each.family)
            assert each.at is not None
            early = at < 0.5 or at <= each.at + 1e-9
            late = at > 0.5 or at >= each.at - 1e-9
            assert held == (early if each.direction == "early" else late)
        elif held:
            n_blocks = len(families)
            places = [place for place, family in enumerate(families) if family == each.family]
            room = 2 * n_blocks // 3
            ends = range(room) if each.direction == "first" else range(n_blocks - room, n_blocks)
            assert each.at is not None
            assert sum(place in ends for place in places) >= each.at * len(places) - 1e-6


LETTERS = {"A": "attention", "S": "sgu", "F": "ffn", ".": "identity"}


@pytest.mark.parametrize(
    ("statement", "layout", "lack"),
    [
        (said("position", "early", 0.3), "FA.FA", "at 0.62 of the depth on average, which is not early"),
        (said("position", "late", 0.7), "AFAFFF", "at 0.25 of the depth on average, which is not late"),
        (said("position", "early", 0.3), "AFAFFF", None),
        (said("position", "late", 0.4), "AAFFA", None),
        (said("cut", "first", 0.9), "AFFA", "50% of attention in the first two thirds, 90% is stated"),
        (said("cut", "last"), "FAFFFFAF", "50% of attention in the last two thirds, 100% is stated"),
        (said("cut", "first", 0.7), "AAAFFA", None),
        (said("order", "before", 0.9, other="sgu"), "ASAS", "before sgu in 75% of pairs, 90% is stated"),
        (said("order", "after", 0.0, other="sgu"), "ASA", "after sgu in 50% of pairs, 100% is stated"),
        (said("order", "after", 0.3, other="sgu"), "ASAA.", "after sgu in 67% of pairs, 70% is stated"),
        (said("order", "before", other="sgu"), "AAFF", None),
        (said("spacing", "even"), "AAFFFFFA", "1.7 times the even one, which is not even"),
        (said("spacing", "clustered"), "AFFAFFFA", "1.1 times the even one, which is not in clusters"),
        (said("spacing", "even"), "AFFAFFFA", None),
        (said("spacing", "clustered"), "AAFFFFFA", None),
        (said("spacing", "even"), "AFFFFF.A", None),
        (said("spacing", "clustered"), "AAFA", None),
        (said("spacing", "even"), "AAFA", None),
        (said("ratio", at=2.0), "AFFFFFFF", None),
        (said("cut", "first"), "FFFF", None),
    ],
)  # fmt: skip
def test_a_layout_that_contradicts_a_statement_is_told(statement: Statement, layout: str, lack: str | None) -> None:
    told = broken(statement, [LETTERS[letter] for letter in layout])
    assert (told or "").endswith(lack or "")
    assert (told is None) == (lack is None)


def test_a_layout_of_equal_cost_holds_the_same_blocks() -> None:
    labels = ("ffn", "identity", "attention", "mgk", "ffn", "attention")
    found = at_same_cost([said("cut", "first")], labels, SearchSpace(n_slots=6))
    assert sorted(found) == sorted(labels)
    assert found[-1] == "identity"


def test_a_layout_that_the_space_does_not_allow_is_refused() -> None:
    space = SearchSpace.model_validate({"n_slots": 2, "layout": [{"forbidden": ["attention"]}, {}]})
    with pytest.raises(
        InvalidInput, match=r"^their layout has 'attention' in slot 1, where the space does not allow it"
    ):
        at_same_cost([said("position", "early", 0.1)], ("ffn", "attention"), space)


def test_random_placements_are_other_networks_of_the_same_blocks() -> None:
    labels = ("attention", "attention", "ffn", "ffn", "identity")
    found = random_placements(labels, SearchSpace(n_slots=5), 9, seed=0)
    chains = [tuple(label for label in each if label != "identity") for each in found]
    assert len(set(chains)) == len(chains) == 5  # six orders of AAFF, less its own
    assert labels[:4] not in chains
    assert all(sorted(each) == sorted(labels) for each in found)
    held = SearchSpace.model_validate(
        {"n_slots": 5, "layout": [{"present": "attention", "fixed": True}, {}, {}, {}, {}]}
    )
    assert {each[0] for each in random_placements(labels, held, 9, seed=0)} == {"attention"}


# -- what a layout costs, and how it is trained -----------------------------------------------------------------------


def test_the_request_of_a_layout_fixes_every_slot() -> None:
    asked = tiny.request(budget={"latency": {"ms": 5.0}})
    found = fixed(asked, ("attention", "ffn", "sgu"), 32)
    assert [(slot.present, slot.fixed) for slot in found.space.layout] == [
        ("attention", True), ("ffn", True), ("sgu", True),
    ]  # fmt: skip
    assert (found.space.n_slots, found.space.d_model, found.space.n_heads) == (3, 32, 4)
    assert (found.budget.latency, found.retrain.baselines, found.trials.n_seeds) == (None, ("interleaved",), 1)
    warm = tiny.request(retrain={"start": "supernet", "k_best": 4, "n_steps": 1, "n_seeds": 1})
    assert warm.retrain.k_best == 4
    trained = fixed(warm, ("attention", "ffn")).retrain
    assert (trained.start, trained.k_best) == ("scratch", 1), "one step of a search leaves nothing to start from"
    small = {"candidates": ["sgu", "ffn"], "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16}
    without = tiny.request(space=small, retrain={"baselines": []})
    assert fixed(without, ("sgu", "ffn")).retrain.baselines == ()


@pytest.mark.parametrize(
    ("width", "n_heads", "heads", "kv_heads", "mgk"),
    [(512, 32, 16, 8, 8), (64, 4, 2, 1, 1), (128, 8, 4, 2, 2), (32, 2, 4, 2, 2)],
    ids=["wider", "narrower", "as it was", "no whole number"],
)
def test_heads_of_a_candidates_own_keep_their_width_too(
    width: int, n_heads: int, heads: int, kv_heads: int, mgk: int
) -> None:
    own = {"label": "few", "block": "attention", "options": {"n_heads": 4, "n_kv_heads": 2}}
    keys = {"label": "mgk", "block": "mgk", "options": {"n_heads": 2, "n_keys": 2}}
    sgu = {"label": "sgu", "block": "sgu", "options": {"n_heads": 2}}
    space = {"d_model": 128, "n_heads": 8, "candidates": [own, "ffn", "attention", sgu, keys]}
    found = fixed(tiny.request(space=space), ("few", "mgk"), width).space
    options = {candidate.label: candidate.options for candidate in found.candidates}
    assert found.n_heads == n_heads
    assert (options["few"]["n_heads"], options["few"]["n_kv_heads"]) == (heads, kv_heads)
    assert (options["mgk"]["n_heads"], options["sgu"]["n_heads"]) == (mgk, 2)
    assert options["attention"]["n_heads"] is None


def test_a_width_that_cannot_be_built_is_one_line() -> None:
    with pytest.raises(InvalidInput, match="d_model"):
        fixed(tiny.request(), ("attention", "ffn"), 15)


def test_costs_are_sums_of_the_slots() -> None:
    asked = tiny.request()
    one, two = (costs(fixed(asked, labels), labels, []) for labels in (("attention",), ("attention", "attention")))
    assert (two.parameters, two.flops, two.cache_bytes) == (
        2 * one.parameters,
        2 * one.flops,
        2 * (one.cache_bytes or 0),
    )
    assert (one.predicted_ms, one.latency_table) == (None, None)
    table = tiny.table(asked.space)
    told = costs(fixed(asked, ("attention", "ffn")), ("attention", "ffn"), [tiny.table(SearchSpace()), table])
    assert (told.predicted_ms, told.latency_table, told.no_latency) == (6.0, table.id, None)


def test_a_known_rule_needs_attention_and_ffn() -> None:
    space = SearchSpace.model_validate({"candidates": ["sgu", "ffn"]})
    with pytest.raises(InvalidInput, match=r"^the layout needs a candidate of family 'attention'; the space has none$"):
        lay_out("par", space, 8)


def test_confirming_takes_three_seeds_at_least() -> None:
    with pytest.raises(ValueError, match="confirm_seeds is 2; it must be 0, or 3 at least for an interval"):
        SearchRequest.model_validate({"retrain": {"confirm_seeds": 2}})


def test_rules_are_confirmed_from_scratch_alone() -> None:
    message = "confirm_seeds is 3 and start is 'supernet'; weights of the search favour what it found, so rules are"
    with pytest.raises(ValueError, match=message):
        SearchRequest.model_validate({"retrain": {"confirm_seeds": 3, "start": "supernet"}})
    assert SearchRequest.model_validate({"retrain": {"start": "supernet"}}).retrain.confirm_seeds == 0
