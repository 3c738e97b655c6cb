"""The page's types are those of the OpenAPI document: made again here and compared."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from api.openapi import document
from db import events

ROOT = Path(__file__).parents[2]
WEB = ROOT / "api" / "web"


def test_the_types_of_the_page_are_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text(document())
    command = [sys.executable, "hatch_build.py", "npm", "run", "types", "--", f"{tmp_path}/openapi.json"]
    done = subprocess.run(
        [*command, "-o", f"{tmp_path}/schema.d.ts"], cwd=ROOT, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    if (tmp_path / "schema.d.ts").read_text() != (WEB / "src" / "api" / "schema.d.ts").read_text():
        pytest.fail("api/web/src/api/schema.d.ts is out of date; make types writes it again")


def test_the_page_listens_to_every_type_of_event() -> None:
    source = (WEB / "src" / "api" / "events.ts").read_text()
    listed = re.search(r"EVENT_TYPES = \[(.*?)\]", source, re.DOTALL)
    assert listed is not None
    assert sorted(re.findall(r'"(\w+)"', listed[1])) == sorted(events.TYPES)
