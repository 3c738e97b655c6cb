"""ListOps: what simple readers of an expression score, and how fast expressions are drawn.

    python -m bench.listops [--full] [--train N] [--test N] [--seed S] [--repeats N]

A model that does not clear the last line has not been shown to have learnt nesting.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import torch

from nas.config.task import Task
from nas.data.objectives import Batch
from nas.data.synthetic.generated import Generated
from nas.data.synthetic.listops import ListOps
from nas.ingest.card import PARTS
from nas.specs.tasks.listops import (
    CLOSE,
    DIGIT,
    OPERATOR,
    OPERATORS,
    PADDING,
    ListOpsOptions,
    ShortListOpsOptions,
)

Expression = tuple[tuple[int, ...], int]  # token ids without padding, and the value
Reader = Callable[[tuple[int, ...]], Hashable]

_DRAWN_AT_ONCE = 1024


def _median(values: Sequence[int]) -> int:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) // 2


APPLY: dict[str, Callable[[Sequence[int]], int]] = {
    "MIN": min,
    "MAX": max,
    "MED": _median,
    "SM": lambda values: sum(values) % 10,
}


def expressions(n: int, seed: int, options: ListOpsOptions | None = None) -> list[Expression]:
    """The first n different expressions in the order drawn: any two slices are disjoint. By default short ones."""
    options = options or ShortListOpsOptions()
    source, generator = ListOps(options, options.shorter_than - 1), torch.Generator().manual_seed(seed)
    found: dict[tuple[int, ...], int] = {}
    while len(found) < n:
        batch = source.draw(_DRAWN_AT_ONCE, generator)
        for row, value in zip(batch.tokens.tolist(), batch.targets[:, 0].tolist(), strict=True):
            end = row.index(PADDING) if PADDING in row else len(row)
            found[tuple(row[:end])] = value
    return list(found.items())[:n]


def near_value(tokens: Sequence[int]) -> int | None:
    """The root's operator applied to the digits directly under it alone; None if there are none."""
    depth, near = 0, []
    for token in tokens:
        depth += (OPERATOR <= token < CLOSE) - (token == CLOSE)
        if depth == 1 and DIGIT <= token < OPERATOR:
            near.append(token - DIGIT)
    return APPLY[OPERATORS[tokens[0] - OPERATOR]](near) if near else None


READERS: dict[str, Reader] = {
    "majority": lambda tokens: None,
    "root operator": lambda tokens: tokens[0],
    "root operator and its direct digits": lambda tokens: (tokens[0], near_value(tokens)),
}


def reference_lines(train: Sequence[Expression], test: Sequence[Expression]) -> dict[str, float]:
    """Accuracy on `test` of readers that see little of an expression and answer the value most frequent in `train`."""
    accuracy = {}
    for name, read in READERS.items():
        counts: dict[Hashable, Counter[int]] = {}
        for tokens, value in train:
            counts.setdefault(read(tokens), Counter())[value] += 1
        answers = {seen: counter.most_common(1)[0][0] for seen, counter in counts.items()}
        accuracy[name] = sum(answers.get(read(tokens)) == value for tokens, value in test) / len(test)
    return accuracy


def repeats(n_drawn: int, n_held_out: int, seed: int, options: ListOpsOptions | None = None) -> int:
    """How many of the test part's expressions come again among so many that are drawn to be trained on."""
    options = options or ShortListOpsOptions()
    source, generator = ListOps(options, options.shorter_than - 1), torch.Generator().manual_seed(seed)
    test = Generated(source, PARTS.index("test")).held_out(Task(), n_held_out)
    missing = set(_rows(test))
    n_different = len(missing)
    for _ in range(-(-n_drawn // _DRAWN_AT_ONCE)):
        missing.difference_update(_rows(source.draw(_DRAWN_AT_ONCE, generator)))
    return n_different - len(missing)


def _rows(batch: Batch) -> list[bytes]:
    return [row.tobytes() for row in batch.tokens.to(torch.uint8).numpy()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What simple readers of ListOps score.")
    parser.add_argument("--full", action="store_true", help="the lengths of the Long Range Arena, not the short ones")
    parser.add_argument("--train", type=int, default=50_000, metavar="N", help="expressions that answers are taken of")
    parser.add_argument("--test", type=int, default=10_000, metavar="N", help="expressions that are answered")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument(
        "--repeats", type=int, metavar="N", help="count test expressions among N that are drawn, instead"
    )
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if asked.repeats is not None:
        found_again = repeats(asked.repeats, asked.test, asked.seed, ListOpsOptions() if asked.full else None)
        print(f"{found_again:,} of {asked.test:,} test expressions are among {asked.repeats:,} drawn")
        return
    started = time.perf_counter()
    found = expressions(asked.train + asked.test, asked.seed, ListOpsOptions() if asked.full else None)
    seconds = time.perf_counter() - started
    for name, accuracy in reference_lines(found[: asked.train], found[asked.train :]).items():
        print(f"{name:<36} {accuracy:.3f}")
    print(f"{len(found):,} different expressions in {seconds:.1f} s")


if __name__ == "__main__":
    main()
