"""Make the table of nas/data/enumerated: every stack of three slots, trained apart on each planted task and a text.

Rows are appended as trainings end, so it may be killed at any time; what is there is not trained again. Each worker has
one thread.

The reference set-up: T 64, D 64, 4 heads; MGK with 2 heads of 2 keys; FFN and SGU 256 wide; 2,048 tokens a batch;
AdamW; at most 1,000 updates, fewer where 128 validation windows are answered at 0.99, which is looked at every 50. On
planted tasks the rate is constant: with a rise and a cosine, SA does not solve shift-then-match (0.22 after 1,000
updates, against 1.0 after 350 to 600), and how soon a task is solved would depend on how long one meant to train. On
the text, where no training ends early, it is that of `nas.training.learning_rate`.

    python -m bench.enumerate [--workers 2] [--limit 100]     train what is missing, in the order of its worth
    python -m bench.enumerate --latency                       count parameters and measure latencies, anew
    python -m bench.enumerate --show                          print what is there
"""

from __future__ import annotations

import argparse
import csv
import io
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch

from bench.kept import locked
from nas.config.request import SearchRequest, read_request
from nas.config.task import DataSizes, Task
from nas.data.corpora import fingerprint, read_corpus
from nas.data.enumerated import (
    CHECK_EVERY,
    COST_COLUMNS,
    COSTS,
    EMPTY,
    FOLDER,
    N_STEPS,
    REACHED,
    RUN_COLUMNS,
    RUNS,
    SAMPLE,
    SETTINGS,
    STACKS,
    TEXT,
    TEXT_SHA256,
    Cost,
    Row,
    Run,
    Table,
    load,
    n_slots,
    print_table,
    to_values,
)
from nas.data.objectives import Batch
from nas.data.parts import Parts, split
from nas.data.streams import Stream
from nas.data.synthetic.generated import synthetic_fingerprint, synthetic_parts
from nas.heads import IGNORE
from nas.network import Network
from nas.retrain import build, scoring
from nas.specs.backbone import network_parameters
from nas.training import generator, learning_rate, loss_of, weight_step, weights_optimiser

# Attention that knew positions would solve `offset` as well, which then told nothing. Attention before attention needs
# them to find the token before (measured on shift-then-match: AA reaches 0.99 after 300 updates with, 0.8 after 1,000
# without).
POSITIONS = {"token-wise": "none", "offset": "none", "lookup": "none", "shift-then-match": "rotary", TEXT: "rotary"}
CANDIDATES = [
    "attention",
    "ffn",
    "identity",
    "sgu",
    {"label": "mgk", "block": "mgk", "options": {"n_heads": 2, "n_keys": 2}},
]
TOKENS = 2048  # of a batch, at every length
VALIDATION_WINDOWS, TEST_WINDOWS = 128, 512
LATENCY_BATCH, LATENCY_ROUNDS, UNTIMED_ROUNDS = 8, 40, 3
_DATA = 0  # stream of the seed


def request_of(run: Run) -> SearchRequest:
    """The reference set-up as a request; what is not said here is `nas.config`'s default.

    That is 0.01 of decay on matrices, gradients clipped at 1, embeddings of std 0.5, and a head that is not tied.
    """
    planted = run.task != TEXT
    task = {
        "objective": "token_classification" if planted else "causal_lm",
        "dataset": run.task,
        "train_length": run.length,
        "serve": [{"batch": LATENCY_BATCH, "query_length": run.length}],
    }
    space = {
        "n_slots": n_slots(run.stack),
        "d_model": 64,
        "n_heads": 4,
        "max_len": run.length,
        "positions": POSITIONS[run.task],
        "backbone": {"pooling": "none" if planted else "first"},
        "candidates": CANDIDATES,
    }
    request = read_request(
        {
            "name": "enumerate",
            "space": space,
            "task": task,
            "method": {"batch_size": TOKENS // run.length, "lr": run.lr},
            "trials": {"seed": run.seed, "n_seeds": 1},
        }
    )
    if not planted:
        return request
    options = request.task.synthetic_options()
    sizes = DataSizes(vocab_size=options.vocab_size, n_classes=options.n_classes)
    return request.with_data(synthetic_fingerprint(request.task), sizes)


def network_of(run: Run, request: SearchRequest) -> Network:
    """The stack's blocks in the first slots, identity in the others."""
    labels = {candidate.letter: candidate.label for candidate in request.space.candidates}
    blocks = run.stack.replace(EMPTY, "").ljust(request.space.n_slots, EMPTY)
    return build(request.network_config([labels[letter] for letter in blocks], request.task.vocab_size))


def parts_of(task: Task) -> Parts:
    return synthetic_parts(task) if task.synthetic is not None else split(text(), task.train_length, 1)


@cache
def text() -> bytes:
    """Raises: SystemExit: it is another text than that of the rows; other Pythons have other documentation."""
    corpus = read_corpus(TEXT)
    found = fingerprint(corpus)
    if found != TEXT_SHA256:
        raise SystemExit(f"{TEXT} has sha256 {found} in this Python; the table's rows are of {TEXT_SHA256}")
    return corpus


def train(run: Run) -> Row:
    """Train one stack until it reaches the accuracy on validation examples, and score it on test examples."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    request = request_of(run)
    method, parts = request.method, parts_of(request.task)
    with torch.random.fork_rng(devices=[]):  # modules initialise from the global generator
        torch.manual_seed(run.seed)
        network = network_of(run, request)
    forward = scoring(network)
    optimiser = weights_optimiser(dict(network.named_parameters()), method)
    stream = Stream(parts.training, request, generator(run.seed, _DATA), "cpu")
    validation = parts.validation.held_out(request.task, VALIDATION_WINDOWS)
    step = 0
    while step < N_STEPS:
        batch = stream.next()
        nats, _ = forward(batch, None)
        lr = learning_rate(step, N_STEPS, method) if run.task == TEXT else run.lr
        weight_step([loss_of(nats, batch)], optimiser, lr=lr, grad_clip=method.grad_clip)
        step += 1
        if step % CHECK_EVERY == 0 and score(network, validation)[0] >= REACHED:
            break
    accuracy, loss = score(network, parts.test.held_out(request.task, TEST_WINDOWS))
    return Row(run, step, accuracy, loss, time.perf_counter() - started)


@torch.no_grad()
def score(network: Network, batch: Batch) -> tuple[float, float]:
    """Accuracy and mean nats of the scored tokens; nats are infinite where the network answers with no numbers."""
    network.eval()
    right, nats = 0, 0.0
    rows = max(1, TOKENS // batch.tokens.shape[1])
    for start in range(0, len(batch.tokens), rows):
        part = batch.rows(slice(start, start + rows))
        hidden, _ = network.body(part.tokens)
        right += int((network.backbone.answers(hidden) == part.targets).sum())
        nats += float(network.backbone.nats(hidden, part.targets).sum())
    network.train()
    n_scored = int((batch.targets != IGNORE).sum())
    return right / n_scored, nats / n_scored if np.isfinite(nats) else float("inf")


def fill(folder: Path, n_workers: int, limit: int | None, missing: Callable[[Table], list[list[Run]]]) -> None:
    """Train what is missing, stage by stage, and append each row as it comes.

    Args:
        folder: of the table.
        n_workers: processes; one trains in this one.
        limit: trainings to make at most; None: all.
        missing: of a table, by stages; a stage is asked for when those before it are there.
    """
    with locked(folder / RUNS, RUN_COLUMNS) as file:
        n_made = 0
        while stage := next((each for each in missing(load(folder)) if each), None):
            runs = stage if limit is None else stage[: limit - n_made]
            if not runs:
                return
            for row in _trained(runs, n_workers):
                line = io.StringIO()
                csv.writer(line, lineterminator="\n").writerow(to_values(row))
                os.write(file, line.getvalue().encode())  # one call, so that a kill leaves whole lines
                os.fsync(file)
                n_made += 1
                print(" ".join(to_values(row)), flush=True)


def _trained(runs: Sequence[Run], n_workers: int) -> Iterator[Row]:
    if n_workers == 1:
        yield from map(train, runs)
        return
    with multiprocessing.get_context("spawn").Pool(n_workers) as pool:  # its workers end when this process is killed
        yield from pool.imap_unordered(train, runs)


def measure_costs(folder: Path, settings: Sequence[tuple[str, int]], stacks: Sequence[str], rounds: int) -> None:
    """Write what each stack weighs and takes: medians of one forward pass, all stacks of a task timed in turn."""
    torch.set_num_threads(1)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(COST_COLUMNS)
    for task, length in settings:
        for stack, cost in costs_of(task, length, stacks, rounds).items():
            writer.writerow([task, length, stack, cost.parameters, f"{cost.latency_ms:.3f}", f"{cost.iqr_ms:.3f}"])
        print(f"measured {task}, {length} tokens", flush=True)
    partial = folder / f".{COSTS}"
    partial.write_text(lines.getvalue())
    partial.replace(folder / COSTS)


@torch.inference_mode()
def costs_of(task: str, length: int, stacks: Sequence[str], rounds: int) -> dict[str, Cost]:
    """By stack. Processor time is read, so that other programs on the machine do not count."""
    networks = {}
    for stack in stacks:
        run = Run(task, length, stack)
        networks[stack] = network_of(run, request_of(run)).eval()
    request = request_of(Run(task, length, EMPTY))
    size = (LATENCY_BATCH, length)
    tokens = torch.randint(request.task.vocab_size, size, generator=torch.Generator().manual_seed(0))
    times: dict[str, list[float]] = {stack: [] for stack in stacks}
    order, shuffle = list(stacks), random.Random(0).shuffle
    for number in range(-UNTIMED_ROUNDS, rounds):
        shuffle(order)
        for stack in order:
            before = time.thread_time()
            networks[stack](tokens)
            if number >= 0:
                times[stack].append(1e3 * (time.thread_time() - before))
    return {
        stack: Cost(
            network_parameters(networks[stack].config),
            float(np.median(times[stack])),
            float(np.subtract(*np.quantile(times[stack], [0.75, 0.25]))),
        )
        for stack in stacks
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the table's files")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--limit", type=int, help="trainings to make at most")
    parser.add_argument("--latency", action="store_true", help="count parameters and measure latencies instead")
    parser.add_argument("--show", action="store_true", help="print the table instead")
    arguments = parser.parse_args()
    if arguments.show:
        print_table(load(arguments.folder))
    elif arguments.latency:
        measure_costs(arguments.folder, SETTINGS, [*STACKS, *SAMPLE], LATENCY_ROUNDS)
    else:
        fill(arguments.folder, arguments.workers, arguments.limit, Table.missing)


if __name__ == "__main__":
    main()
