"""The bench makes and reads every format, and tells what that took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_format_is_made_and_read(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "ingest.py"), "--gigabytes", "0.001", "--folder", str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=200, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    results = json.loads(done.stdout.splitlines()[-1])["results"]
    assert [each["format"] for each in results] == [
        "text", "jsonl", "short", "csv", "parquet", "jsonl.gz", "jsonl.zst", "tokens",
    ]  # fmt: skip
    assert all(each["peak_mb"] < 500 for each in results)
    assert not any(tmp_path.iterdir())
