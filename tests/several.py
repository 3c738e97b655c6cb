"""Work on several ranks: real processes that meet by gloo, kept from test to test, since each takes seconds to warm."""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch

from nas import ranks
from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.retrain import Retraining
from nas.search import Search
from nas.steps import StepRecord
from tests import tiny
from workers.peers import LOOPBACK

MOST = 3  # ranks

P = ParamSpec("P")
R = TypeVar("R")


def several(world: int, folder: Path, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> list[R]:
    """What an importable function returns in each rank, in their order; the first error of any is raised here."""
    assert world <= MOST
    meeting = folder / f"meeting-{len(list(folder.glob('meeting-*')))}"
    waiting = [_pool().submit(_joined, rank, world, meeting, function, args, kwargs) for rank in range(world)]
    return [each.result() for each in waiting]


@functools.cache
def _pool() -> ProcessPoolExecutor:
    context = multiprocessing.get_context("forkserver")  # never fork: this process has threads by now
    context.set_forkserver_preload(["tests.several"])
    return ProcessPoolExecutor(MOST, mp_context=context)


def _joined(
    rank: int, world: int, meeting: Path, function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> R:
    torch.set_num_threads(1)
    os.environ.update(LOOPBACK)
    with ranks.joined(rank, world, meeting, "cpu"):
        return function(*args, **kwargs)


def made(request: SearchRequest, labels: tuple[str, ...] | None = None) -> Search | Retraining:
    """A search, or the retraining of the candidates of these labels."""
    request = request.resolve({}, 0)
    parts = tiny.parts(request)
    if labels is None:
        return Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0]))
    return Retraining(request, Architecture(labels, request.space.candidates), parts=parts)


def trained(
    request: SearchRequest, folder: Path, labels: tuple[str, ...] | None = None, resume: Path | None = None
) -> list[StepRecord]:
    """Run to the end, or go on from a checkpoint, as a trial does; returns all records.

    Where the first rank saves what all of them hold is `step-N`; what each holds in the end is `rank-N`.
    """
    work = made(request, labels)
    if resume is not None:
        work.load(resume)
    records = []
    for record in work.run():
        records.append(record)
        if record.checkpoint:
            work.save(folder / f"step-{record.step}")
    rank = ranks.now().rank
    with ranks.alone():
        work.save(folder / f"rank-{rank}")
    return records
