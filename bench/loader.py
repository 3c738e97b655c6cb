"""Does training wait for its data? Share of a training step that drawing its batch takes, and time to the first batch.

A step is one of a retraining of the interleaved parent with the quickstart's model: the cheapest step there is, so that
the shares are the largest. One thread; the clock is this thread's processor time, so what other programs take away does
not count. The first batch is timed by the wall clock in a fresh process, its imports apart; what the system keeps of
the file in memory is dropped before, where it lets us.

    python bench/loader.py [--quick] [--steps 16] [--mebibytes 1024] [--data bytes words] [--folder FOLDER]

B batch, T tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from bench.kept import ROOT, commit
from nas.architecture import interleaved
from nas.catalog import TASKS
from nas.config.request import SearchRequest, read_request
from nas.data.encode import encode
from nas.data.parts import Parts
from nas.data.pin import pin_synthetic
from nas.data.streams import Stream
from nas.data.synthetic.generated import synthetic_parts
from nas.errors import InvalidInput
from nas.ingest.card import Card, Dataset
from nas.ingest.options import Options
from nas.ingest.read import ingest
from nas.retrain import Retraining

SHARE_GOAL, FIRST_GOAL_S = 0.02, 1.0
SIZES = {"quickstart": (128, 8), "long": (512, 32)}  # T, B
LANGUAGE = ("bytes", "words", "documents")

FIRST_BATCH = """
import sys, time
began = time.perf_counter()
from pathlib import Path
import torch
from nas.config.task import Task
from nas.data.encoded import open_encoded
imported = time.perf_counter()
encoded = open_encoded(Path(sys.argv[1]))
task = Task(sizes=encoded.sizes)
batch = encoded.parts(task).weights.batch(task, 32, torch.Generator().manual_seed(0))
print(time.perf_counter() - imported, imported - began)
"""


@dataclass(frozen=True)
class Row:
    """Milliseconds of processor time: the mean of drawing a batch, since most draw nothing, and the median step."""

    data: str
    size: str
    loader_ms: float
    step_ms: float

    @property
    def share(self) -> float:
        return self.loader_ms / self.step_ms


def prose(n_bytes: int) -> Iterator[bytes]:
    """Lines of made-up words, frequent ones more often, the same at every call; every 8 MiB they begin again."""
    chance = random.Random(0)
    words = [f"{chance.getrandbits(32):x}"[: chance.randint(2, 8)] for _ in range(20_000)]
    lines = []
    for _ in range(100_000):
        line = [words[min(int(chance.paretovariate(0.8)), len(words)) - 1] for _ in range(chance.randint(4, 16))]
        lines.append(" ".join(line))
    block = "\n".join(lines).encode()[: 8 << 20] + b"\n"
    while n_bytes > 0:
        yield block[-n_bytes:]
        n_bytes -= len(block)


def dataset(folder: Path, name: str, n_bytes: int) -> Dataset:
    """A dataset as ingestion makes it."""
    raw = folder / name
    with raw.open("wb") as file:
        if name != "documents":
            file.writelines(prose(n_bytes))
        else:
            lines = b"".join(prose(n_bytes)).decode().splitlines()
            for number, line in enumerate(lines):
                row = {"text": f"{number} {line}", "label": "long" if len(line) > 50 else "short"}
                file.write(json.dumps(row).encode() + b"\n")
    options = Options(format="jsonl" if name == "documents" else "text")
    card = ingest(raw, folder, options, max_bytes=1 << 40, keep_raw=False)
    raw.unlink(missing_ok=True)
    return Dataset(folder / card.file_name, card)


def request(name: str, size: str) -> SearchRequest:
    """The quickstart's model on other data and at another size.

    Raises:
        InvalidInput: a synthetic task has not this length.
    """
    length, batch_size = SIZES[size]
    body: dict[str, Any] = json.loads((ROOT / "examples" / "quickstart.json").read_text())
    body["space"]["max_len"] = length
    body["method"]["batch_size"] = batch_size
    body["method"]["eval_windows"] = 2
    body["retrain"]["test_windows"] = 8
    task: dict[str, Any] = {"train_length": length, "dataset": name}
    objective = "causal_lm"
    if name in TASKS:
        objective = TASKS[name].objective
    elif name == "documents":
        objective, task["tokenizer"] = "sequence_classification", "words"
    else:
        task["tokenizer"] = name
    body["task"] |= {"objective": objective, "tokenizer": "bytes", **task}
    if objective != "causal_lm":
        unrolled = name in TASKS and TASKS[name].unrolled
        whole = "none" if objective == "token_classification" else "mean"
        body["space"]["backbone"] = {"pooling": "unroll" if unrolled else whole}
    return read_request(body)


def prepared(name: str, size: str, folder: Path, n_bytes: int) -> tuple[SearchRequest, Parts]:
    """The request with its sizes, and its parts; text is encoded at the first call."""
    asked = request(name, size)
    if name in TASKS:
        pinned = pin_synthetic(asked)
        return pinned, synthetic_parts(pinned.task)
    kept = folder / f"{name}.json"
    if not kept.exists():
        made = dataset(folder, name, n_bytes)
        kept.write_text(json.dumps({"path": str(made.path), "card": made.card.to_json()}))
    told = json.loads(kept.read_text())
    found = Dataset(Path(told["path"]), Card.from_json(told["card"]))
    encoded = encode(found.path, found.card, asked.task.tokenizer, folder / "cache")
    pinned = asked.with_data(encoded.fingerprint, encoded.sizes)
    return pinned, encoded.parts(pinned.task)


def measured(name: str, size: str, asked: SearchRequest, parts: Parts, n_steps: int) -> Row:
    """Loader and step, timed apart: a step's own time holds that of its batch."""
    resolved = asked.resolve({}, seed=0)
    training = Retraining(resolved, interleaved(resolved.space), parts=parts)
    stream = Stream(parts.training, resolved, torch.Generator().manual_seed(1), "cpu")
    loads, steps = [], []
    for number in range(n_steps + 2):
        began = time.thread_time()
        training.advance()
        stepped = time.thread_time()
        stream.next()
        if number >= 2:  # the first two make buffers and fill caches
            steps.append(stepped - began)
            loads.append(time.thread_time() - stepped)
    return Row(name, size, 1e3 * statistics.mean(loads), 1e3 * statistics.median(steps))


def first_batch(folder: Path) -> tuple[float, float]:
    """Seconds to the first batch in a fresh process, and of its imports before."""
    (encoded,) = [path.parent for path in folder.glob("cache/[!.]*/card.json") if is_bytes(path)]
    with (encoded / "tokens.bin").open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    asked = [sys.executable, "-c", FIRST_BATCH, str(encoded)]
    ran = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    first, imports = map(float, ran.stdout.split())
    return first, imports


def is_bytes(card: Path) -> bool:
    return bool(json.loads(card.read_text())["tokenizer"]["type"] == "bytes")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 MiB and one step, to see that it runs")
    parser.add_argument("--steps", type=int, default=16, help="timed steps of each row")
    parser.add_argument("--mebibytes", type=int, default=1024, help="of the text that is read as bytes")
    parser.add_argument("--data", nargs="+", choices=[*LANGUAGE, *TASKS], default=[*LANGUAGE, *TASKS])
    parser.add_argument("--folder", type=Path, help="where datasets go, and stay; without it they are removed")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    n_bytes = (2 if chosen.quick else chosen.mebibytes) << 20
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{'data':<18} {'size':<10} {'loader, ms':>10} {'step, ms':>9} {'share':>7}")
        for size in SIZES if not chosen.quick else ("quickstart",):
            for name in chosen.data:
                try:
                    asked, parts = prepared(name, size, folder, n_bytes if name == "bytes" else min(n_bytes, 8 << 20))
                except InvalidInput as error:
                    print(f"{name:<18} {size:<10} left out: {error}")
                    continue
                row = measured(name, size, asked, parts, 1 if chosen.quick else chosen.steps)
                rows.append(row)
                print(f"{name:<18} {size:<10} {row.loader_ms:10.3f} {row.step_ms:9.1f} {row.share:7.2%}", flush=True)
        prepared("bytes", "quickstart", folder, n_bytes)
        first_s, imports_s = first_batch(folder)
    print(f"\nfirst batch of {n_bytes >> 20:,} MiB: {first_s:.3f} s, behind {imports_s:.1f} s of imports")
    missed = [f"{row.data} {row.size}" for row in rows if row.share >= SHARE_GOAL]
    missed += ["first batch"] if first_s >= FIRST_GOAL_S else []
    print(f"{len(rows) + 1 - len(missed)} of {len(rows) + 1} goals met; missed: {', '.join(missed) or 'none'}")
    print(
        json.dumps(
            {
                "bench": "loader",
                "commit": commit(),
                "mebibytes": n_bytes >> 20,
                "rows": [{**asdict(row), "share": row.share} for row in rows],
                "first_batch_s": first_s,
                "imports_s": imports_s,
            }
        )
    )


if __name__ == "__main__":
    main()
