"""The parts of a report alone: numbers as words, JSON of any version, charts, the front, which reports are read."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.report import plot, read, steps, svg, words
from nas.report.axis import Axis
from nas.report.data import evenly
from nas.report.document import Ref, plain
from nas.report.front import unbeaten
from nas.report.layouts import Layout
from nas.report.looks import looks, string
from nas.report.ratio_range import FROM, ratio_range
from nas.statements import RANGE_SEEDS, state


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (words.interval(-0.0630, -0.0365), "-0.0630 to -0.0365"),
        (words.interval(None, 1.0), "no interval"),
        (words.interval(0.75, 0.806, 3, sign=False), "0.750 to 0.806"),
        (words.signed(None), words.NONE),
        (words.short(1234567.0), "1.2346e+06"),
        (words.whole(1234567), "1,234,567"),
        (words.count(1, "seed"), "1 seed"),
        (words.count(2, "search", "searches"), "2 searches"),
        (words.slots([4, 0, 2, 3]), "slots 1, 3-5"),
        (words.slots([7]), "slot 8"),
        (words.listed(["a"]), "a"),
        (words.listed(["a", "b", "c"]), "a, b and c"),
        (words.cut("abcdef", 4), "abc…"),
        (words.serve("decode", 1, 8), "decode of 1 x 8 tokens"),
        (words.serve("prefill", 2, 16, 24), "prefill of 2 x 16 tokens behind 24 in memory"),
        (str(words.decimals(0.0012, None)), "4"),
        (str(words.decimals(0.0)), "3"),
    ],
)
def test_numbers_are_told_with_the_digits_that_they_need(found: str, text: str) -> None:
    assert found == text


@pytest.mark.parametrize(
    ("value", "number"), [(1, 1.0), (True, None), ("1", None), (math.nan, None), (-math.inf, None), (10**400, None)]
)
def test_only_a_finite_number_is_one(value: object, number: float | None) -> None:
    assert read.number(value) == number


def test_json_of_another_shape_is_empty() -> None:
    assert read.at({"a": [1]}, "a", "b") is None
    assert read.mappings([1, {"a": 1}, None]) == [{"a": 1}]
    assert read.matrix("abc") == ()
    assert read.wholes([1, 2.5, "3", 4.0]) == (1, 4)
    assert read.by_seed({"7": 1.5, "8": None}, [7, 8, 9]) == (1.5, None, None)
    assert read.by_seed([1.5], [7, 8]) == (1.5, None)


@given(st.lists(st.integers(), max_size=300, unique=True), st.integers(2, 40))
def test_reports_are_taken_evenly_with_the_first_and_the_last(found: list[int], most: int) -> None:
    taken = evenly(found, most)
    assert len(taken) == min(len(found), most)
    assert list(taken) == [each for each in found if each in set(taken)]
    if found:
        assert (taken[0], taken[-1]) == (found[0], found[-1])


@pytest.mark.parametrize(("n_slots", "n"), [(8, 16), (200, 8), (512, 4)])
def test_of_a_deep_space_fewer_matrices_are_drawn(n_slots: int, n: int) -> None:
    assert len(steps.with_matrices(range(90), n_slots)) == n


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_a_scale_holds_every_value_and_has_ticks(values: list[float]) -> None:
    scale = plot.scale(values, 0, 100)
    assert all(-1e-6 <= scale(value) <= 100 + 1e-6 for value in values)
    ticks = plot.ticks(scale, 5)
    assert len(ticks) <= 7
    assert all(scale.low - 1e-6 <= tick <= scale.high + 1e-6 for tick in ticks)


def layout(name: str, cost: float, mean: float) -> Layout:
    return Layout(name, (), cost_ms=cost, mean=mean)


def test_the_front_is_what_no_other_beats_in_both() -> None:
    found = [layout("a", 3, 1.0), layout("b", 1, 2.0), layout("c", 2, 2.5), layout("d", 3, 1.5), layout("e", 1, 2.0)]
    assert [each.name for each in unbeaten(found)] == ["b", "e", "a"]


def test_attributes_and_texts_of_a_drawing_are_escaped() -> None:
    assert (
        svg.tag("a", class_='"><b', x=1.5, y=-0.001, stroke_width=None)
        == '<a class="&quot;&gt;&lt;b" x="1.5" y="0"></a>'
    )
    assert "&lt;b&gt; &amp;" in svg.words(0, 0, "<b>\n&")


@pytest.mark.parametrize(("n_slots", "column"), [(1, 40.0), (32, 20.0), (512, 5.0)])
def test_columns_are_as_wide_as_there_is_room(n_slots: int, column: float) -> None:
    axis = Axis(n_slots)
    assert axis.column == column
    assert axis.x(n_slots) <= axis.width


def test_a_look_is_that_of_the_block_and_unknown_ones_are_grey() -> None:
    drawn = looks(["attention", {"label": "mine", "block": "mgk"}, {"label": "x", "block": "elsewhere"}, 7])
    assert string(["attention", "mine", "x", "nobody"], drawn) == "AM??"
    assert (drawn["mine"].family, drawn["x"].colour) == ("mgk", "#888888")
    assert drawn["attention"].ink in ("#111111", "#ffffff")


@pytest.mark.parametrize(
    ("own", "short"),
    [("0190a000-0000-7000-8000-00000abcdef1", "0abcdef1"), ("f" * 32, "ffffffff"), ("search-0-0", "search-0-0")],
)
def test_an_id_is_short_where_it_is_told_apart(own: str, short: str) -> None:
    assert Ref("trial", own).short == short


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        ([["attention", "ffn", "ffn", "ffn"]] * 3 + [["attention", "attention", "ffn", "ffn"]] * 3, "2 : 1 to 4 : 1"),
        ([["attention", "ffn", "ffn"]] * 5 + [["ffn"] * 3], "3 : 1 to none"),
        ([["attention", "ffn", "ffn"]] * 4 + [["ffn"] * 3], None),
        ([["attention", "ffn", "ffn"]] * 5, None),
    ],
    ids=["six seeds", "one of six without", "five, one without", "five"],
)
def test_a_ratio_tells_its_range_over_the_seeds(seeds: list[list[str]], told: str | None) -> None:
    ratio, *others = [dataclasses.asdict(each) for each in state(seeds)]
    assert (ratio["kind"], ratio_range(ratio)) == ("ratio", told)
    assert not any(map(ratio_range, others))
    assert FROM == RANGE_SEEDS


def test_a_text_gives_no_orders() -> None:
    assert plain("a\x1b[31mb\r\n\u202ec") == "a [31mb c"
