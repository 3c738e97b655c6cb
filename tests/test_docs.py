"""What the documents show is what one gets."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from textwrap import dedent

import pytest

from api import show_dataset
from nas.config.request import read_request
from nas.ingest.options import Options
from nas.ingest.read import ingest

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data.md"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.json")), ids=lambda path: path.stem)
def test_an_example_is_a_request_of_its_name(path: Path) -> None:
    assert read_request(json.loads(path.read_text())).name == path.stem


def test_the_dataset_that_is_shown_is_the_one_that_the_program_above_it_makes(tmp_path: Path) -> None:
    lines = DATA.read_text().splitlines()
    start = lines.index("    $ python - > reviews.jsonl <<END") + 1
    program = dedent("\n".join(takewhile(lambda line: line != "    END", lines[start:])))
    shown = lines.index("    $ blockwright datasets show reviews") + 1
    expected = [line.removeprefix("    ") for line in takewhile(lambda line: line.startswith("    "), lines[shown:])]
    raw = tmp_path / "reviews.jsonl"
    raw.write_bytes(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
    card = ingest(raw, tmp_path / "datasets", Options.guess(raw.name), max_bytes=1 << 20)
    found = {
        "name": "reviews", "description": "uploaded documents", "kind": card.kind, "fingerprint": card.fingerprint,
        "n_bytes": card.n_bytes, "in_use_by": [], "encodings": [], "excerpt": None,
        "card": {**card.to_json(), "majority": card.majority, "samples": []},
    }  # fmt: skip
    assert [line.plain for line in show_dataset.lines(found)] == expected
