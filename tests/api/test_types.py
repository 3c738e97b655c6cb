"""The page's types are those of the OpenAPI document: made again here and compared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from api.openapi import document

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
