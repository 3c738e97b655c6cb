"""Seeds of the quickstart: each is kept once, and what counts as collapsed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import quickstart_seeds
from bench.quickstart_seeds import collapsed
from tests import tiny

WORD = (
    "collapse to identity: 5 slots lead with it, and with their next best candidates instead the path's loss is lower"
)


@pytest.mark.parametrize(
    ("stack", "words", "expected"),
    [
        (None, [], "nothing was derived"),
        ("......", [], ". in every slot"),
        ("SSSSSS", [], "S in every slot"),
        ("A.....", [WORD], WORD),
        ("A.....", ["one candidate everywhere: 'ffn' leads"], None),  # spare, but nobody said that it is worse for it
        ("SFA.A.", [WORD], None),  # told on the way, and not so at the end
        ("A", [], None),
    ],
    ids=["nothing", "identity", "one block", "told", "spare", "recovered", "one slot"],
)
def test_what_is_collapsed(stack: str | None, words: list[str], expected: str | None) -> None:
    assert collapsed(stack, words) == expected


def test_each_seed_is_searched_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps({**tiny.request().model_dump(mode="json"), "budget": {}}))

    def shown(*arguments: str) -> dict[str, Any]:
        quickstart_seeds.main(["--request", str(request), "--folder", str(tmp_path / "kept"), *arguments])
        found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return found

    first = shown("--seeds", "1")
    assert first["of"] == 1
    (row,) = first["seeds"]
    assert row["steps"] >= 1
    assert (row["stack"] is None) == (row["reason"] is not None)
    assert row["collapsed"] == collapsed(row["stack"], [sentence for _, sentence in row["words"]])
    both = shown("--seeds", "2")
    assert both["seeds"][0] == row
    assert both["of"] == 2
    assert 0 < both["at_most"] <= 1
    assert shown("--show") == both
