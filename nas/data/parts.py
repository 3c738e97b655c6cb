"""The four disjoint parts of a dataset, and windows cut from those that are one stream of tokens.

Weights are trained on the first part, alpha on the second, monitoring reads the third, and every reported quality is
on the fourth (FBNet's disjoint split of the training data, par-search.md section 3.2, and two held-out parts).
B batch, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from nas.config.task import Task
from nas.data.objectives import Batch, held_out_batch, training_batch
from nas.text import ENDS_PERCENT, check_length, check_text

TokenIds = NDArray[np.unsignedinteger[Any]]  # uint8, uint16 or uint32; most often a memory map


class Part(Protocol):
    """Examples of one part, all of the task's length: a stream of tokens, labelled documents, or a generator."""

    def batch(self, task: Task, n: int, generator: Generator) -> Batch:
        """n examples to learn from, drawn with replacement, on the CPU; `generator` is the only source of chance."""

    def held_out(self, task: Task, n: int) -> Batch:
        """The same examples at every call, at most n, no target twice; on the CPU."""


@dataclass(frozen=True, eq=False)
class Parts:
    """What each is for stands above; `training` is the first two together, for who searches no more."""

    weights: Part
    alpha: Part
    validation: Part
    test: Part
    training: Part


@dataclass(frozen=True, eq=False)
class Tokens:
    """A part that is one stream of tokens, for language modelling.

    Args:
        ids: (N,) in the order of the text.
    """

    ids: TokenIds

    def batch(self, task: Task, n: int, generator: Generator) -> Batch:
        """As `Part.batch`: windows at random places."""
        return training_batch(task, sample_windows(self.ids, n, task.train_length, generator), generator)

    def held_out(self, task: Task, n: int) -> Batch:
        """As `Part.held_out`: evenly spaced windows, in the order of the text."""
        return held_out_batch(task, eval_windows(self.ids, n, task.train_length))


def split(corpus: bytes, train_length: int, batch_size: int) -> Parts:
    """Cut a text into its parts; a token is a byte.

    Args:
        corpus: UTF-8 text.
        train_length: tokens T of a training window.
        batch_size: windows of a batch; the weights and the alpha part must each hold one batch without overlap, the
            other two two windows each, since one tells nothing of the spread.

    Raises:
        DataError: the text is empty, binary, not UTF-8, or too short for a batch.
    """
    check_text(corpus)
    check_length(len(corpus), train_length, batch_size)
    tokens = np.frombuffer(corpus, dtype=np.uint8).copy()  # owned and writable, as torch wants it
    return token_parts(tokens, *(len(tokens) * percent // 100 for percent in ENDS_PERCENT))


def token_parts(ids: TokenIds, alpha: int, validation: int, test: int) -> Parts:
    """A stream of tokens as parts that begin at 0 and at the places given."""
    cut = (ids[:alpha], ids[alpha:validation], ids[validation:test], ids[test:], ids[:validation])
    return Parts(*(Tokens(part) for part in cut))


def sample_windows(part: TokenIds, n: int, length: int, generator: Generator) -> Tensor:
    """Windows at uniformly random places, with replacement.

    Args:
        part: tokens, at least length + 1.
        n: number of windows.
        length: tokens T that the model reads; one more follows, so that inputs and targets are [:, :-1] and [:, 1:].
        generator: the only source of randomness, on the CPU.

    Returns:
        (n, length + 1) int64.
    """
    starts = torch.randint(0, len(part) - length, (n,), generator=generator).numpy()
    return _cut(part, starts, length)


def row_windows(part: TokenIds, n_rows: int, at: int, length: int) -> Tensor:
    """The windows at one place of each row, where the part is cut into rows of equal length.

    Args:
        part: tokens.
        n_rows: rows R.
        at: between 0 and `last_start`.
        length: tokens T, as above.

    Returns:
        (R, length + 1) int64.
    """
    return _cut(part, np.arange(n_rows) * ((len(part) - 1) // n_rows) + at, length)


def last_start(part: TokenIds, n_rows: int, length: int) -> int:
    """Where in each row its last window of `length` tokens may begin; negative where rows are shorter than that."""
    return (len(part) - 1) // n_rows - length


def eval_windows(part: TokenIds, n: int, length: int, n_rows: int | None = None) -> Tensor:
    """The same windows at every call: evenly spaced over the part, each target in one window only.

    Args:
        part: tokens.
        n: windows asked for.
        length: tokens T, as above.
        n_rows: rows of windows that follow each other without a gap, for networks with memory; None: as many as
            windows.

    Returns:
        (min(n, what fits), length + 1) int64, or less by what rows of equal length leave over; in the order of the
        text, so row by row.
    """
    count = min(n, (len(part) - 1) // length)
    rows = min(n_rows or count, count)
    in_row = np.arange(count // max(rows, 1)) * length
    starts = np.arange(rows)[:, None] * ((len(part) - 1) // max(rows, 1)) + in_row
    return _cut(part, starts.ravel(), length)


def _cut(part: TokenIds, starts: NDArray[np.int64], length: int) -> Tensor:
    windows = part[starts[:, None] + np.arange(length + 1)]
    return torch.from_numpy(windows.astype(np.int64))
