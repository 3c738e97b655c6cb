"""`blockwright search FILE --local` as a user runs it: real processes, a tiny search, no server."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from api.commands.files import Brought
from api.commands.local import _pinned, _read
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from tests.api.test_catalog import TABLE

ROOT = Path(__file__).parents[2]
PATIENCE_S = 200

REQUEST: dict[str, Any] = {
    "name": "local",
    "space": {"n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "candidates": ["attention", "ffn", "identity"]},
    "task": {"dataset": "mine", "train_length": 16, "serve": [{"batch": 1, "query_length": 16}]},
    "method": {
        "n_steps": 200,
        "report_every": 20,
        "checkpoint_every": 20,
        "batch_size": 2,
        "eval_windows": 2,
        "alpha_lr": 0.2,
        "prune_steps": 0,
    },
    "trials": {"n_seeds": 1},
    "retrain": {"n_steps": 10, "n_seeds": 1, "test_windows": 8},
}


def start(folder: Path, *options: str, body: dict[str, Any] = REQUEST) -> subprocess.Popen[str]:
    (folder / "request.json").write_text(json.dumps(body))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "BLOCKWRIGHT_DATA_DIR": str(folder / "data")}
    command = [sys.executable, "-m", "api.cli", "search", str(folder / "request.json"), "--local", *options]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_local_search_goes_on_after_ctrl_c_and_prints_its_result(tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("".join(f"{number} bottles of beer on the wall\n" for number in range(700)))
    options = ["--data", f"mine={text}", "--out", str(tmp_path / "out")]

    process = start(tmp_path, *options)
    checkpoints = tmp_path / "out" / "trials" / "search-0-0" / "checkpoints.json"
    deadline = time.monotonic() + PATIENCE_S
    while not checkpoints.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert "stopped; the same command goes on from here" in out
    assert "Traceback" not in err

    process = start(tmp_path, *options)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert re.search(r"probabilities of seed 0 after \d+ steps", out)  # its parsimony pass included
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert f"architecture      {result['derived']['string']}" in out
    assert (tmp_path / "out" / "export.zip").exists()

    text.write_text(text.read_text().replace("beer", "wine"))
    process = start(tmp_path, *options)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "out holds another search; give a folder of its own" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "text: the file is empty; give at least a few thousand bytes"),
        (b"\x00\x01\x02" * 10_000, "NUL"),
        (b"too short", "text: the text has 9 bytes, so that a part would be empty; give at least 100"),
    ],
    ids=["empty", "binary", "short"],
)
def test_a_text_that_cannot_be_trained_on_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "text").write_bytes(content)
    process = start(tmp_path, "--data", f"mine={tmp_path / 'text'}")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert err.startswith("blockwright: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_text_that_the_request_does_not_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    process = start(tmp_path, "--data", f"other={tmp_path / 'text'}")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert err == "blockwright: --data other is not what the request reads; its task.dataset is 'mine'\n"


def test_every_text_and_table_has_a_folder_of_its_own(tmp_path: Path) -> None:
    request = SearchRequest.model_validate(REQUEST)
    folders = set()
    for content in ("one", "two"):
        (tmp_path / "text.txt").write_text(content * 100)
        for table in (None, LatencyTable.model_validate(TABLE)):
            read = _read(request, "mine", Brought(tmp_path / "text.txt", {}), tmp_path / "read")
            pinned = _pinned(request, {"mine": read}, table)
            folders.add(pinned.model_dump_json())
            assert pinned.latency_table == (table.id if table else None)
            assert pinned.task.dataset_fingerprint == hashlib.sha256((content * 100).encode()).hexdigest()
    assert len(folders) == 4


def test_a_budget_that_nothing_meets_is_one_line_before_anything_is_read(tmp_path: Path) -> None:
    body = {**REQUEST, "space": {**REQUEST["space"], "candidates": ["attention", "ffn"]}}
    (tmp_path / "text").write_bytes(b"too short")
    body["budget"] = {"flops": {"at_most": 9}}
    process = start(tmp_path, "--data", f"mine={tmp_path / 'text'}", body=body)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (1, "")
    assert err.startswith("blockwright: budget.flops allows 9 FLOPs; the smallest architecture has ")


def test_an_unknown_dataset_is_one_line(tmp_path: Path) -> None:
    process = start(tmp_path)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert err.startswith("blockwright: unknown dataset 'mine'")
