"""Train one architecture: the derived one and its baselines under the same recipe and seeds.

It starts from scratch, or from the weights of a finished search (nas.warm), and learns from the data alone, or from a
teacher beside them (nas.distil): on the weights and alpha parts together. It is monitored on validation and scored
once, at the end, on test: at the length it was trained at, and at each length of the task (nas.lengths).
The same seed draws the same windows, in the same order and with the same masks, for every architecture, so that
differences are paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from nas import checkpoint, guards, ranks
from nas.architecture import Architecture
from nas.blocks import block_classes
from nas.config.request import SearchRequest
from nas.data.objectives import Batch
from nas.data.parts import Parts
from nas.data.streams import Stream, held_out
from nas.distil import taught
from nas.heads import IGNORE
from nas.lengths import LengthScore, score_lengths
from nas.network import Memory, Network
from nas.options import NetworkConfig
from nas.steps import StepRecord
from nas.training import (
    Forward,
    evaluate,
    finite_or_fail,
    generator,
    learning_rate,
    loss_parts,
    mean_or_fail,
    reports,
    rows_at_once,
    weight_step,
    weights_optimiser,
)
from nas.warm import copy_supernet

_DATA, _DROPOUT = 8, 9  # streams of the trial's seed; the search uses the first seven


def build(config: NetworkConfig) -> Network:
    """The concrete network with the registered classes of its blocks."""
    return Network(config, block_classes(sorted({slot.block for slot in config.slots})))


def scoring(network: Network) -> Forward:
    """How a network is trained and evaluated."""

    def forward(batch: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
        hidden, kept = network.body(batch.tokens, memory, key_padding=batch.key_padding)
        return network.backbone.nats(hidden, batch.targets, batch.key_padding, batch.places), kept

    return forward


@torch.no_grad()
def confusion(network: Network, batch: Batch, batch_size: int) -> Tensor:
    """Scored examples or tokens by class, then by answer.

    Args:
        network: in evaluation mode.
        batch: any number of rows, without memory.
        batch_size: rows per forward.

    Returns:
        (C, C) counts; (0, 0) of a network that predicts tokens.
    """
    n_classes = network.config.backbone.n_classes
    counts = torch.zeros(n_classes * n_classes, dtype=torch.long)
    for start in range(0, len(batch.tokens) if n_classes else 0, batch_size):
        rows = batch.rows(slice(start, start + batch_size))
        hidden, _ = network.body(rows.tokens, key_padding=rows.key_padding)
        answers = network.backbone.answers(hidden, rows.key_padding)
        scored = rows.targets != IGNORE
        cells = rows.targets[scored] * n_classes + answers[scored]
        counts += torch.bincount(cells.cpu(), minlength=n_classes * n_classes)
    return counts.view(n_classes, n_classes)


@dataclass(frozen=True)
class RetrainResult:
    """What a finished retraining leaves behind.

    Args:
        val_loss: nats per scored token on the validation windows.
        test_nats: (N,) nats per scored token of each test window, in the order of the text.
        test_positions: (T,) mean nats of each position; None where none is scored. (1,) of whole sequences.
        confusion: (C, C) test examples or tokens by class, then by answer; empty unless the task classifies.
        step: weight updates.
        lengths: the test part at each length of the task.
    """

    val_loss: float
    test_nats: list[float]
    step: int
    test_positions: list[float | None] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)
    lengths: list[LengthScore] = field(default_factory=list)


class Retraining:
    """A training run with the interface of `Search`: `run`, `save`, `load`.

    Args:
        request: resolved: one seed. `retrain.n_steps` updates with the method's batch size and learning rate.
        architecture: what to train.
        parts: the four parts of the text.
        device: where the network lives.
        supernet: checkpoint of a finished search of this space, whose weights it starts from; None: from scratch.
        teacher: that it learns from beside the data, as `retrain.distil` says; None: from the data alone.
    """

    def __init__(
        self,
        request: SearchRequest,
        architecture: Architecture,
        *,
        parts: Parts,
        device: str = "cpu",
        supernet: Path | None = None,
        teacher: Network | None = None,
    ) -> None:
        self.request = request
        self.architecture = architecture
        self.method = request.method
        self.n_steps = request.retrain.n_steps
        self.length = request.task.train_length
        self.device = device
        self.dropout = generator(request.trials.seed, _DROPOUT)
        with torch.random.fork_rng(devices=[]):  # modules initialise from the global generator
            torch.manual_seed(request.trials.seed)
            self.network = build(request.network_config(architecture.labels, request.task.vocab_size)).to(device)
        if supernet is not None:
            copy_supernet(self.network, architecture, request.space, supernet)
        self.forward = self.learning = scoring(self.network)
        if teacher is not None:
            assert request.retrain.distil is not None
            self.learning = taught(self.network, teacher.to(device).eval(), request.retrain.distil)
        self.weights = dict(self.network.named_parameters())
        self.optimiser = weights_optimiser(self.weights, self.method)
        self.stream = Stream(parts.training, request, generator(request.trials.seed, _DATA), device)
        self.validation = held_out(parts.validation, self.method.eval_windows, request, device)
        self.test_part = parts.test
        self.test = held_out(parts.test, request.retrain.test_windows, request, device)
        self.step = 0
        self.seconds = 0.0
        self._losses: list[Tensor] = []
        self.result: RetrainResult | None = None

    @property
    def done(self) -> bool:
        return self.step >= self.n_steps

    def run(self) -> Iterator[StepRecord]:
        """Train to the end, one record per report; safe to `save` after a record, before asking for the next.

        Raises:
            SearchFailed: training diverged.
        """
        return reports(self)

    def advance(self) -> None:
        """A weight update."""
        losses = loss_parts(
            self.learning, self.stream.next(), self.stream, method=self.method, dropout=self.dropout, device=self.device
        )
        lr = learning_rate(self.step, self.n_steps, self.method)
        loss = weight_step(losses, self.optimiser, lr=lr, grad_clip=self.method.grad_clip)
        self._losses.append(loss)
        self.step += 1

    def record(self, *, tokens_per_s: float | None, last: bool) -> StepRecord:
        train_loss = mean_or_fail(self._losses, self.step)
        self._losses = []
        self.network.eval()
        val_loss = finite_or_fail(evaluate(self.forward, self.validation, rows_at_once(self.method)).mean(), self.step)
        if last:
            self.result = self._tested(val_loss)
        self.network.train()
        ended = f"the retraining ended after {self.step} of {self.n_steps} weight updates"
        cut_short = guards.time_is_up(ended, self.method.max_minutes) if last and not self.done else None
        return StepRecord(
            step=self.step,
            train_loss=train_loss,
            val_loss=val_loss,
            tokens_per_s=tokens_per_s,
            warning=cut_short,
            cut_short=cut_short,
            last=last,
            checkpoint=last or (self.step > 0 and self.step % self.method.checkpoint_every == 0),
        )

    def _tested(self, val_loss: float) -> RetrainResult:
        """Score the network, in evaluation mode, on the test part."""
        tested = evaluate(self.forward, self.test, rows_at_once(self.method))
        finite_or_fail(tested.mean(), self.step)
        request = self.request.in_passes(rows_at_once(self.method))  # as of all ranks, by one of which they are scored
        with ranks.alone():  # which lengths have room is asked of the machine, and may be answered in two ways
            lengths = score_lengths(request, self.architecture, self.forward, self.test_part, self.device)
        return RetrainResult(
            val_loss=val_loss,
            test_nats=tested.windows.tolist(),
            step=self.step,
            test_positions=[None if math.isnan(each) else each for each in tested.positions.tolist()],
            confusion=confusion(self.network, self.test.batch, rows_at_once(self.method)).tolist(),
            lengths=lengths,
        )

    def save(self, path: Path) -> None:
        """Write the whole state to one file, atomically; at the end it carries the result too."""
        assert not self._losses
        tensors: dict[str, Tensor] = {f"network.{name}": parameter for name, parameter in self.weights.items()}
        tensors |= checkpoint.optimiser_tensors("optimiser", self.optimiser, self.weights)
        tensors |= {"generator.dropout": self.dropout.get_state()}
        tensors |= {f"stream.{key}": value for key, value in self.stream.state().items()}
        state = {"kind": "retrain", "step": self.step, "seconds": self.seconds, "micro_batch": self.method.micro_batch}
        if self.result is not None:
            state["result"] = asdict(self.result)
        checkpoint.write(path, tensors, state)

    def load(self, path: Path) -> None:
        """Take up the state of `save`; `run` goes on with the next step."""
        tensors, state = checkpoint.read(path)
        with torch.no_grad():
            for name, parameter in self.weights.items():
                parameter.copy_(tensors[f"network.{name}"])
        checkpoint.restore_optimiser("optimiser", self.optimiser, self.weights, tensors)
        self.dropout.set_state(tensors["generator.dropout"])
        self.stream.restore(checkpoint.prefixed("stream", tensors))
        self.step, self.seconds = state["step"], state["seconds"]


def read_result(path: Path) -> RetrainResult:
    """The result in the last checkpoint of a retraining.

    Raises:
        KeyError: the retraining had not ended when this file was written.
    """
    result = checkpoint.read_state(path)["result"]
    return RetrainResult(**{**result, "lengths": [LengthScore(**each) for each in result.get("lengths", ())]})


def load_network(path: Path, config: NetworkConfig) -> Network:
    """The trained network of a retraining's checkpoint, in evaluation mode."""
    network = build(config)
    tensors, _ = checkpoint.read(path)
    network.load_state_dict(checkpoint.prefixed("network", tensors))
    return network.eval()
