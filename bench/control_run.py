"""Does alpha move beyond chance? The quickstart's search against a control whose gradient signs are flipped.

The control is a whole search of its own with `method.random_signs`: same data, same noise, same optimiser, but each
slot's alpha gradient keeps or loses its sign by a coin. What alpha does there is what it does without a signal.

    python bench/control_run.py [--request examples/quickstart.json] [--seeds 2]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.data.corpora import read_corpus
from nas.data.parts import Parts, split
from nas.derive import argmax_architecture
from nas.errors import SearchFailed
from nas.measure import measure_table
from nas.search import Search


def gaps(request: SearchRequest, parts: Parts, table: LatencyTable, control: bool) -> tuple[np.ndarray, str]:
    """The gap between the two largest log-probabilities of each slot at the end, (L,) nats, and what is derived."""
    method = request.method.model_copy(update={"random_signs": control})
    *_, last = Search(request.model_copy(update={"method": method}), parts=parts, table=table).run()
    assert last.probabilities is not None
    assert last.null_gaps is not None
    top = np.sort(np.log(np.array(last.probabilities)), axis=1)
    try:
        slot_costs = table.slot_ms(request.space)
        derived = argmax_architecture(last.probabilities, last.null_gaps, request.space, slot_costs=slot_costs)
        shown = f"{derived}, {len(derived.undecided)} undecided"
    except SearchFailed as error:
        shown = f"failed: {error}"
    return top[:, -1] - top[:, -2], shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--request", type=Path, default=Path(__file__).parent.parent / "examples" / "quickstart.json")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    request = SearchRequest.model_validate_json(arguments.request.read_text())
    parts = split(read_corpus(request.task.dataset), request.task.train_length, request.method.batch_size)
    table = measure_table(request.space, request.task.serve[0], vocab_size=request.task.vocab_size, threads=1)
    rows = []
    print(f"{'seed':>4}  {'run':<8} {'gap per slot, nats':<{7 * request.space.n_slots}} derived")
    for seed in range(arguments.seeds):
        resolved = request.model_copy(update={"ranges": ()}).resolve({}, seed)
        for control in (False, True):
            started = time.perf_counter()
            gap, shown = gaps(resolved, parts, table, control)
            name = "control" if control else "search"
            print(f"{seed:>4}  {name:<8} {''.join(f'{value:6.2f} ' for value in gap)} {shown}", flush=True)
            rows.append(
                {
                    "seed": seed, "run": name, "gaps": gap.round(4).tolist(), "derived": shown,
                    "seconds": round(time.perf_counter() - started, 1),
                }
            )  # fmt: skip
    largest = {name: max(max(row["gaps"]) for row in rows if row["run"] == name) for name in ("search", "control")}
    beyond = [sum(gap > largest["control"] for gap in row["gaps"]) for row in rows if row["run"] == "search"]
    print(f"largest gap of a control run {largest['control']:.2f}; slots beyond it per search: {beyond}")
    print(json.dumps({"bench": "control_run", "rows": rows, "largest": largest, "slots_beyond_control": beyond}))


if __name__ == "__main__":
    main()
