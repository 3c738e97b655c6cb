"""What a training reads, batch after batch, and what it is scored on; with memory, the text that belongs to it.

Without memory a batch is windows at random places. With memory each of the B rows of a batch goes on in a text of its
own, segment after segment, so that what the slots remember is what stood before (par-search.md sections 3.3 and 7.3).
At the end of its rows a stream begins again, a few bytes further on so that segments are cut elsewhere, and with
memory empty. Where the first pass begins is drawn, so that seeds do not all learn from the same text.

Memory is what the slots' inputs were when they were read: under the weights and the path of that step. It is not made
again under newer ones, neither here nor where alpha's stream goes on after some weight steps: it is older by a few
updates in any Transformer-XL, and another forward pass would cost alpha steps a third more.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from nas import ranks
from nas.config.request import SearchRequest
from nas.data.objectives import Batch, held_out_batch, training_batch
from nas.data.parts import Part, Tokens, eval_windows, last_start, row_windows
from nas.network import Memory

# Examples that are drawn at once. Of a few examples the calls alone took 2 to 5% of the quickstart's training step
# (bench/loader.py); a state to resume from is where the group began and how much of it was used.
GROUP = 64
HELD_OUT_ROWS = 8  # with memory; a constant, so that samples of other batch sizes are scored on the same windows


class Stream:
    """Batches to learn from, in an order of its generator's own, and the memory that goes with them.

    Args:
        part: at least one batch; with memory, a stream of tokens.
        request: task and batch size; whether slots have memory.
        generator: of windows and masks, on the CPU.
        device: where batches go.
    """

    def __init__(self, part: Part, request: SearchRequest, generator: Generator, device: str) -> None:
        self.part = part
        self.task = request.task
        self.length = request.task.train_length
        self.batch_size = request.method.batch_size
        self.has_memory = request.space.memory_length > 0
        self.generator = generator
        self.device = device
        self.group = max(1, GROUP // self.batch_size)  # batches drawn at once
        self.drawn: Batch | None = None
        self.used = 0  # batches of `drawn`
        self.began = generator.get_state()  # before it was drawn
        self.at = -1  # where the next segment begins in each row; negative before the first
        # Of this rank's rows, for the next batch; whoever runs that puts back what the network returns.
        self.memory: Memory | None = None

    def next(self) -> Batch:
        """The next batch; at the start of a pass memory becomes None."""
        if self.has_memory:
            batch = training_batch(self.task, self._next_segments(), self.generator)
        else:
            batch = self._next_drawn()
        return batch.to(self.device)

    def _next_drawn(self) -> Batch:
        if self.drawn is None or self.used == self.group:
            self._draw_group()
        assert self.drawn is not None
        start = self.used * self.batch_size
        self.used += 1
        return self.drawn.rows(slice(start, start + self.batch_size))

    def _draw_group(self) -> None:
        self.began, self.used = self.generator.get_state(), 0
        self.drawn = self.part.batch(self.task, self.group * self.batch_size, self.generator)

    def _next_segments(self) -> Tensor:
        assert isinstance(self.part, Tokens)
        last = last_start(self.part.ids, self.batch_size, self.length)
        if self.at < 0:
            self.at = self._draw(last)
        elif self.at > last:
            self.at, self.memory = self._draw(min(self.length - 1, last)), None
        windows = row_windows(self.part.ids, self.batch_size, self.at, self.length)
        self.at += self.length
        return windows

    def _draw(self, most: int) -> int:
        return int(torch.randint(0, most + 1, (), generator=self.generator))

    def state(self) -> dict[str, Tensor]:
        """Generator, place and memory, of all ranks' rows, to be saved; `restore` takes them up."""
        slots = [] if self.memory is None else self.memory
        whole = [None if each is None else ranks.gathered(each, self.batch_size) for each in slots]
        kept = {f"memory.{number}": each for number, each in enumerate(whole) if each is not None}
        generator = self.generator.get_state() if self.drawn is None else self.began
        return {"generator": generator, "at": torch.tensor([self.at, len(slots), self.used]), **kept}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.generator.set_state(state["generator"])
        self.at, n_slots, used = state["at"].tolist()
        self.drawn = None
        if used:
            self._draw_group()
            self.used = used
        kept = [state.get(f"memory.{number}") for number in range(n_slots)]
        own = ranks.now().own(self.batch_size)
        self.memory = [None if each is None else each[own].to(self.device) for each in kept] or None


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a network is scored on.

    Args:
        batch: (N, T), in the order of the text.
        segments: windows that follow each other without a gap, memory going from one to the next; 1 without memory.
    """

    batch: Batch
    segments: int


def held_out(part: Part, n_windows: int, request: SearchRequest, device: str) -> HeldOut:
    """The same examples of a part for every architecture and seed, with the same masks.

    With memory they stand in rows; the first window of each has no memory, and the score says so too.
    """
    if not request.space.memory_length:
        return HeldOut(part.held_out(request.task, n_windows).to(device), segments=1)
    assert isinstance(part, Tokens)
    windows = eval_windows(part.ids, n_windows, request.task.train_length, HELD_OUT_ROWS)
    segments = len(windows) // min(HELD_OUT_ROWS, len(windows))
    return HeldOut(held_out_batch(request.task, windows).to(device), segments)
