"""`make demo` as a user runs it, on a tiny request: what it prints and leaves, and that nothing goes on running."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests import tiny

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.ray


def start(out: Path, request_file: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--request", str(request_file), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def left_running(out: Path) -> list[str]:
    """Processes whose command line or environment names the demo's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            named = [*process.cmdline(), *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        if any(str(out) in text for text in named):
            found.append(f"{process.pid} {' '.join(process.cmdline())[:120]}")
    return found


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    # The smallest of the requests tried whose alpha moves well beyond chance: three seconds a seed.
    request = tiny.request(
        name="tiny demo",
        space={"d_model": 32, "max_len": 32, "candidates": ["attention", "ffn", "identity", "sgu"]},
        task={"dataset": "python-docs", "train_length": 32, "serve": [{"batch": 2, "query_length": 32}]},
        method={
            "n_steps": 500, "report_every": 100, "checkpoint_every": 100, "lr": 2e-2, "batch_size": 8,
            "alpha_share": 0.4, "tau_end": 0.5,
        },
        trials={"n_seeds": 2},
        budget={"latency": {"ratio_to_parent": 2.0}},
    )  # fmt: skip
    path = tmp_path / "request.json"
    path.write_text(request.model_dump_json())
    return path


def test_demo_prints_the_result_and_leaves_a_model_that_runs(tmp_path: Path, request_file: Path) -> None:
    out = tmp_path / "demo"
    demo = start(out, request_file)
    printed, _ = demo.communicate(timeout=800)
    assert demo.returncode == 0, printed
    for expected in ("probabilities of seed 0", "architecture", "bits per byte", "repeatability"):
        assert expected in printed
    assert re.search(r"watch it at http://127\.0\.0\.1:\d+/searches/[0-9a-f-]{36}\n", printed)
    assert re.search(
        r"1 search, [12] seeds?: (suggested|not supported)", printed
    )  # a seed that moved nothing is not counted
    assert "The " in printed.split("torch and safetensors")[1]  # the sample goes on from its prompt
    result = json.loads((out / "result.json").read_text())
    assert {"architectures", "quality", "latency", "seconds"} <= set(result)
    assert result["export"]["logits_max_abs_difference"] <= 1e-5
    manifest = json.loads((out / "export" / "manifest.json").read_text())
    assert {"config.json", "architecture.json", "model.safetensors", "tokenizer.json", "model.py"} <= set(
        manifest["files"]
    )
    for name, entry in manifest["files"].items():
        assert hashlib.sha256((out / "export" / name).read_bytes()).hexdigest() == entry["sha256"]
    assert left_running(out) == []


def test_demo_interrupted_cleans_up(tmp_path: Path, request_file: Path) -> None:
    out = tmp_path / "demo"
    demo = start(out, request_file)
    deadline = time.monotonic() + 400
    while not (out / "data" / "ray.json").exists() and time.monotonic() < deadline:  # Ray is up: the most to clean
        time.sleep(0.2)
    assert (out / "data" / "ray.json").exists()
    demo.send_signal(signal.SIGINT)
    printed, _ = demo.communicate(timeout=400)
    assert demo.returncode == 1
    assert "interrupted; the service has been stopped" in printed
    assert "Traceback" not in printed
    assert left_running(out) == []
