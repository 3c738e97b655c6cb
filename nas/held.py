"""What a trial holds in memory, and how many rows of a batch have room at once. Measured, not modelled. Ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nas.allocations import peak_bytes
from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.data.parts import Parts
from nas.data.streams import Stream
from nas.network import Network
from nas.retrain import Retraining


@dataclass(frozen=True)
class Held:
    """Bytes where the network lives.

    Args:
        weights: of the network, and of what it learns from.
        remembered: earlier inputs of every row, where the network has a memory of them.
        passing: what stands beside these for a while, by what it is of; one of them at a time. AdamW's moments of every
            weight are in that of a step and of a report; in that of a comparison there are only its own.
    """

    weights: float
    remembered: float
    passing: dict[str, float]

    @property
    def always(self) -> float:
        return self.weights + self.remembered

    @property
    def peak(self) -> int:
        return int(self.always + max(self.passing.values()))


HeldBy = Callable[[int], Held]
"""What a trial holds whose batches go through in passes of so many rows."""


def rows_with_room(held: HeldBy, batch_size: int, room_bytes: int) -> tuple[int, int]:
    """How many rows of a batch can go through at once, and the bytes that one row at a time would need.

    Args:
        held: by the trial; called with one and with two rows, since what passes grows evenly with them.
        batch_size: of the trial.
        room_bytes: that are free.

    Returns:
        Rows, at most the batch; 0 where not even one has room.
    """
    one, two = held(1), held(2)
    left = {name: room_bytes - one.always - passing for name, passing in one.passing.items()}
    rows = min(
        1 + int(room / max(1.0, two.passing[name] - one.passing[name])) if room >= 0 else 0
        for name, room in left.items()
    )
    return min(rows, batch_size), one.peak


def probing(request: SearchRequest, rows: int) -> SearchRequest:
    """The request of a trial that tells what passes of so many rows hold, with no more rows than that takes.

    Two passes hold what more of them do: gradients beside activations. Memory of earlier inputs is of all rows.
    """
    batch = request.method.batch_size if request.space.memory_length else min(request.method.batch_size, 2 * rows)
    probe = {"micro_batch": rows, "batch_size": batch}
    return request.model_copy(update={"method": request.method.model_copy(update=probe)})


def n_filling(request: SearchRequest) -> int:
    """Weight updates until memory holds as many earlier inputs as it may; moments are there from the first."""
    return 1 + math.ceil(request.space.memory_length / request.task.train_length)


def remembered(streams: Iterable[Stream]) -> float:
    """Bytes of the earlier inputs that streams keep; slots behind an identity share theirs."""
    kept = [each for stream in streams for each in stream.memory or () if each is not None]
    return float(sum({each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in kept}.values()))


def held_by_retraining(
    request: SearchRequest, architecture: Architecture, parts: Parts, device: str, teacher: Network | None, rows: int
) -> Held:
    """Of a retraining.

    Args:
        request: resolved.
        architecture: that is trained.
        parts: of its data.
        device: where it will run.
        teacher: that it learns from; None: from nobody.
        rows: windows of a pass.
    """
    # What lies where the trial runs is not free any more; a GPU is asked before the teacher is put there.
    elsewhere = [] if teacher is None else [each for each in teacher.parameters() if each.device.type not in device]
    others = sum(each.nbytes for each in elsewhere)
    probe = Retraining(probing(request, rows), architecture, parts=parts, device=device, teacher=teacher)
    for _ in range(n_filling(request)):
        probe.advance()
    step, _ = peak_bytes(probe.advance, device)
    report, _ = peak_bytes(lambda: probe.record(tokens_per_s=None, last=False), device)
    own = sum(each.nbytes for each in probe.weights.values())
    passing = {"step": 2.0 * own + step, "report": 2.0 * own + report}
    return Held(float(own + others), remembered([probe.stream]), passing)
