"""The one optimiser set-up, training step, evaluation and rhythm of reports, shared by search and retraining."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor, nn

from nas import ranks
from nas.config.method import Method
from nas.data.objectives import Batch
from nas.data.streams import HeldOut, Stream
from nas.errors import SearchFailed
from nas.heads import IGNORE
from nas.network import Memory
from nas.steps import StepRecord

Forward = Callable[[Batch, Memory | None], tuple[Tensor, Memory | None]]
"""A batch, with the memory of the one before, to nats shaped as its targets, and the memory for the next."""

_STREAMS = 16  # generators per seed; more than any trial uses

# Of two axes and more, but no matrices: Transformer-XL's u and v, T5's table and sMGK's shifts are biases, and decay
# would pull MGK's mixtures towards equal ones, and its variances, which start at sqrt(W), towards 1.
_NO_MATRICES = ("backbone.u", "backbone.v", ".table", ".shifts", ".logits", ".log_variance")


def generator(seed: int, stream: int) -> Generator:
    """An independent source of randomness: each use of chance in a trial has its own stream of the seed."""
    assert 0 <= stream < _STREAMS
    return Generator().manual_seed(seed * _STREAMS + stream)


def weights_optimiser(parameters: dict[str, nn.Parameter], method: Method) -> torch.optim.Optimizer:
    """AdamW; decay on matrices only, so that biases, norms and the SGU's open gate are not pulled to zero.

    Parameters without a gradient are skipped, moments and all: a step touches only the path that ran.

    Args:
        parameters: by their names in the network, which tell what of several axes is no matrix.
        method: learning rate and decay.
    """
    decays = {name: each.ndim >= 2 and not name.endswith(_NO_MATRICES) for name, each in parameters.items()}
    matrices = [parameter for name, parameter in parameters.items() if decays[name]]
    vectors = [parameter for name, parameter in parameters.items() if not decays[name]]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": method.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=method.lr,
        betas=(0.9, 0.98),
        fused=True,
    )


def learning_rate(step: int, n_steps: int, method: Method) -> float:
    """Linear rise over lr_warmup_steps (at most a quarter of the run), then level, or cosine to a tenth of the peak."""
    rise = min(method.lr_warmup_steps, n_steps // 4)
    if step < rise:
        return method.lr * (step + 1) / rise
    if method.lr_schedule == "constant":
        return method.lr
    share = (step - rise) / max(1, n_steps - rise)
    return method.lr * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share)))


def loss_of(nats: Tensor, batch: Batch) -> Tensor:
    """Mean loss of the scored tokens, nats; 0 where there are none.

    Args:
        nats: as the batch's targets, 0 where nothing is scored.
        batch: that they are of.
    """
    return nats.sum() / (batch.targets != IGNORE).sum().clamp_min(1)


@contextmanager
def dropout_from(source: Generator, device: str) -> Iterator[None]:
    """Let dropout, which draws from the global generators, follow `source`; they are put back afterwards."""
    with torch.random.fork_rng(devices=[device] if device.startswith("cuda") else []):
        torch.manual_seed(_seed(source))
        yield


def _seed(source: Generator) -> int:
    return int(torch.randint(2**62, (), generator=source))


def loss_parts(
    forward: Forward, batch: Batch, stream: Stream, *, method: Method, dropout: Generator, device: str
) -> Iterator[Tensor]:
    """The mean loss of a batch in parts that add up to it, each of one pass of `micro_batch` rows.

    A pass begins once the gradient of the one before has been taken, so that only one has its activations in memory.
    Of several ranks each makes the passes of its own rows, whose memory it keeps; parts of all of them add up. So two
    ranks do what one does in two passes, dropout included.

    Args:
        forward: in training mode.
        batch: that is learnt from.
        stream: that it is of; its memory, of this rank's rows, is read by row, and replaced behind the last pass.
        method: micro_batch and precision.
        dropout: source of its random numbers, anew for each pass.
        device: cpu or cuda.
    """
    rows = len(batch.tokens)
    size = min(rows, method.micro_batch or rows)
    n_scored = (batch.targets != IGNORE).sum().clamp_min(1)
    before, left = stream.memory, []
    for rank, block in enumerate(ranks.now().blocks(rows)):
        for start in range(block.start, block.stop, size):
            if rank != ranks.now().rank:
                _seed(dropout)  # every rank's source moves on by all passes
                continue
            end = min(start + size, block.stop)
            own = slice(start - block.start, end - block.start)
            memory = before and [None if each is None else each[own] for each in before]
            with dropout_from(dropout, device), autocast(method.precision, device):
                nats, after = forward(batch.rows(slice(start, end)) if end - start < rows else batch, memory)
            left.append(after)
            yield nats.sum() / n_scored
    stream.memory = _joined(left)


def _joined(memories: list[Memory | None]) -> Memory | None:
    """Of passes over some rows each, the memory of all rows."""
    kept = [each for each in memories if each is not None]
    if len(kept) <= 1:
        return kept[0] if kept else None
    slots = ([each for each in slot if each is not None] for slot in zip(*kept, strict=True))
    return [torch.cat(slot) if slot else None for slot in slots]


def autocast(precision: str, device: str) -> torch.autocast:
    """bfloat16: products in it, in reach of its 8 bits; sums, norms, softmax and all weights stay in float32."""
    return torch.autocast(device.split(":")[0], dtype=torch.bfloat16, enabled=precision == "bfloat16")


def weight_step(losses: Iterable[Tensor], optimiser: torch.optim.Optimizer, *, lr: float, grad_clip: float) -> Tensor:
    """One weight update, with the gradients of all ranks; returns the loss, detached and still on its device.

    Args:
        losses: this rank's parts of the loss, each of which depends on the weights that ran.
        optimiser: over the weights; gradients are left for nobody.
        lr: learning rate of this step.
        grad_clip: largest norm of the gradient of what ran.
    """
    total: Tensor | None = None
    for loss in losses:
        torch.autograd.backward(loss)
        total = loss.detach() if total is None else total + loss.detach()
    assert total is not None
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    ranks.add_up_gradients(parameters)
    ranks.add_up([total])
    ran = [parameter for parameter in parameters if parameter.grad is not None]
    nn.utils.clip_grad_norm_(ran, grad_clip)
    for group in optimiser.param_groups:
        group["lr"] = lr
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return total


def rows_at_once(method: Method) -> int:
    """Windows of a forward pass, where they are learnt from and where held-out ones are scored."""
    most: int = max(block.stop - block.start for block in ranks.now().blocks(method.batch_size))
    return min(most, method.micro_batch or most)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Losses in nats per scored token, on the CPU. N windows, T tokens.

    Args:
        windows: (N,) mean of each window in which something is scored, in the order of the text. Without are documents
            of which no word with a label is left: too long before it, or a word that is nothing to the tokenizer.
        positions: (T,) mean of each position over the windows, NaN where none is scored; (1,) of whole sequences.
    """

    windows: Tensor
    positions: Tensor

    def mean(self) -> Tensor:
        return self.windows.mean()


@torch.no_grad()
def evaluate(forward: Forward, held_out: HeldOut, batch_size: int) -> Evaluated:
    """Loss of each window, and of each position; ranks share the windows out, and all of them get the same bits.

    Args:
        forward: in evaluation mode.
        held_out: windows that follow each other are read one after the other, with memory in between.
        batch_size: windows per forward; others give other bits.
    """
    whole = held_out.batch
    places = torch.arange(len(whole.tokens)).view(-1, held_out.segments)  # (rows, segments): numbers of the windows
    windows = torch.zeros(len(whole.tokens), dtype=torch.float64)
    sums = torch.zeros(whole.targets.shape[1], dtype=torch.float64)
    for number, rows in enumerate(torch.split(places, batch_size)):
        if number % ranks.now().world != ranks.now().rank:
            continue
        memory = None
        for segment in range(held_out.segments):
            batch = whole.rows(rows[:, segment])
            nats, memory = forward(batch, memory)
            n_scored = (batch.targets != IGNORE).sum(dim=1)
            windows[rows[:, segment]] = (nats.sum(dim=1) / n_scored).double().cpu()
            sums += nats.sum(dim=0).double().cpu()
    ranks.add_up([windows, sums])
    scored = (whole.targets != IGNORE).cpu()
    return Evaluated(windows[scored.any(dim=1)].float(), sums.float() / scored.sum(dim=0))


def mean_or_fail(losses: list[Tensor], step: int) -> float | None:
    """Mean of the losses since the last report; None when there were none.

    Raises:
        SearchFailed: training diverged.
    """
    return finite_or_fail(torch.stack(losses).mean(), step) if losses else None


def finite_or_fail(loss: Tensor, step: int) -> float:
    """A loss as a number. The last weights may be broken though the step that broke them still had a finite loss.

    Raises:
        SearchFailed: training diverged.
    """
    value = float(loss)
    if not math.isfinite(value):
        raise SearchFailed(f"training diverged by step {step}: the loss is {value}; a lower lr or grad_clip may help")
    return value


class Trial(Protocol):
    """What `reports` runs: a search or a retraining."""

    method: Method
    length: int
    step: int  # weight updates done
    seconds: float  # of the attempts before this one, and of this one up to the last record

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""

    def advance(self) -> bool | None:
        """One weight update or some, counted in `step`, and what goes with them; True: to be reported at once."""

    def record(self, *, tokens_per_s: float | None, last: bool) -> StepRecord:
        """The state at `step`."""


def reports(trial: Trial) -> Iterator[StepRecord]:
    """Run a trial until it is done or its time is up: a record at step 0, at each report and at each checkpoint.

    Where one advance takes several weight updates, the record that they pass is of the step they end at. Safe to save
    the trial after a record, before asking for the next.
    """
    method = trial.method
    started = reported = time.monotonic()
    reported_step = trial.step
    if trial.step == 0:
        yield trial.record(tokens_per_s=None, last=False)
    while not trial.done:
        due = trial.advance()
        now = time.monotonic()
        late = trial.seconds + now - started > method.max_minutes * 60
        last = trial.done or bool(ranks.told_by_first(late))
        if last or due or _passed(reported_step, trial.step, method.report_every, method.checkpoint_every):
            assert trial.step > reported_step  # a step has one record
            tokens = (trial.step - reported_step) * method.batch_size * trial.length
            record = trial.record(tokens_per_s=tokens / (now - reported), last=last)
            reported, reported_step = time.monotonic(), trial.step
            trial.seconds += reported - started
            started = reported
            yield record
            if last:
                return


def _passed(before: int, step: int, *every: int) -> bool:
    """Whether a multiple lies behind `before`, up to `step`."""
    return any(step // each > before // each for each in every)
