"""The PAR rule generator: par-search.md section 9, items 24-27; and the rule of a search at another depth."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.errors import InvalidInput
from nas.placement import Spacing, apply_rule, apply_statement, attention_positions
from nas.rules import RuleStatement, describe
from nas.statement import Statement
from nas.statements import state

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
            else:
                assert len(gaps) <= 1


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
        (
            32,
            Fraction(7, 5),
            "ratio 7/5 asks for 22 attention blocks; there is room for 21 in the first two",
        ),
    ],
)
@pytest.mark.parametrize("spacing", ["uniform", "stride"])
def test_impossible_rules_are_refused(n: int, p: Fraction | int, message: str, spacing: Spacing) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}"):
        attention_positions(n, p, spacing=spacing)


@pytest.mark.parametrize("spacing", ["uniform", "stride"])
@given(n=st.integers(1, 512), p=st.fractions(min_value=Fraction(1, 2), max_value=512, max_denominator=20))
def test_the_first_two_thirds_hold_every_ratio_from_three_halves_on(spacing: Spacing, n: int, p: Fraction) -> None:
    n_attention, room = int(n / p), 2 * n // 3
    if n_attention >= 1 and (p >= Fraction(3, 2) or n_attention <= room):
        positions = attention_positions(n, p, spacing=spacing)
        assert len(positions) == n_attention
        assert len(set(positions)) == n_attention
        assert max(positions) <= max(room - 1, 0)
    else:
        with pytest.raises(InvalidInput):
            attention_positions(n, p, spacing=spacing)


@pytest.mark.parametrize("spacing", ["uniform", "stride"])
@given(n=st.integers(1, 96), a=st.integers(0, 11), b=st.integers(1, 12), p=st.fractions(1, 96, max_denominator=6))
def test_another_zone_is_kept_and_filled_evenly(spacing: Spacing, n: int, a: int, b: int, p: Fraction) -> None:
    zone = (Fraction(min(a, b - 1), 12), Fraction(max(a + 1, b), 12))
    first, last = int(zone[0] * n), max(int(zone[1] * n) - 1, int(zone[0] * n))
    if not 1 <= int(n / p) <= last - first + 1:
        with pytest.raises(InvalidInput, match=r"^ratio "):
            attention_positions(n, p, spacing=spacing, zone=zone)
        return
    positions = attention_positions(n, p, spacing=spacing, zone=zone)
    gaps = [later - earlier for earlier, later in pairwise(positions)]
    assert len(positions) == int(n / p)
    assert positions[0] == first
    assert positions[-1] <= last
    assert all(gap > 0 for gap in gaps)
    assert not gaps or max(gaps) - min(gaps) <= (1 if spacing == "uniform" else 0)


def test_a_zone_that_is_too_small_is_named() -> None:
    with pytest.raises(
        InvalidInput, match=r"^ratio 2 asks for 4 attention blocks; there is room for 2 in slots 7-8 of 8$"
    ):
        attention_positions(8, 2, zone=(Fraction(3, 4), Fraction(1)))


# -- the rule of a search ---------------------------------------------------------------------------------------------


def searched(n_slots: int, *candidates: Any, **budget: float) -> SearchRequest:
    space = {"n_slots": n_slots, "candidates": candidates or ("attention", "ffn", "identity", "sgu", "mgk")}
    return SearchRequest.model_validate(
        {
            "space": space,
            "task": {"dataset": "python-docs"},
            "budget": {"latency": budget or None},
            "retrain": {"baselines": []},
        }
    )


def found(request: SearchRequest, seeds: Sequence[str], undecided: Sequence[Sequence[int]] = ()) -> RuleStatement:
    """The rule of seeds given by their letters, as it comes back from where it was stored."""
    labels = {candidate.letter: candidate.label for candidate in request.space.candidates}
    architectures = [
        Architecture(
            tuple(labels[letter] for letter in seed),
            request.space.candidates,
            tuple(undecided[number]) if undecided else (),
        )
        for number, seed in enumerate(seeds)
    ]
    rule = describe(architectures)
    stored = RuleStatement.from_json(json.loads(json.dumps(dataclasses.asdict(rule))))
    assert stored == rule
    return stored


@pytest.mark.parametrize(
    ("seeds", "n_slots", "options", "string"),
    [
        (["AFAFFF"], 6, {}, "AFAFFF"),
        (["AFAFFF"], 12, {}, "AAFAFAFFFFFF"),
        (["AFAFFF"], 12, {"spacing": "stride"}, "AAAAFFFFFFFF"),
        (["SSFA.A", "SS.AAA"], 16, {}, "SSSSSSSSAAAAAAAA"),
        (["SSFA.A", "SS.AAA"], 16, {"ratio": Fraction(5)}, "SSSSSSSSASSASSSA"),
        (["SSSA"], 32, {"ratio": Fraction(5), "zone": "paper"}, "ASSSASSSASSSASSSASSSASSSSSSSSSSS"),
        (["MSMAMF"], 12, {}, "MMMMMMAAMMMM"),
        (["AAAA"], 4, {}, "AAAA"),
        (["FFA"], 3, {}, "FFA"),
        (["FFA"], 512, {"ratio": Fraction(512)}, "F" * 341 + "A" + "F" * 170),
    ],
    ids=["same depth", "twice", "one gap", "seeds", "a ratio", "the paper's", "mgk", "only", "last", "deepest"],
)
def test_the_rule_of_a_search_is_carried_to_another_depth(
    seeds: list[str], n_slots: int, options: dict[str, Any], string: str
) -> None:
    request = searched(len(seeds[0]))
    layout = apply_rule(found(request, seeds), request, n_slots, **options)
    assert layout.string == string
    assert layout.attention == tuple(slot for slot, letter in enumerate(string) if letter == "A")
    assert [request.space.candidate(label).letter for label in layout.labels] == list(string)


def test_a_layout_says_what_it_rests_on_and_stays_suggested() -> None:
    request = searched(6, ratio_to_parent=0.9)
    layout = apply_rule(found(request, ["SSFA.A", "SS.AAA"]), request, 12, ratio=Fraction(9, 2), zone="paper")
    assert layout.verdict == "suggested"
    assert layout.statement == (
        "attention in slots 1, 8 of 12, sgu in the others (ratio 9/2 as asked for, in the first two thirds as in the "
        "PAR paper); found by 1 search with 2 seeds at 6 slots, width 64, 128 tokens, python-docs, 2400 updates, "
        "at most 0.9 of the parent's latency: suggested, and not measured at 12 slots"
    )
    own = apply_rule(found(request, ["AF...."]), request, 2).statement
    assert own.startswith("attention in slot 1 of 2, ffn in the others; found by 1 search with 1 seed at ")


@pytest.mark.parametrize(("budget", "text"), [({"ms": 2.5}, "at most 2.5 ms:"), ({}, "no latency budget:")])
def test_a_layout_names_the_budget(budget: dict[str, float], text: str) -> None:
    request = searched(4, **budget)
    assert text in apply_rule(found(request, ["AFFF"]), request, 8).statement


def test_labels_are_those_that_the_seeds_chose_most_often() -> None:
    wide = {"label": "ffn-wide", "block": "ffn", "options": {"ratio": 8}}
    eight = {"label": "attention-8", "block": "attention", "options": {}}
    request = searched(4, "attention", eight, "ffn", wide, "identity")
    labels = (("ffn-wide", "attention-8", "ffn-wide", "ffn"),) * 2
    rule = describe([Architecture(each, request.space.candidates) for each in labels])
    assert apply_rule(rule, request, 5).labels == ("ffn-wide", "attention-8", "ffn-wide", "ffn-wide", "ffn-wide")
    undecided = describe([Architecture(each, request.space.candidates, (0, 2)) for each in labels])
    assert apply_rule(undecided, request, 4).labels == ("ffn", "attention-8", "ffn", "ffn")


def test_a_rule_stored_without_labels_takes_the_first_attention_and_ffn() -> None:
    request = searched(4)
    rule = dataclasses.replace(found(request, ["SASS"]), labels=(), undecided_slots=())
    assert apply_rule(rule, request, 4).string == "FAFF"


def test_a_stored_rule_of_a_newer_version_is_read_by_the_fields_known_here() -> None:
    request = searched(4)
    rule = found(request, ["FAFF"])
    assert RuleStatement.from_json({**dataclasses.asdict(rule), "confirmed_by": ["x"]}).ratio == 4


@pytest.mark.parametrize(
    ("seeds", "undecided", "message"),
    [
        (["FFS.", "FFFF"], (), "no attention in any of 4 slots"),
        (["AFAF", "AFFF"], ([0, 1, 2, 3], [0, 1, 2, 3]), "every slot of every seed is undecided"),
        (["AFAF", "AFFF"], ([0, 1, 2], [0]), "attention stands in undecided slots only"),
    ],
    ids=["no attention", "all undecided", "attention undecided"],
)
def test_a_rule_without_a_placement_is_refused(seeds: list[str], undecided: Any, message: str) -> None:
    request = searched(4)
    with pytest.raises(InvalidInput, match=f"^the rule has no placement to apply: {message}$"):
        apply_rule(found(request, seeds, undecided), request, 8)


def test_a_rule_of_labels_that_its_search_does_not_have_is_refused() -> None:
    rule = found(searched(4), ["AFSF"])
    with pytest.raises(InvalidInput, match=r"^the rule names label 'sgu'; its search has attention, ffn$"):
        apply_rule(rule, searched(4, "attention", "ffn"), 8)


def test_a_layout_without_anything_to_put_beside_attention_is_refused() -> None:
    rule = found(searched(4), ["A..A"])
    with pytest.raises(
        InvalidInput, match=r"^the layout needs a candidate of family 'ffn'; the search has attention, identity$"
    ):
        apply_rule(rule, searched(4, "attention", "identity"), 8)


@pytest.mark.parametrize("n_slots", [0, -1, 513])
def test_a_depth_that_no_search_has_is_refused(n_slots: int) -> None:
    with pytest.raises(InvalidInput, match=rf"^n_slots is {n_slots}; it must be from 1 to 512$"):
        apply_rule(found(searched(4), ["AFFF"]), searched(4), n_slots)


def test_a_ratio_that_does_not_fit_names_the_zone_and_the_depth() -> None:
    request = searched(4)
    with pytest.raises(InvalidInput, match=r"^ratio 4 leaves no attention in 2 blocks; at most 2 is possible$"):
        apply_rule(found(request, ["FAFF"]), request, 2)
    with pytest.raises(
        InvalidInput, match=r"^ratio 2 asks for 4 attention blocks; there is room for 2 in slots 3-4 of 8$"
    ):
        apply_rule(found(request, ["FAFF"]), request, 8, ratio=Fraction(2))


def supported(**confirmation: Any) -> Statement:
    families = [["attention", "attention", "ffn", "ffn", "ffn", "ffn"]] * 5
    (position,) = [each for each in state(families) if each.kind == "position"]
    return dataclasses.replace(position, verdict="supported", confirmation=confirmation or None)


@pytest.mark.parametrize(
    ("n_slots", "options", "verdict"),
    [
        (6, {}, "supported"),
        (6, {"d_model": 64}, "supported"),
        (12, {}, "suggested"),
        (6, {"d_model": 128}, "suggested"),
        (6, {"ratio": Fraction(2)}, "suggested"),
        (6, {"ratio": Fraction(3)}, "suggested"),
    ],
    ids=["as found", "its own width", "another depth", "another width", "another ratio", "the ratio of its seeds"],
)
def test_a_statement_is_supported_by_the_layout_that_was_trained_alone(
    n_slots: int, options: dict[str, Any], verdict: str
) -> None:
    request = searched(6)
    # Beside what others say, AASF.. may be what was trained; one statement alone would make another layout.
    trained = ["attention", "attention", "sgu", "ffn", "identity", "identity"]
    rule = found(request, ["AAFFFF"] * 5)
    for confirmation in ({"layout": "AASF..", "slots": trained}, {"layout": "AASF.."}):
        layout = apply_statement(supported(**confirmation), rule, request, n_slots, **options)
        assert layout.verdict == verdict
        if verdict == "supported":
            assert (layout.labels, layout.ratio) == (tuple(trained), 2)
            assert layout.statement.endswith(": supported, and this is the layout that was retrained")
        else:
            assert len(layout.labels) == n_slots
            assert layout.statement.endswith(": suggested, and this layout was not trained")


def test_a_layout_made_anew_is_supported_where_it_is_the_network_that_was_trained() -> None:
    request = searched(6)
    rule = found(request, ["AAFFFF"] * 5)
    for ratio in (None, Fraction(3)):
        assert apply_statement(supported(layout="AAFFFF"), rule, request, 6, ratio=ratio).verdict == "supported"


@pytest.mark.parametrize("confirmation", [{}, {"layout": "AAFF"}, {"layout": "AAFFX."}, {"slots": ["rnn"] * 6}])
def test_what_was_trained_cannot_be_told_from_what_is_not_a_layout_of_its_space(confirmation: dict[str, Any]) -> None:
    request = searched(6)
    layout = apply_statement(supported(**confirmation), found(request, ["AAFFFF"] * 5), request, 6)
    assert (len(layout.labels), layout.verdict) == (6, "suggested")


def test_a_layout_that_breaks_its_statement_is_not_offered() -> None:
    request = searched(6)
    message = (
        "the position cannot be had at 6 slots: its layout has attention at 0.50 of the depth on average, which is not "
        "early"
    )
    with pytest.raises(InvalidInput, match=f"^{message}$"):
        apply_statement(supported(), found(request, ["AAFFFF"] * 5), request, 6, ratio=Fraction(1))


def test_letters_of_several_candidates_do_not_tell_what_was_trained() -> None:
    wide = {"label": "ffn-wide", "block": "ffn", "options": {"ratio": 8}}
    request = searched(6, "attention", "ffn", wide, "identity")
    layout = apply_statement(supported(layout="AAFFFF"), found(searched(6), ["AAFFFF"] * 5), request, 6)
    assert layout.verdict == "suggested"
