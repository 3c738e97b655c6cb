"""Memory that ran out, in words that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch

from nas import ranks
from nas.checkpoint import read_state
from nas.config.method import Method
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.errors import SearchFailed
from nas.held import HeldBy, rows_with_room
from nas.training import rows_at_once

ADVICE = "a smaller batch_size, train_length, d_model or n_slots needs less"
ADVICE_MEASURING = "smaller batch and query_length of task.serve need less"
# torch says so with a plain RuntimeError where an allocation on the processor fails.
_SAID_BY_TORCH = ("can't allocate memory", "not enough memory", "out of memory")


@contextmanager
def explained(advice: str = ADVICE) -> Iterator[None]:
    """Turn an allocation that failed inside into a SearchFailed of one line.

    Args:
        advice: what needs less.

    Raises:
        SearchFailed: memory ran out.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        said = " ".join(str(error).split())
        if not isinstance(error, MemoryError) and not any(words in said.lower() for words in _SAID_BY_TORCH):
            raise
        if isinstance(error, SearchFailed):
            raise
        details = f" ({said[:200]})" if said else ""
        raise SearchFailed(f"memory ran out; {advice}{details}") from error


def check_room(space: SearchSpace, where: str, n_ranks: int = 1) -> None:
    """Refuse a supernet that is sure not to fit, before the kernel looks for a process to end.

    Args:
        space: of the supernet.
        where: it is trained, cpu or cuda; it is made in the machine's own memory in any case.
        n_ranks: processes that will make one.

    Raises:
        SearchFailed: its weights, on a CPU with gradients and AdamW's two moments, are more than what is free here.
    """
    parameters = space.n_slots * sum(space.parameters().values())
    needed = 4 * parameters * (4 if where == "cpu" else 1) * n_ranks
    free = psutil.virtual_memory().available
    if needed > free:
        raise SearchFailed(
            f"the supernet's {parameters / 1e6:,.1f} million parameters need {needed / 1e9:,.1f} GB of memory, and "
            f"{free / 1e9:,.1f} GB are free; a smaller max_len, d_model or n_slots needs less"
        )


def fitted(request: SearchRequest, held: HeldBy, where: str, resume: Path | None = None) -> SearchRequest:
    """The request, with its batches in passes of as many rows as have room where a whole batch has none.

    Of several ranks the first one's answer holds for all, so that they make the same passes. A trial that is taken up
    goes on with the passes it began with, whatever is free by now: others add up to other bits.

    Args:
        request: of a trial: one seed, no ranges.
        held: by the trial, by rows of a pass; asked only where a formula says that it might not fit.
        where: it runs, cpu or cuda.
        resume: checkpoint that the trial goes on from.

    Raises:
        SearchFailed: not one row has room, or not the rows that method.micro_batch asks for, or that the trial had.
    """
    begun = {} if resume is None else read_state(resume)
    if "micro_batch" in begun:  # checkpoints of before do not have it
        request = request.in_passes(begun["micro_batch"])
    rows = asked = rows_at_once(request.method)
    if ranks.now().is_first:
        rows = _rows(request, held, where, asked, begun="micro_batch" in begun)
    rows = ranks.told_by_first(rows)
    return request if rows >= asked else request.in_passes(rows)


def _rows(request: SearchRequest, held: HeldBy, where: str, asked: int, *, begun: bool) -> int:
    """How many of the rows that are asked for go through at once here. Raises: SearchFailed: as `fitted`."""
    free = _free_bytes(where)
    if _far_too_much(request, asked) <= free:
        return asked
    with ranks.alone():
        rows, one = rows_with_room(held, request.method.batch_size, free)
    if rows >= asked:
        return asked
    if not rows:
        raise SearchFailed(
            f"a trial of this size needs {one / 1e9:,.1f} GB of memory with one window at a time, and "
            f"{free / 1e9:,.1f} GB are free; a smaller train_length, d_model or n_slots needs less"
        )
    if begun:
        raise SearchFailed(
            f"the trial began with passes of {asked} windows, and in the {free / 1e9:,.1f} GB that are free there is "
            f"room for {rows}; resume it where more is free"
        )
    if request.method.micro_batch is not None:
        raise SearchFailed(
            f"method.micro_batch is {request.method.micro_batch}, and in the {free / 1e9:,.1f} GB that are free there "
            f"is room for {rows}; leave it out to have it chosen"
        )
    return rows


def passes_told(asked: Method, chosen: Method) -> str | None:
    """What a person should know of passes that were chosen; None where none were."""
    if asked.micro_batch == chosen.micro_batch:
        return None
    return (
        f"a batch of {chosen.batch_size} windows has no room in memory: it goes through in passes of "
        f"{chosen.micro_batch} (method.micro_batch), gradients added up"
    )


def _free_bytes(where: str) -> int:
    free: int = torch.cuda.mem_get_info()[0] if where == "cuda" else psutil.virtual_memory().available
    return free


def _far_too_much(request: SearchRequest, rows: int) -> int:
    """Bytes that no trial comes near, by formula: where these are free, nothing need be measured.

    A retraining's network is a part of the supernet of its space. A teacher has neither gradients nor moments, but
    answers of its own, which are compared over the whole vocabulary.

    Of each token and slot 64 widths (attention keeps about 8), four times what the candidate of most weights has of
    them a width (wide blocks keep an activation or two for each row of a matrix: 1.3 times that for an FFN of ratio 64,
    measured), and 8 rows of scores for each head; of each token 8 rows of the vocabulary, 20 beside a teacher; weights,
    gradients and moments, and as much again for a comparison of the parsimony pass.
    """
    space, length = request.space, request.task.train_length
    seen = length + space.memory_length
    counts = space.parameters().values()
    a_slot = 64 * space.d_model + 4 * max(counts) // space.d_model + 8 * space.n_heads * seen
    a_token = space.n_slots * a_slot + (20 if request.retrain.distil else 8) * request.task.vocab_size
    weights = space.n_slots * sum(counts) + 4 * request.task.vocab_size * space.d_model
    return 4 * (rows * length * a_token + 8 * weights)
