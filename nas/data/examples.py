"""Labelled documents: one label for each, or one for each word.

B batch, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from nas.config.task import Task
from nas.data.objectives import Batch
from nas.data.parts import TokenIds
from nas.heads import IGNORE


@dataclass(frozen=True, eq=False)
class Examples:
    """A part that is documents with labels.

    An example is the end-of-document id, so that pooling "first" has a token that is in every example, and then the
    document, which ends with it too; where there is a pair it stands between the two. What is longer than T is cut.

    Args:
        ids: of all parts' documents, one after another.
        starts: (N + 1,) where in `ids` the documents of this part begin, and where the last one ends.
        labels: of all parts: (documents,) where `of_words` is False, else one for each of `ids`, IGNORE where a token
            is not the first of a word.
        first: number of the part's first document among those of all parts.
        eos_id: what ends a document, and pads.
        of_words: whether words have labels, not documents.
    """

    ids: TokenIds
    starts: NDArray[np.uint64]
    labels: NDArray[np.int32]
    first: int
    eos_id: int
    of_words: bool

    def __len__(self) -> int:
        return len(self.starts) - 1

    def batch(self, task: Task, n: int, generator: Generator) -> Batch:
        """As `Part.batch`: documents drawn uniformly."""
        return self._examples(torch.randint(0, len(self), (n,), generator=generator).numpy(), task.train_length)

    def held_out(self, task: Task, n: int) -> Batch:
        """As `Part.held_out`: evenly spaced documents, in their order."""
        count = min(n, len(self))
        return self._examples(np.arange(count) * len(self) // max(count, 1), task.train_length)

    def _examples(self, chosen: NDArray[np.int64], length: int) -> Batch:
        starts = self.starts[chosen].astype(np.int64)
        sizes = np.minimum(self.starts[chosen + 1].astype(np.int64) - starts, length - 1)
        real = np.arange(length) <= sizes[:, None]  # (B, T)
        places = starts[:, None] + np.minimum(np.arange(-1, length - 1), sizes[:, None] - 1)
        places[:, 0] = starts  # read and overwritten: before the first document stands nothing
        tokens = np.where(real, self.ids[places], self.eos_id)
        tokens[:, 0] = self.eos_id
        targets = self._targets(chosen, places, real)
        return Batch(torch.from_numpy(tokens.astype(np.int64)), targets, torch.from_numpy(real))

    def _targets(self, chosen: NDArray[np.int64], places: NDArray[np.int64], real: NDArray[np.bool_]) -> Tensor:
        if not self.of_words:
            return torch.from_numpy(self.labels[self.first + chosen].astype(np.int64)[:, None])
        targets = np.where(real, self.labels[places], IGNORE).astype(np.int64)
        targets[:, 0] = IGNORE
        return torch.from_numpy(targets)
