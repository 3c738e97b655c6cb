"""Architectures: strings, JSON, hashes, and the interleaved parent."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.architecture import Architecture, interleaved
from nas.config.space import Candidate, SearchSpace
from nas.errors import InvalidInput
from nas.options import MgkOptions

SPACE = SearchSpace.model_validate(
    {
        "n_slots": 4,
        "candidates": [
            "attention", "ffn", "identity", "sgu",
            {"label": "mgk3", "block": "mgk", "options": {"n_keys": 3}},
            {"label": "wide", "block": "ffn", "options": {"ratio": 8}},
        ],
    }
)  # fmt: skip
LABELS = SPACE.labels


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=12))
    undecided = draw(st.sets(st.integers(0, len(labels) - 1)))
    return Architecture(tuple(labels), SPACE.candidates, tuple(sorted(undecided)))


@given(architecture=architectures())
def test_architecture_is_the_same_after_a_round_trip_through_json(architecture: Architecture) -> None:
    again = Architecture.from_json(json.loads(json.dumps(architecture.to_json())))
    assert again == architecture
    assert hash(again) == hash(architecture)
    assert again.hash == architecture.hash


@given(architecture=architectures())
def test_string_has_one_letter_a_slot_in_order(architecture: Architecture) -> None:
    letters = dict(zip(LABELS, "AF.SMF", strict=True))
    assert str(architecture) == "".join(letters[label] for label in architecture.labels)


@given(architecture=architectures())
def test_families_group_labels_by_their_block(architecture: Architecture) -> None:
    families = dict(zip(LABELS, ("attention", "ffn", "identity", "sgu", "mgk", "ffn"), strict=True))
    assert architecture.families == tuple(families[label] for label in architecture.labels)


def test_hash_is_of_blocks_and_options_not_of_labels_or_ties() -> None:
    renamed = (Candidate(label="other", block="ffn", options={"ratio": 8}), Candidate(label="att", block="attention"))
    assert (
        Architecture(("wide", "attention"), SPACE.candidates, (1,)).hash == Architecture(("other", "att"), renamed).hash
    )
    assert Architecture(("wide",), SPACE.candidates).hash != Architecture(("ffn",), SPACE.candidates).hash
    assert Architecture(("ffn", "sgu"), SPACE.candidates).hash != Architecture(("sgu", "ffn"), SPACE.candidates).hash


def test_architectures_can_be_kept_in_sets() -> None:
    first, same, other = (Architecture((label,), SPACE.candidates) for label in ("ffn", "ffn", "sgu"))
    assert {first, same, other} == {first, other}


def test_json_holds_string_slots_and_candidates_with_their_families() -> None:
    data = Architecture(("attention", "mgk3"), SPACE.candidates, (1,)).to_json()
    assert (data["format_version"], data["string"], data["slots"], data["undecided"]) == (
        1, "AM", ["attention", "mgk3"], [1],
    )  # fmt: skip
    candidate = data["candidates"][4]
    assert (candidate["label"], candidate["block"], candidate["family"]) == ("mgk3", "mgk", "mgk")
    assert candidate["options"] == asdict(MgkOptions(n_keys=3)), "every default is written out"


def test_json_with_the_shape_tells_how_far_each_candidate_reaches() -> None:
    architecture = Architecture(("attention", "ffn"), SPACE.candidates)
    data = json.loads(json.dumps(architecture.to_json(SPACE.shape())))
    reaches = {each["label"]: each["reach"] for each in data["candidates"]}
    assert reaches["ffn"] == {"longest": None, "why": "it reads each token alone, so any length will do"}
    assert reaches["sgu"]["longest"] == SPACE.max_len  # N x N weights
    assert Architecture.from_json(data) == Architecture.from_json(architecture.to_json()) == architecture


def test_label_outside_the_space_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"^unknown label 'sgux'; the space has attention, ffn, identity, sgu, mgk3, wide$"
    ):
        Architecture(("ffn", "sgux"), SPACE.candidates)


@pytest.mark.parametrize("slot", [2, -1])
def test_undecided_slot_must_exist(slot: int) -> None:
    with pytest.raises(InvalidInput, match=rf"^undecided slot {slot} does not exist; there are 2 slots$"):
        Architecture(("ffn", "sgu"), SPACE.candidates, (slot,))


def test_json_of_another_format_is_refused() -> None:
    data = Architecture(("ffn",), SPACE.candidates).to_json()
    with pytest.raises(InvalidInput, match=r"^architecture has format_version 2; known: 1$"):
        Architecture.from_json({**data, "format_version": 2})


@pytest.mark.parametrize(("n_slots", "string"), [(1, "A"), (4, "AFAF"), (5, "AFAFA")])
def test_interleaved_parent_alternates_attention_and_ffn(n_slots: int, string: str) -> None:
    assert str(interleaved(SearchSpace(n_slots=n_slots))) == string


def test_interleaved_parent_takes_the_first_candidate_of_a_family() -> None:
    space = SearchSpace.model_validate(
        {"n_slots": 2, "candidates": [{"label": "wide", "block": "ffn"}, "ffn", "attention"]}
    )
    assert interleaved(space).labels == ("attention", "wide")


def test_interleaved_parent_needs_both_families() -> None:
    space = SearchSpace.model_validate({"n_slots": 2, "candidates": ["attention", "sgu"]})
    with pytest.raises(
        InvalidInput, match=r"^the interleaved parent needs a candidate of family 'ffn'; the space has none$"
    ):
        interleaved(space)
