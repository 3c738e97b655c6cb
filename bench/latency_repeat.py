"""How repeatable is a latency ratio? The same two architectures, built and timed again and again.

Each row is one whole comparison as results report it: sessions with networks in memory of their own, an interval over
the sessions, and how far a twin of the parent strays from the parent.

    python bench/latency_repeat.py [--derived SSFA.A] [--comparisons 3]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from nas import measure
from nas.architecture import Architecture, interleaved
from nas.config.request import SearchRequest
from nas.retrain import build

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--request", type=Path, default=ROOT / "examples" / "quickstart.json")
    parser.add_argument("--derived", default="SSFA.A", help="a letter a slot, as results show them")
    parser.add_argument("--comparisons", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    request = SearchRequest.model_validate_json(arguments.request.read_text())
    labels = {candidate.letter: candidate.label for candidate in request.space.candidates}
    derived = Architecture(tuple(labels[letter] for letter in arguments.derived), request.space.candidates)
    parent = interleaved(request.space)
    networks = {
        name: build(request.network_config(each.labels, request.task.vocab_size))
        for name, each in (("derived", derived), ("parent", parent))
    }
    rows = []
    print(f"{derived} against {parent}\n{'ratio':>6}  {'95% interval':<16} {'repeatability':>13}")
    for _ in range(arguments.comparisons):
        found = measure.compare_latency(networks, request.task.serve[0], arguments.rounds)
        print(f"{found.ratio:6.3f}  {found.low:.3f} to {found.high:.3f}   {found.repeatability:13.3f}", flush=True)
        rows.append([round(value, 4) for value in (found.ratio, found.low, found.high, found.repeatability)])
    ratios = np.array(rows)[:, 0]
    print(f"largest over smallest ratio of these comparisons: {ratios.max() / ratios.min():.3f}")
    print(json.dumps({"bench": "latency_repeat", "derived": str(derived), "rows": rows}))


if __name__ == "__main__":
    main()
