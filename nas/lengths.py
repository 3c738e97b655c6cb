"""How well a trained network does at other lengths than it learnt: the test part at each length of the task.

A text is cut at every length from the same places, so that all lengths are scored on the same tokens and differ only in
how much stands before each (ours; Press et al. 2021, arXiv:2108.12409, section 2.2, calls the part of the difference
that is due to short windows alone the early token curse). Labelled documents are the same ones, cut or padded at each
length; a synthetic task is drawn at each length, where it can be. Where a network cannot run, or has learnt nothing, it
says so in words and has no figure. N windows, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil
import torch
from torch import Tensor

from nas import catalog
from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.config.task import Task
from nas.data.objectives import held_out_batch
from nas.data.parts import Part, TokenIds, Tokens, eval_windows
from nas.data.streams import HELD_OUT_ROWS, HeldOut
from nas.data.synthetic.generated import synthetic_parts
from nas.training import Forward, evaluate, rows_at_once

MOST_POSITIONS = 512  # told apart at one length; longer windows tell means of neighbours, so that results stay small


@dataclass(frozen=True)
class LengthScore:
    """One network on the test part at one length.

    Args:
        length: tokens T of a window.
        nats: (N,) nats per scored token of each window, in the order of the text; empty where there is a `why`.
        positions: mean nats of each `width` positions that follow each other; None where none is scored.
        width: positions that a mean is of; 1 up to MOST_POSITIONS tokens.
        why: what keeps it out, as the end of a sentence; None where it has been scored.
    """

    length: int
    nats: list[float] = field(default_factory=list)
    positions: list[float | None] = field(default_factory=list)
    width: int = 1
    why: str | None = None


def score_lengths(
    request: SearchRequest, architecture: Architecture, forward: Forward, part: Part, device: str
) -> list[LengthScore]:
    """Score a network at each of the task's lengths, on as many tokens as its test windows hold.

    Args:
        request: resolved.
        architecture: of the network.
        forward: of the network, in evaluation mode.
        part: the test part.
        device: where the network is.
    """
    return [_score(request, architecture, forward, part, device, length) for length in request.task.scored_lengths]


def _score(
    request: SearchRequest, architecture: Architecture, forward: Forward, part: Part, device: str, length: int
) -> LengthScore:
    task, rows = request.task, max(1, rows_at_once(request.method) * request.task.train_length // length)
    used = request.space.model_copy(
        update={"candidates": tuple(each for each in request.space.candidates if each.label in architecture.labels)}
    )
    why = used.bounded_by(length, task.train_length) or no_room(used, length, rows, device)
    if why is not None:
        return LengthScore(length, why=why)
    held_out = test_at(request, part, length)
    if isinstance(held_out, str):
        return LengthScore(length, why=held_out)
    try:
        scored = evaluate(forward, HeldOut(held_out.batch.to(device), held_out.segments), rows)
    except torch.OutOfMemoryError:
        return LengthScore(length, why=f"{rows} windows at once have no room on {device}")
    if not len(scored.windows):
        return LengthScore(length, why="no token with a label is left there")
    if not bool(scored.windows.isfinite().all()):
        return LengthScore(length, why="its loss there is not a number")
    width = -(-len(scored.positions) // MOST_POSITIONS)
    return LengthScore(length, scored.windows.tolist(), _means(scored.positions, width), width)


def test_at(request: SearchRequest, part: Part, length: int) -> HeldOut | str:
    """The test part at one length, on the CPU, or what keeps it from being read there."""
    task, n_windows = request.task, request.retrain.test_windows
    n_tokens = n_windows * task.train_length
    if isinstance(part, Tokens):
        return _text_at(request, part.ids, n_tokens, length)
    at_length = task.model_copy(update={"train_length": length})
    if task.synthetic is None:
        return HeldOut(part.held_out(at_length, n_windows), segments=1)
    why = _undrawable(at_length)
    if why is not None:
        return why
    return HeldOut(synthetic_parts(at_length).test.held_out(at_length, max(2, n_tokens // length)), segments=1)


def _undrawable(task: Task) -> str | None:
    try:
        task.synthetic_options().check(task.train_length)
    except ValueError as error:
        return f"the task cannot be drawn there: {error}"
    return None


def _text_at(request: SearchRequest, ids: TokenIds, n_tokens: int, length: int) -> HeldOut | str:
    """Windows of one length, cut from the spans that are the same for all lengths that fit twice into the text."""
    fitting = [each for each in request.task.scored_lengths if (len(ids) - 1) // each >= 2]
    if length not in fitting:
        return f"the test part has {len(ids):,} tokens, and two windows need {2 * length + 1:,}"
    n_spans, span = spans(len(ids), n_tokens, max(fitting), with_memory=request.space.memory_length > 0)
    whole = eval_windows(ids, n_spans, span)  # (n_spans, span + 1)
    windows = whole.unfold(1, length + 1, length)  # (n_spans, span // length, length + 1): a target each but the last
    segments = windows.shape[1] if request.space.memory_length else 1
    return HeldOut(held_out_batch(request.task, windows.reshape(-1, length + 1)), segments)


def spans(n_ids: int, n_tokens: int, longest: int, *, with_memory: bool) -> tuple[int, int]:
    """How many stretches of a text are scored at every length, and how long each is.

    Args:
        n_ids: tokens of the text, at least two stretches of `longest` and one more.
        n_tokens: to be scored, as far as the text has them.
        longest: of the lengths.
        with_memory: few long stretches, whose windows follow each other; else each is as long as the longest length.
    """
    n_spans = max(2, min(n_tokens, n_ids - 1) // longest)
    if not with_memory or n_spans <= HELD_OUT_ROWS:
        return n_spans, longest
    return HELD_OUT_ROWS, n_spans // HELD_OUT_ROWS * longest


def no_room(space: SearchSpace, length: int, rows: int, device: str) -> str | None:
    """What to say where scores of each token against each other would not fit into the free memory; None: they do.

    A processor without memory does not say so: the kernel ends the process. A GPU does, so there it is tried.

    Args:
        space: with the candidates that are used.
        length: T.
        rows: windows at once.
        device: where the network is.
    """
    if device != "cpu" or not any(_is_quadratic(space, number, length) for number in range(len(space.candidates))):
        return None
    keys = length + space.shape().kept_tokens(training=False)
    needed = 3 * 4 * rows * space.n_heads * length * keys  # scores, their softmax and a mask or bias, float32
    free = psutil.virtual_memory().available
    if needed <= free:
        return None
    return f"scores of {rows} x {length} tokens take up to {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"


def _is_quadratic(space: SearchSpace, number: int, length: int) -> bool:
    """Whether twice the length takes clearly more than twice the operations; of a class in Python, which counts them
    by running, it is not asked.
    """
    candidate, shape = space.candidates[number], space.shape()
    spec = catalog.block(candidate.block)
    if spec.own is not None:
        return True
    once, twice = (spec.flops(shape, candidate.built_options(), n, 0) for n in (length, 2 * length))
    return twice > 2.2 * once


def _means(positions: Tensor, width: int) -> list[float | None]:
    """Of each `width` neighbours that are scored; None where none is."""
    means: Sequence[float] = [float(each.nanmean()) for each in torch.split(positions, width)]
    return [None if mean != mean else mean for mean in means]  # NaN is the only number that is not itself
