"""What readers that do not do what a synthetic task asks score on it, and how fast its examples are drawn.

    python -m bench.tasks [--n N]

A model that does not clear a task's last line has not been shown to have learnt it. Of ListOps and of planted tasks
only the speed is told: lines of the former are in `bench/listops.py`, those of the latter are exact, `reference_lines`
of their options. A reader tells its answers to a batch, (B, T) classes; those where nothing is scored do not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from nas import catalog
from nas.config.task import Task
from nas.data.objectives import Batch
from nas.data.synthetic.generated import synthetic_source
from nas.heads import IGNORE
from nas.specs.tasks import planted

Reader = Callable[[Batch, Task], Tensor]

LENGTHS = {  # of others 128
    **{"memorisation": 32, "compression": 32, "selective-copying": 256},  # as in MAD's settings
    **dict.fromkeys((spec.name for spec in planted.SPECS), 64),
    **{"listops-short": 59, "listops": 1999},
}
AT_ONCE = 32  # examples of a batch, as in training


def majority(batch: Batch, task: Task) -> Tensor:
    """One class for all, the most frequent."""
    counts = torch.bincount(batch.targets[batch.targets != IGNORE])
    return torch.full_like(batch.targets, int(counts.argmax()))


def latest_value(batch: Batch, task: Task) -> Tensor:
    """The value that came last before."""
    options = task.synthetic_options()
    classes = batch.tokens - options.n_keys
    return _latest(classes, (classes >= 0) & (classes < options.n_values))


def _latest(values: Tensor, there: Tensor) -> Tensor:
    """At each place the last of the values so far that are there; 0 before the first."""
    places = torch.where(there, torch.arange(values.shape[1]), 0).cummax(dim=1).values
    return values.gather(1, places).clamp_min(0)


def after_the_same_token(batch: Batch, task: Task) -> Tensor:
    """What followed the token where it stood last before: a reader of one token, not of keys of several."""
    n, length = batch.tokens.shape
    followed = torch.zeros((n, task.vocab_size), dtype=torch.long)
    answers = torch.zeros_like(batch.tokens)
    for place in range(length):
        token = batch.tokens[:, place : place + 1]
        answers[:, place : place + 1] = followed.gather(1, token)
        if place + 1 < length:
            followed.scatter_(1, token, batch.tokens[:, place + 1 : place + 2])
    return answers - task.synthetic_options().n_key_tokens


def latest_symbol(batch: Batch, task: Task) -> Tensor:
    """The symbol that came last before."""
    return _latest(batch.tokens, batch.tokens < task.synthetic_options().n_symbols)


def by_rank(batch: Batch, task: Task) -> Tensor:
    """The most frequent class of each place."""
    counts = torch.zeros((task.synthetic_options().n_classes, batch.targets.shape[1]))
    scored = batch.targets != IGNORE
    counts.scatter_add_(0, batch.targets.where(scored, 0), scored.float())
    return counts.argmax(dim=0).expand_as(batch.targets)


READERS: dict[str, dict[str, Reader]] = {
    "in-context-recall": {"majority": majority, "latest value": latest_value},
    "noisy-recall": {"majority": majority, "latest value": latest_value},
    "fuzzy-recall": {"majority": majority, "what followed the same token": after_the_same_token},
    "selective-copying": {"majority": majority, "last symbol": latest_symbol},
    "compression": {"majority": majority},
    "memorisation": {"majority": majority},
    "sorting": {"majority": majority, "place alone": by_rank, "latest symbol again": latest_symbol},
}


def task_of(name: str) -> Task:
    """The task at its default options and the length of its lines."""
    objective = catalog.TASKS[name].objective
    return Task(objective=objective, dataset=name, train_length=LENGTHS.get(name, 128))


def reference_lines(name: str, n: int, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Accuracy of each reader on n fresh examples, and its standard error over examples."""
    task = task_of(name)
    batch = synthetic_source(task).draw(n, Generator().manual_seed(seed))
    scored = batch.targets != IGNORE
    lines = {}
    for reader, answer in READERS[name].items():
        right = ((answer(batch, task) == batch.targets) & scored).sum(dim=1)
        share = float(right.sum() / scored.sum())
        deviations = right - share * scored.sum(dim=1)
        lines[reader] = (share, float(deviations.square().sum().sqrt() / scored.sum()))
    return lines


def examples_per_second(name: str, seconds: float) -> float:
    """Examples drawn in batches of AT_ONCE; of processor time, so that who else computes does not count."""
    source, generator = synthetic_source(task_of(name)), Generator().manual_seed(0)
    source.draw(AT_ONCE, generator)
    n_batches, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        source.draw(AT_ONCE, generator)
        n_batches += 1
    return n_batches * AT_ONCE / (time.process_time() - started)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Reference lines and speed of the synthetic tasks.")
    parser.add_argument("--n", type=int, default=20_000, metavar="N", help="examples that lines are taken on")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S", help="for which each task is drawn")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for name in catalog.TASKS:
        rate = examples_per_second(name, asked.seconds)
        print(f"{name}, T {task_of(name).train_length}: {rate:,.0f} examples per second, one thread")
        for reader, (share, error) in reference_lines(name, asked.n).items() if name in READERS else ():
            print(f"  {reader:<30} {share:.4f} +- {error:.4f}")


if __name__ == "__main__":
    main()
