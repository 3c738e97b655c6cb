"""Bytes that a piece of code allocates at its peak, by torch's own account of every tensor.

No resident memory is read: that of a shared machine tells of the allocator's habits and of its neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

Out = TypeVar("Out")


def peak_bytes(run: Callable[[], Out], device: str = "cpu") -> tuple[int, Out]:
    """The most that tensors held at once during `run` above what they held before it, and what it returned.

    On a CPU the profiler lists each allocation and release of the allocator in turn; on a GPU its allocator counts.
    """
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        out = run()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before, out
    with _silence(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        out = run()
    changes = [
        (event.start_ns(), event.nbytes())
        for event in profiler.profiler.kineto_results.events()
        if event.name() == "[memory]"
    ]
    held = peak = 0
    for _, change in sorted(changes, key=lambda each: each[0]):
        held += change
        peak = max(peak, held)
    return peak, out


@contextmanager
def _silence() -> Iterator[None]:
    """Without what the profiler's C++ code writes to the process's standard error, in the middle of a display."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
