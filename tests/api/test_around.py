"""`--around` and `--forbid`: what the commands make of them; tests/nas/test_layout.py has what a layout means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from api.commands.layout import built_around
from api.commands.refuse import Refused
from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.layout import around

DECODER = {"preset": "decoder"}


def test_a_string_and_what_is_forbidden_go_into_the_request() -> None:
    assert built_around(DECODER, "A!FAF", ["sgu"]) == around(DECODER, "A!FAF", ["sgu"])
    assert built_around(DECODER, None, None) == DECODER


def test_a_file_with_an_architecture_is_a_layout(tmp_path: Path) -> None:
    space = SearchRequest.model_validate(DECODER).space
    file = tmp_path / "architecture.json"
    file.write_text(json.dumps(Architecture(("mgk", "ffn"), space.candidates).to_json(space.shape())))
    assert built_around(DECODER, str(file), ["sgu@1"]) == around(DECODER, "MF", ["sgu@1"])


def test_a_layout_may_have_more_letters_than_the_name_of_a_file() -> None:
    assert len(built_around(DECODER, "AF" * 256, None)["space"]["layout"]) == 512


@pytest.mark.parametrize("content", [{}, {"format_version": 1, "slots": 3}], ids=["empty", "no list"])
def test_a_file_without_an_architecture_is_refused(content: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(content))
    with pytest.raises(Refused, match=r"request\.json is no architecture; it must be an architecture\.json, as "):
        built_around(DECODER, str(file), None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": "\x1b[2J"}, r": architecture has format_version '\\x1b\[2J'; known: 1$"),
        ({"slots": ["mamba"]}, r": unknown label 'mamba'; the space has "),
        ({"candidates": [{"label": 5, "block": "ffn", "options": {}}]}, r": of a candidate, label: input should be a "),
        (
            {"candidates": [{"label": "ffn", "block": "ffn", "options": [["ratio"]]}]},
            r" is no architecture; it must be",
        ),
    ],
    ids=["version", "label", "candidate", "options"],
)
def test_a_file_with_a_broken_architecture_is_named_with_what_is_wrong(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    space = SearchRequest.model_validate(DECODER).space
    file = tmp_path / "architecture.json"
    file.write_text(json.dumps({**Architecture(("ffn",), space.candidates).to_json(), **change}))
    with pytest.raises(Refused, match=f"^{file}{message}"):
        built_around(DECODER, str(file), None)
