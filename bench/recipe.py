"""Is the parent one that a practitioner would defend? Its test quality at several learning rates, beside another stack.

A weak parent flatters a search. Each row trains one architecture afresh by the quickstart's recipe at one rate.

    python bench/recipe.py [--lr 2e-3 4e-3 8e-3 1.2e-2] [--architectures AFAFAF SSFA.A] [--seeds 2]
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.data.corpora import read_corpus
from nas.data.parts import split
from nas.retrain import Retraining

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--request", type=Path, default=ROOT / "examples" / "quickstart.json")
    parser.add_argument("--dataset", help="another built-in text than the request's")
    parser.add_argument("--lr", type=float, nargs="+", default=[2e-3, 4e-3, 8e-3, 1.2e-2])
    parser.add_argument("--architectures", nargs="+", default=["AFAFAF"], help="a letter a slot, as results show them")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    request = SearchRequest.model_validate_json(arguments.request.read_text())
    if arguments.dataset:
        request = request.model_copy(update={"task": request.task.model_copy(update={"dataset": arguments.dataset})})
    parts = split(read_corpus(request.task.dataset), request.task.train_length, request.method.batch_size)
    labels = {candidate.letter: candidate.label for candidate in request.space.candidates}
    rows = []
    print(f"{'stack':<10} {'lr':>8}  test bits per byte, by seed")
    for stack in arguments.architectures:
        architecture = Architecture(tuple(labels[letter] for letter in stack), request.space.candidates)
        for lr in arguments.lr:
            tuned = request.model_copy(update={"method": request.method.model_copy(update={"lr": lr})})
            scores = []
            for seed in range(arguments.seeds):
                run = Retraining(tuned.resolve({}, seed), architecture, parts=parts)
                *_, last = run.run()
                assert last.last
                assert run.result is not None
                scores.append(float(np.mean(run.result.test_nats)) / math.log(2))
            print(f"{stack:<10} {lr:>8g}  {' '.join(f'{score:.4f}' for score in scores)}", flush=True)
            rows.append({"stack": stack, "lr": lr, "bits_per_byte": [round(score, 4) for score in scores]})
    print(json.dumps({"bench": "recipe", "dataset": request.task.dataset, "rows": rows}))


if __name__ == "__main__":
    main()
