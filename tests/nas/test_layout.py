"""A request built around the model there is: what stands, what stays and what may not come."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.config.space import SlotChoice
from nas.errors import InvalidInput
from nas.layout import around
from tests import tiny

TWO_FFN: dict[str, Any] = {
    "space": {
        "candidates": ["attention", "ffn", {"label": "ffn-2", "block": "ffn", "options": {"ratio": 2}}, "identity"]
    }
}


def built(layout: str | Architecture | None, *forbid: str, request: dict[str, Any] | None = None) -> SearchRequest:
    body = {"preset": "decoder"} if request is None else request
    return SearchRequest.model_validate(around(body, layout, forbid))


@pytest.mark.parametrize(
    ("layout", "present", "fixed"),
    [
        ("AFS.M", ["attention", "ffn", "sgu", "identity", "mgk"], []),
        ("A!FF!", ["attention", "ffn", "ffn"], [0, 2]),
        ("attention, ffn!,?", ["attention", "ffn", None], [1]),
        ("A?", ["attention", None], []),
    ],
    ids=["letters", "fixed letters", "labels", "open"],
)
def test_a_string_says_what_stands_in_each_slot(layout: str, present: list[str | None], fixed: list[int]) -> None:
    space = built(layout).space
    assert [choice.present for choice in space.layout] == present
    assert [slot for slot, choice in enumerate(space.layout) if choice.fixed] == fixed
    assert space.n_slots == len(present)


def test_the_rest_of_the_request_stays_and_the_present_model_is_a_baseline() -> None:
    plain, request = SearchRequest.model_validate({"preset": "decoder"}), built("AFAF")
    assert request.retrain.baselines == ("interleaved", "present")
    assert request.space.present == ("attention", "ffn", "attention", "ffn")
    same = {"n_slots": plain.space.n_slots, "layout": ()}
    assert request.space.model_copy(update=same) == plain.space
    assert request.model_copy(update={"space": plain.space, "retrain": plain.retrain}) == plain
    assert built("AFAF", request={}).space == request.space  # a request without a space means that of the decoder
    assert built("AFA?").retrain.baselines == ("interleaved",)  # no model that could be trained
    stated = {"preset": "decoder", "retrain": {"baselines": []}}
    assert built("AFAF", request=stated).retrain.baselines == ()
    encoder = built("sgu,amlp", request={"preset": "gmlp-small"})
    assert encoder.retrain.baselines == ("present",)  # the preset's space has no interleaved parent


def test_a_request_may_name_the_present_model_before_its_layout_is_there() -> None:
    stated = {"preset": "decoder", "retrain": {"baselines": ["present"]}}
    assert built("AFAF", request=stated).retrain.baselines == ("present",)
    with pytest.raises(ValidationError, match="does not say what stands in each slot"):
        built("AFA?", request=stated)


def test_nothing_said_changes_nothing() -> None:
    assert around({"preset": "decoder"}) == {"preset": "decoder"}


def test_what_is_forbidden_may_not_stand_there() -> None:
    space = built("AFSF", "sgu", "M@1,3-4", "F@2").space
    allowed = [[label for label, may in zip(space.labels, row, strict=True) if may] for row in space.allowed]
    assert allowed == [
        ["attention", "ffn", "identity"],
        ["attention", "identity", "mgk"],
        ["attention", "ffn", "identity"],
        ["attention", "ffn", "identity"],
    ]
    assert space.present == ("attention", "ffn", "sgu", "ffn")  # what stands there now may be what has to go


def test_without_a_layout_blocks_are_forbidden_in_the_slots_of_the_request() -> None:
    space = built(None, "sgu@8").space
    assert [choice.forbidden for choice in space.layout] == [()] * 7 + [("sgu",)]
    assert built(
        None, "mgk", request={"preset": "decoder", "space": {"n_slots": 2, "layout": ["sgu", "ffn"]}}
    ).space.layout == (
        SlotChoice(present="sgu", forbidden=("mgk",)),
        SlotChoice(present="ffn", forbidden=("mgk",)),
    )


def test_an_architecture_of_the_same_candidates_is_a_layout() -> None:
    space = SearchRequest.model_validate({"preset": "decoder"}).space
    found = Architecture(("mgk", "ffn", "identity"), space.candidates)
    assert built(Architecture.from_json(found.to_json(space.shape()))).space.present == ("mgk", "ffn", "identity")


def test_an_architecture_of_other_candidates_is_refused() -> None:
    found = Architecture(("attention", "ffn"), tiny.request().space.candidates)
    message = (
        r"^candidate 'attention' of the architecture is attention with \{.*\}, and of the space attention with \{.*\}; "
        "give the space the same candidate$"
    )
    with pytest.raises(InvalidInput, match=message):
        built(found)


@pytest.mark.parametrize(
    ("request_", "layout", "forbid", "message"),
    [
        ({}, "", [], r"the layout is empty; it has one letter for each slot, such as AFAF"),
        (
            {}, "AXF", [],
            r"'X' names no candidate; the space has A attention, F ffn, \. identity, S sgu, M mgk, "
            r"and \? leaves a slot free",
        ),
        ({}, "A?!", [], r"layout 'A\?!' has a ! that follows no candidate; one ! behind a letter keeps its slot"),
        (TWO_FFN, "AF", [], r"letter 'F' stands for ffn and ffn-2; write labels, joined by commas"),
        (
            {"space": {"n_slots": 4}}, "AF", [],
            r"the layout has 2 slots and space.n_slots is 4; leave n_slots out",
        ),
        ({}, "AF", ["sgu@"], r"'sgu@' is no LABEL or LABEL@SLOTS, such as sgu@1,5-8"),
        ({}, "AF", ["sgu@2-3"], r"'sgu@2-3' names slots 2-3; the layout has slots 1 to 2"),
        ({}, "AF", ["sgu@0"], r"'sgu@0' names slots 0; the layout has slots 1 to 2"),
        ({}, "A!!F", [], r"layout 'A!!F' has a ! that follows no candidate; one ! behind a letter keeps its slot"),
        ({}, "!AF", [], r"layout '!AF' has a ! that follows no candidate"),
        ({}, "attention!!,ffn", [], r"layout 'attention!!,ffn' has a ! that follows no candidate"),
        ({}, "A!F", ["attention"], r"'attention' is forbidden in slot 1, which is fixed to it; forbid it elsewhere"),
    ],
    ids=[
        "empty", "unknown", "open and fixed", "ambiguous", "length", "no slots", "too far", "slot 0", "two !",
        "a leading !", "two ! of a label", "fixed",
    ],
)  # fmt: skip
def test_what_fits_nothing_is_refused_in_one_line(
    request_: dict[str, Any], layout: str, forbid: list[str], message: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"^{message}"):
        around({"preset": "decoder", **request_}, layout, forbid)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"fixed": True}, "a fixed slot needs a present label"),
        (
            {"present": "sgu", "fixed": True, "forbidden": ["sgu"]},
            "present label 'sgu' is forbidden in its own slot, which is fixed",
        ),
    ],
    ids=["nothing", "forbidden"],
)
def test_a_slot_that_is_fixed_has_what_it_is_fixed_to(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SlotChoice.model_validate(choice)
