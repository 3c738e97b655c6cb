"""One trial on several GPUs of a machine, a process each: all ranks run the same program, each on rows of its own.

Ranks share their seeds, so they draw the same batches, paths, masks and noise, and hold the same weights, moments and
alpha. A rank runs its own block of each batch's rows. Losses are parts of the whole batch's mean (nas.training), so
gradients of all ranks add up to the whole batch's, and every rank takes the same step with the same bits. This is data
parallelism as of Li et al. 2020 (arXiv:2006.15704), section 2.2, without buckets that overlap the backward pass.

Which ranks there are is a property of the process, as torch's process group is: what trains or evaluates cannot forget
to pass it on. In a process that has not `joined` others there is one rank, and nothing here changes a bit. Tensors on a
GPU go by NCCL; those on the processor, alpha's gradient among them, by gloo, which no GPU is waited for. B rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from nas.errors import SearchFailed

_PATIENCE = timedelta(minutes=30)  # with a rank that lives and does not come; of one that has died others hear at once
_BUCKET_BYTES = 32 * 2**20  # gradients are copied together and sent this many at a time


class PeerLost(RuntimeError):
    """Another rank has ended, or did not come: it knows why, this one does not."""


@dataclass(frozen=True)
class Ranks:
    """This process among those of its trial.

    Args:
        rank: its number.
        world: how many there are.
    """

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this one reports and writes."""
        return self.rank == 0

    def blocks(self, n_rows: int) -> list[slice]:
        """The rows of each rank: neighbours, and of no rank two more than of another."""
        ends = [n_rows * rank // self.world for rank in range(self.world + 1)]
        return [slice(start, end) for start, end in pairwise(ends)]

    def own(self, n_rows: int) -> slice:
        """The rows of this rank."""
        return self.blocks(n_rows)[self.rank]


ALONE = Ranks()
_now = ALONE


def now() -> Ranks:
    """This process's."""
    return _now


@contextmanager
def joined(rank: int, world: int, meeting: Path, device: str) -> Iterator[None]:
    """Be one of several ranks inside.

    Args:
        rank: of this process.
        world: how many processes do the same.
        meeting: file on a disk of this machine that is not there before; the same for all.
        device: cpu, or cuda: the current device, no other rank's.

    Raises:
        PeerLost: the others did not come.
    """
    global _now
    backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
    with _together():
        dist.init_process_group(
            backend, init_method=f"file://{meeting}", rank=rank, world_size=world, timeout=_PATIENCE
        )
    before, _now = _now, Ranks(rank, world)
    try:
        yield
    finally:
        _now = before
    dist.destroy_process_group()  # not behind an error: it would wait for ranks that wait for this one


@contextmanager
def alone() -> Iterator[None]:
    """Inside, this rank does all the work itself and asks no other: for what the others do not do, or do as well."""
    global _now
    before, _now = _now, ALONE
    try:
        yield
    finally:
        _now = before


def add_up(tensors: Sequence[Tensor]) -> None:
    """Put into each tensor the sum of all ranks', in place; all ranks get the same bits.

    Args:
        tensors: of the same shapes and types, in the same order, in every rank.
    """
    if _now.world == 1:
        return
    for bucket in _buckets(tensors):
        flat = torch.cat([each.reshape(-1) for each in bucket]) if len(bucket) > 1 else bucket[0].reshape(-1)
        with _together():
            dist.all_reduce(flat)
        for each, found in zip(bucket, torch.split(flat, [each.numel() for each in bucket]), strict=True):
            each.copy_(found.view_as(each))


def add_up_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Sum the gradients of all ranks. One that some rank has, every rank has afterwards; one that none has, none.

    A path touches few parameters, and the rare words' part of an adaptive head none where a rank's rows have no rare
    word: so ranks tell each other first which they have.
    """
    if _now.world == 1:
        return
    n_ranks = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
    add_up([n_ranks])
    for parameter, n in zip(parameters, n_ranks.tolist(), strict=True):
        if n and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    add_up([parameter.grad for parameter in parameters if parameter.grad is not None])


def gathered(rows: Tensor, n_rows: int) -> Tensor:
    """The rows of all ranks in their order, (B, ...), from each one's own."""
    if _now.world == 1:
        return rows
    whole = rows.new_empty((n_rows, *rows.shape[1:]))
    for rank, block in enumerate(_now.blocks(n_rows)):
        part = rows.contiguous() if rank == _now.rank else whole[block]
        with _together():
            dist.broadcast(part, rank)
        whole[block] = part
    return whole


def told_by_first(number: int) -> int:
    """What the first rank says, for what may differ between processes, as clocks and free memory do."""
    if _now.world == 1:
        return number
    said = torch.tensor(number)
    with _together():
        dist.broadcast(said, 0)
    return int(said)


def check_alike(tensors: Mapping[str, Tensor]) -> None:
    """See that this rank holds what the first one holds, by the sum of each tensor's bytes.

    Raises:
        SearchFailed: it does not: a device computes other bits than its twin, and what is trained is no one's.
    """
    if _now.world == 1:
        return
    sums = [each.detach().reshape(-1).contiguous().view(torch.uint8).sum(dtype=torch.long) for each in tensors.values()]
    own = torch.stack([each.cpu() for each in sums])
    firsts = own.clone()
    with _together():
        dist.broadcast(firsts, 0)
    differing = [name for name, same in zip(tensors, (own == firsts).tolist(), strict=True) if not same]
    if differing:
        raise SearchFailed(
            f"rank {_now.rank} of {_now.world} has drifted from the first: {differing[0]!r} differs, with "
            f"{len(differing) - 1} more; GPUs of one trial must be alike, or take one (resources.gpus)"
        )


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours of one type on one device, of no more than a bucket together where there are several."""
    bucket: list[Tensor] = []
    n_bytes = 0
    for each in tensors:
        alike = bool(bucket) and (each.dtype, each.device) == (bucket[0].dtype, bucket[0].device)
        if bucket and (not alike or n_bytes + each.nbytes > _BUCKET_BYTES):
            yield bucket
            bucket, n_bytes = [], 0
        bucket.append(each)
        n_bytes += each.nbytes
    if bucket:
        yield bucket


@contextmanager
def _together() -> Iterator[None]:
    """Tell a call that other ranks did not answer from what went wrong here."""
    try:
        yield
    except RuntimeError as error:
        raise PeerLost(" ".join(str(error).split())) from error
