"""Constraints against a plain reading of them, and conflicts against all subsets, on small spaces."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nas import constrain
from nas.architecture import Architecture, interleaved
from nas.config.constraints import Constraints
from nas.config.request import SearchRequest
from nas.cost import LatencyTable, flops, parameters
from nas.errors import Infeasible
from nas.exact.conflict import explain, smallest
from nas.exact.constraint import assemble
from nas.exact.solve import best
from tests import tiny

LABELS = ("attention", "ffn", "identity", "sgu")


@cache
def request(n_slots: int) -> SearchRequest:
    space = {"n_slots": n_slots, "candidates": LABELS}
    if n_slots == 3:  # one with a layout of its own
        space = {**space, "layout": [{"forbidden": ["identity"]}, {}, {"present": "ffn", "fixed": True}]}
    return tiny.request(space=space)


@cache
def table(n_slots: int) -> LatencyTable:
    return tiny.table(request(n_slots).space)


def layouts(n_slots: int) -> list[tuple[str, ...]]:
    """Every layout that the space itself allows."""
    allowed = request(n_slots).space.allowed
    return [
        tuple(LABELS[choice] for choice in path)
        for path in itertools.product(range(len(LABELS)), repeat=n_slots)
        if all(allowed[slot][choice] for slot, choice in enumerate(path))
    ]


def value(pointer: str, constraints: Constraints, labels: tuple[str, ...]) -> float:
    """What a layout has of what a constraint bounds, in the constraint's own terms."""
    kind, *rest = pointer[1:].split("/")
    architecture = Architecture(labels, request(len(labels)).space.candidates)
    if kind == "budget":
        space = request(len(labels)).space
        of = {
            "latency": lambda each: table(len(labels)).predict_ms(each, space),
            "parameters": lambda each: parameters(each, space),
            "flops": lambda each: flops(each.labels, space, 16),
        }[rest[0]]
        ratio = getattr(constraints.budget, rest[0]).ratio_to_parent
        return float(of(architecture)) / (1.0 if ratio is None else float(of(interleaved(space))))
    if kind == "counts":
        count = constraints.counts[int(rest[0])]
        return sum(each == (count.family or count.label) for each in labels)
    assert kind == "ratios"
    of_family = labels.count(constraints.ratios[int(rest[0])].family)
    return (len(labels) - labels.count("identity")) / of_family if of_family else math.inf


def bound(pointer: str, constraints: Constraints) -> tuple[float, bool]:
    """The bound, and whether it is an upper one."""
    kind, *rest = pointer[1:].split("/")
    if kind == "budget":
        asked = getattr(constraints.budget, rest[0])
        absolute = asked.ms if rest[0] == "latency" else asked.at_most
        return (asked.ratio_to_parent if absolute is None else absolute), True
    return getattr(getattr(constraints, kind)[int(rest[0])], rest[1]), rest[1] == "at_most"


def slot_of(cut: Any, n_slots: int) -> tuple[int, bool]:
    """The slot of a cut, and whether it is before it."""
    before = cut.from_slot is None and cut.from_share is None
    slot = cut.before_slot if before else cut.from_slot
    share = cut.before_share if before else cut.from_share
    return (math.floor(share * n_slots + 1e-6) if slot is None else slot), before


def holds(pointer: str, constraints: Constraints, labels: tuple[str, ...], nearer: float | None = None) -> bool:
    """Whether a layout meets one constraint, or one with another value in its place, by a plain reading."""
    kind, *rest = pointer[1:].split("/")
    if kind == "mixers_apart":
        blocks = [label for label in labels if label != "identity"]
        return not any({one, other} <= {"attention", "sgu"} for one, other in itertools.pairwise(blocks))
    if kind in ("forbidden", "forced"):
        placed = getattr(constraints, kind)[int(rest[0])]
        there = labels[placed.first : len(labels) if placed.last is None else placed.last + 1]
        return all((label in placed.labels) == (kind == "forced") for label in there)
    if kind == "cuts":
        cut = constraints.cuts[int(rest[0])]
        slot, before = slot_of(cut, len(labels))
        slot = slot if nearer is None else int(nearer)
        where = [number for number, label in enumerate(labels) if label == (cut.family or cut.label)]
        return all(number < slot if before else number >= slot for number in where)
    limit, upper = bound(pointer, constraints)
    limit = limit if nearer is None else nearer
    reached = value(pointer, constraints, labels)
    if math.isinf(reached):
        return not upper or set(labels) == {"identity"}
    return reached <= limit * (1 + 1e-9) if upper else reached >= limit - 1e-9


def pairs(low: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A lower bound, an upper one or both."""
    return st.one_of(
        st.fixed_dictionaries({"at_least": low}),
        st.fixed_dictionaries({"at_most": low}),
        st.tuples(low, low).map(lambda ends: {"at_least": min(ends), "at_most": max(ends)}),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, Constraints]:
    """A depth, and constraints some of which cannot be met together."""
    n = draw(st.integers(2, 4))
    label = st.sampled_from(LABELS)
    named = st.one_of(label.map(lambda name: {"family": name}), label.map(lambda name: {"label": name}))
    slots = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).map(
        lambda ends: {"first": min(ends), "last": max(ends)}
    )
    placed = st.tuples(st.lists(label, min_size=1, max_size=2, unique=True), slots).map(
        lambda parts: {"labels": parts[0], **parts[1]}
    )
    cut = st.one_of(
        st.tuples(st.sampled_from(["before_slot", "from_slot"]), st.integers(0, n)),
        st.tuples(st.sampled_from(["before_share", "from_share"]), st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0])),
    ).map(lambda pair: {pair[0]: pair[1]})
    ratio = st.sampled_from([1.0, 1.5, 2.0, 3.0])
    budget: dict[str, Any] = {}
    if draw(st.booleans()):
        ms = st.floats(1.0, 3.0 * n + 1).map(lambda each: {"ms": each})
        budget["latency"] = draw(st.one_of(ms, st.floats(0.2, 1.5).map(lambda each: {"ratio_to_parent": each})))
    if draw(st.booleans()):
        budget["parameters"] = {"ratio_to_parent": draw(st.floats(0.05, 1.5))}
    if draw(st.booleans()):
        budget["flops"] = {"at_most": draw(st.floats(1e3, 2e5))}
    body = {
        "budget": budget,
        "counts": draw(st.lists(st.tuples(named, pairs(st.integers(0, n))).map(lambda p: p[0] | p[1]), max_size=2)),
        "ratios": draw(
            st.lists(
                st.tuples(st.sampled_from(["attention", "ffn", "sgu"]), pairs(ratio)).map(
                    lambda p: {"family": p[0], **p[1]}
                ),
                max_size=1,
            )
        ),
        "forbidden": draw(st.lists(placed, max_size=1)),
        "forced": draw(st.lists(placed, max_size=1)),
        "cuts": draw(st.lists(st.tuples(named, cut).map(lambda p: p[0] | p[1]), max_size=1)),
        "mixers_apart": draw(st.booleans()),
    }
    return n, Constraints.model_validate(body)


def solved(n: int, constraints: Constraints) -> Any:
    items = constrain.read(constraints, request(n), table(n))
    scores = np.random.default_rng(n).normal(size=(n, len(LABELS)))
    held = constrain.frame(request(n).space, scores, table(n).slot_ms(request(n).space))
    return items, held, scores


@given(case=cases())
def test_the_best_architecture_under_any_mix_of_constraints_is_found(case: tuple[int, Constraints]) -> None:
    n, constraints = case
    items, held, scores = solved(n, constraints)
    pointers = [item.where for item in items]
    within = [labels for labels in layouts(n) if all(holds(pointer, constraints, labels) for pointer in pointers)]
    found = best(assemble(held, items))
    assert bool(found) == bool(within)
    if found:
        totals = [sum(scores[slot, LABELS.index(label)] for slot, label in enumerate(labels)) for labels in within]
        assert tuple(LABELS[choice] for choice in found[0].choices) in within
        assert found[0].score == pytest.approx(max(totals), abs=4e-9)


@given(case=cases())
def test_a_conflict_is_the_smallest_and_each_nearest_value_is_feasible_and_nearest(
    case: tuple[int, Constraints],
) -> None:
    n, constraints = case
    items, held, _ = solved(n, constraints)
    assume(not best(assemble(held, items)))
    everything = layouts(n)

    def met(pointers: set[str], **nearer: float) -> bool:
        return any(
            all(holds(pointer, constraints, labels, nearer.get(pointer)) for pointer in pointers)
            for labels in everything
        )

    pointers = {item.where for item in items}
    assert len(pointers) == len(items)
    error = explain(held, items)
    conflict = {each.pointer for each in error.conflict}
    assert not met(conflict)
    for size in range(len(conflict)):  # no smaller set is one
        assert all(met(set(some)) for some in itertools.combinations(pointers, size))
    for each in error.conflict:
        others = (pointers if each.alone else conflict) - {each.pointer}
        kind = each.pointer.split("/")[1]
        if kind in ("forbidden", "forced", "mixers_apart"):
            assert each.nearest is None
            continue
        if each.nearest is None:
            assert not met(conflict, **{each.pointer: 1e12 if each.upper else 0.0})
            continue
        assert met(others | {each.pointer}, **{each.pointer: each.nearest})
        step = 1 if kind in ("counts", "cuts") else 1e-6 * each.nearest
        assert not met(others | {each.pointer}, **{each.pointer: each.nearest - step * (1 if each.upper else -1)})
        if not each.alone:  # beside all others, nothing of it would do
            far = (1e12 if each.upper else 0.0) if kind != "cuts" else (n if each.upper else 0)
            assert not met(pointers, **{each.pointer: far})


def conflict_of(n: int, body: dict[str, Any]) -> Infeasible:
    constraints = Constraints.model_validate(body)
    items, held, _ = solved(n, constraints)
    assert smallest(held, items)
    return explain(held, items)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"budget": {"latency": {"ms": 0.5}}}, "no architecture has latency at most 0.5 ms (1 ms can be met)"),
        (
            {
                "budget": {"latency": {"ms": 5.0}},
                "counts": [{"family": "attention", "at_least": 2}],
                "mixers_apart": True,
            },
            "no architecture has all of: latency at most 5 ms (9 ms can be met); at least 2 slots of attention "
            "(1 slot can be met); without any one of them the others can be met",
        ),
        (
            {"forced": [{"labels": ["attention"], "first": 0, "last": 1}], "mixers_apart": True},
            "no architecture has all of: attention in slots 1-2; no mixer directly behind a mixer; without any one "
            "of them the others can be met",
        ),
        (
            {
                "cuts": [{"family": "attention", "before_share": 0.25}],
                "counts": [{"label": "attention", "at_least": 2}],
            },
            "no architecture has all of: at least 2 slots of attention (1 slot can be met); attention only before "
            "slot 2, 0.25 of the depth (slot 3 can be met); without any one of them the others can be met",
        ),
        (
            {"ratios": [{"family": "attention", "at_least": 3}], "counts": [{"family": "attention", "at_least": 2}]},
            "no architecture has all of: at least 2 slots of attention (1 slot can be met); all blocks : attention "
            "blocks at least 3 : 1 (2 : 1 can be met); without any one of them the others can be met",
        ),
    ],
    ids=["one", "budget and count", "no values", "cut", "ratio"],
)  # fmt: skip
def test_a_conflict_is_told_in_one_line(body: dict[str, Any], message: str) -> None:
    assert str(conflict_of(4, body)) == message


def test_no_slot_is_not_less_than_none() -> None:
    forbidden = [{"labels": ["attention"]}]
    error = conflict_of(2, {"counts": [{"family": "attention", "at_least": 1}], "forbidden": forbidden})
    assert "at least 1 slot of attention (0 slots can be met)" in str(error)
    assert [str(each.nearest) for each in error.conflict] == ["0.0", "None"]


def test_values_are_rounded_to_where_they_can_be_met() -> None:
    n = 4
    ratio = {"family": "ffn", "at_least": 4}
    error = conflict_of(n, {"ratios": [ratio], "counts": [{"family": "ffn", "at_least": 3}]})
    assert "(1.333 : 1 can be met)" in str(error)
    assert [each.nearest for each in error.conflict] == [1, pytest.approx(4 / 3)]


def test_a_budget_as_a_ratio_is_told_as_one() -> None:
    small = {"parameters": {"ratio_to_parent": 0.01}}
    error = conflict_of(4, {"budget": small, "counts": [{"family": "ffn", "at_least": 1}]})
    (budget,) = [each for each in error.conflict if each.pointer == "/budget/parameters"]
    assert budget.words.startswith("parameters at most 0.01 of the interleaved parent's ")
    assert 0.2 < (budget.nearest or 0) < 0.4
