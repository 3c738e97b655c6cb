"""What the documents show is what one gets."""

from __future__ import annotations

import json
import re
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


# Codes of the bases of others, and of what the service never answers: runners and the command line alone meet them.
NOT_ANSWERED = {"error", "database-error", "lease-lost", "export-failed", "not-available"}
RAISED = re.compile(
    r'(?:ApiError|problem)\((?:[^"]*?, )?\d{3}, "([a-z-]+)"|^    code = "([a-z-]+)"|\b40[45]: "([a-z-]+)"', re.MULTILINE
)


def test_limits_has_every_code_that_the_service_answers_with() -> None:
    sources = [path for folder in ("api", "db", "nas") for path in (ROOT / folder).glob("**/[a-z]*.py")]
    read = [path.read_text() for path in sources if "node_modules" not in path.parts]
    codes = {"".join(found) for text in read for found in RAISED.findall(text)} - NOT_ANSWERED
    assert codes > {
        "invalid-request",
        "artifact-gone",
        "invalid-http",
        "not-found",
        "method-not-allowed",
        "wrong-state",
    }
    told = set(re.findall(r"`([a-z-]+)`", (ROOT / "docs" / "limits.md").read_text()))
    assert codes - told == set()


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
