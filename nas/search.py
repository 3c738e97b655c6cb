"""One supernet search: warm-up, alternation of weight and alpha steps, budget pressure, and its records.

The procedure of par-search.md section 3.3 with our defaults: weight steps run one path, alpha steps see every
candidate but compute no weight gradients. Each kind of step reads a stream of its own, with a memory of its own.
L slots, K candidates, B batch, T tokens, D model width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from nas import checkpoint, cost
from nas.alphas import Alphas
from nas.blocks import block_classes
from nas.config import SearchRequest
from nas.cost import LatencyTable
from nas.data.objectives import Batch
from nas.data.parts import Parts
from nas.data.streams import Stream, held_out
from nas.gumbel import gumbel, path_factor, sample, straight_through, temperature
from nas.network import Memory
from nas.one_search import search as search
from nas.pressure import Pressure, target_ms
from nas.steps import StepRecord
from nas.supernet import Supernet
from nas.training import (
    Forward,
    dropout_from,
    evaluate,
    finite_or_fail,
    generator,
    learning_rate,
    loss_of,
    mean_or_fail,
    reports,
    weight_step,
    weights_optimiser,
)

# Of the trial's seed, one per use of chance; by their places, so that a new one comes last.
_STREAMS = ("weight_data", "alpha_data", "paths", "noise", "signs", "dropout")


class Search:
    """A search that can be stopped at any report and taken up again with the same bits.

    Args:
        request: resolved: one seed, no ranges.
        parts: the four disjoint parts of the data; weights learn on one, alpha on another.
        table: latency of each candidate, an input.
        device: where the supernet lives; alpha and every generator stay on the CPU.
    """

    def __init__(self, request: SearchRequest, *, parts: Parts, table: LatencyTable, device: str = "cpu") -> None:
        assert not request.ranges
        assert request.trials.n_seeds == 1
        self.method = request.method
        self.space = request.space
        self.length = request.task.train_length
        self.device = device
        seed = request.trials.seed
        self.generators = {name: generator(seed, stream) for stream, name in enumerate(_STREAMS)}
        self.streams = {
            name: Stream(part, request, self.generators.pop(name), device)
            for name, part in (("weight_data", parts.weights), ("alpha_data", parts.alpha))
        }
        # Modules initialise from the global generator: forked here, so that the caller's is left as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            blocks = {candidate.block for candidate in self.space.candidates}
            self.supernet = Supernet(self.space, request.task.vocab_size, block_classes(sorted(blocks)))
            self.supernet.to(device)
        self.weights = dict(self.supernet.named_parameters())
        self.optimiser = weights_optimiser(self.weights, self.method)
        n_slots, n_candidates = self.space.n_slots, len(self.space.candidates)
        self.alphas = Alphas(n_slots, n_candidates, self.method, self.generators["signs"])
        self.slot_costs = torch.tensor(table.slot_ms(self.space))
        self.offset_ms = table.offset_ms
        self.pressure = Pressure(self.method, target_ms(request, table))
        self.validation = held_out(parts.validation, self.method.eval_windows, request, device)
        self.fair_paths = torch.zeros(0, n_slots, dtype=torch.long)  # uniform paths still to run
        self.updates = torch.zeros(n_slots, n_candidates, dtype=torch.long)
        self.step = 0
        self.seconds = 0.0  # of the attempts before this one
        self._losses: list[Tensor] = []

    @property
    def warmup_steps(self) -> int:
        return round(self.method.warmup_share * self.method.n_steps)

    def run(self) -> Iterator[StepRecord]:
        """Search to the end, one record per report; safe to `save` after a record, before asking for the next.

        Raises:
            SearchFailed: training diverged.
        """
        return reports(self, self.method.n_steps)

    # -- one step of each kind ------------------------------------------------------------------------------------

    def advance(self) -> None:
        """A weight update, and an alpha update where one is due."""
        self._weight_step()
        self.step += 1
        if self._alpha_is_due():
            self._alpha_step()

    def _loss(self, stream: Stream, forward: Forward) -> Tensor:
        """Of the stream's next batch, with dropout; the memory it leaves is the stream's."""
        batch = stream.next()
        with dropout_from(self.generators["dropout"], self.device):
            nats, stream.memory = forward(batch, stream.memory)
        return loss_of(nats, batch)

    def _weight_step(self) -> None:
        path = self._draw_path()
        for slot, choice in enumerate(path):
            self.updates[slot, choice] += 1
        loss = weight_step(
            self._loss(self.streams["weight_data"], self._path_nats(path)),
            self.optimiser,
            lr=learning_rate(self.step, self.method.n_steps, self.method),
            grad_clip=self.method.grad_clip,
        )
        self._losses.append(loss)

    def _path_nats(self, path: Sequence[int], factors: Tensor | None = None) -> Forward:
        def forward(batch: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
            hidden, kept = self.supernet.forward_path(
                batch.tokens, path, factors, memory=memory, key_padding=batch.key_padding
            )
            return self.supernet.backbone.nats(hidden, batch.targets, batch.key_padding), kept

        return forward

    def _mixture_nats(self, weights: Tensor, path: Sequence[int] | None = None) -> Forward:
        def forward(batch: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
            hidden, kept = self.supernet.forward_mixture(
                batch.tokens, weights, path, memory=memory, key_padding=batch.key_padding
            )
            return self.supernet.backbone.nats(hidden, batch.targets, batch.key_padding), kept

        return forward

    def _draw_path(self) -> list[int]:
        """A path for a weight step: uniform in warm-up, afterwards alpha's own with 1 - uniform_share.

        Uniform paths come K at a time, each slot in an order of its own: every candidate of a slot is trained the
        same number of times (strict fairness). Paths of alpha alone would starve the losers, who then cannot return.
        """
        paths = self.generators["paths"]
        if self.step >= self.warmup_steps and float(torch.rand((), generator=paths)) >= self.method.uniform_share:
            noise = gumbel(torch.rand(self.alphas.values.shape, generator=paths))
            chosen: list[int] = (self.alphas.values.detach() + noise).argmax(dim=-1).tolist()
            return chosen
        if not len(self.fair_paths):
            n_slots, n_candidates = self.updates.shape
            orders = [torch.randperm(n_candidates, generator=paths) for _ in range(n_slots)]
            self.fair_paths = torch.stack(orders, dim=1)  # (K, L)
        path: list[int] = self.fair_paths[0].tolist()
        self.fair_paths = self.fair_paths[1:]
        return path

    def _alpha_is_due(self) -> bool:
        """One alpha update after every (1 - alpha_share) / alpha_share weight updates beyond warm-up."""
        done = self.step - self.warmup_steps
        share = self.method.alpha_share / (1 - self.method.alpha_share)
        return done > 0 and int(done * share + 1e-9) > int((done - 1) * share + 1e-9)

    def _tau(self) -> float:
        method = self.method
        return temperature(
            min(self.step, method.n_steps - 1),
            warmup_steps=self.warmup_steps,
            n_steps=method.n_steps,
            start=method.tau_start,
            end=method.tau_end,
        )

    def _alpha_step(self) -> None:
        """Gradient of alpha alone on alpha's own text: no weight gradient is computed, no moment touched."""
        soft = sample(self.alphas.values, self._tau(), generator=self.generators["noise"])
        loss = self._loss(self.streams["alpha_data"], self._alpha_nats(soft)).cpu()
        expected_ms = cost.expected(torch.softmax(self.alphas.values, dim=-1), self.slot_costs, self.offset_ms)
        loss = loss + self.pressure.penalty(expected_ms, self.step)
        # A single path of identities alone does not depend on alpha: its gradient is zero, not missing.
        (gradient,) = torch.autograd.grad(loss, [self.alphas.values], materialize_grads=True)
        self.alphas.update(gradient)

    def _alpha_nats(self, soft: Tensor) -> Forward:
        if self.method.alpha_estimator == "soft":
            return self._mixture_nats(soft.to(self.device))
        path = soft.argmax(dim=-1)
        choices: list[int] = path.tolist()
        if self.method.alpha_estimator == "single_path":
            return self._path_nats(choices, path_factor(soft, path).to(self.device))
        return self._mixture_nats(straight_through(soft).to(self.device), choices)

    # -- reports --------------------------------------------------------------------------------------------------

    def record(self, *, tokens_per_s: float | None, last: bool) -> StepRecord:
        train_loss = mean_or_fail(self._losses, self.step)
        self._losses = []
        if train_loss is not None:
            self.pressure.observe(self.step, train_loss, searching=self.step > self.warmup_steps)
        probabilities = self.alphas.probabilities()
        weights = probabilities.to(self.device)
        self.supernet.eval()
        soft = self._validate(self._mixture_nats(weights))
        # Before alpha has moved there is no largest entry: argmax would only name the first candidate.
        leaders: Sequence[int] = probabilities.argmax(dim=-1).tolist()
        moved = self.alphas.n_updates > 0
        hard = self._validate(self._path_nats(leaders)) if moved else None
        self.supernet.train()
        entropy = -(probabilities * probabilities.clamp_min(1e-30).log()).sum(dim=-1).mean()
        return StepRecord(
            step=self.step,
            train_loss=train_loss,
            val_loss_soft=soft,
            val_loss_argmax=hard,
            tau=self._tau(),
            expected_ms=float(cost.expected(probabilities, self.slot_costs, self.offset_ms)),
            entropy=float(entropy),
            tokens_per_s=tokens_per_s,
            probabilities=probabilities.tolist(),
            null_gaps=self.alphas.null_gaps().tolist(),
            updates=self.updates.tolist(),
            last=last,
            checkpoint=last or (self.step > 0 and self.step % self.method.checkpoint_every == 0),
        )

    def _validate(self, forward: Forward) -> float:
        return finite_or_fail(evaluate(forward, self.validation, self.method.batch_size).mean(), self.step)

    # -- state ----------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the whole state to one file, atomically; call it between records only."""
        assert not self._losses
        tensors: dict[str, Tensor] = {f"supernet.{name}": parameter for name, parameter in self.weights.items()}
        tensors |= checkpoint.optimiser_tensors("optimiser", self.optimiser, self.weights)
        tensors |= {f"alphas.{name}": value for name, value in self.alphas.names.items()}
        tensors |= checkpoint.optimiser_tensors("alpha_optimiser", self.alphas.optimiser, self.alphas.names)
        tensors |= {f"generator.{name}": each.get_state() for name, each in self.generators.items()}
        for name, stream in self.streams.items():
            tensors |= {f"stream.{name}.{key}": value for key, value in stream.state().items()}
        tensors |= {"fair_paths": self.fair_paths, "updates": self.updates}
        state = {
            "kind": "search",
            "step": self.step,
            "seconds": self.seconds,
            "n_alpha_updates": self.alphas.n_updates,
            "pressure": self.pressure.state(),
        }
        checkpoint.write(path, tensors, state)

    def load(self, path: Path) -> None:
        """Take up the state of `save`; `run` goes on with the next step."""
        tensors, state = checkpoint.read(path)
        with torch.no_grad():
            for name, parameter in self.weights.items():
                parameter.copy_(tensors[f"supernet.{name}"])
            for name, value in self.alphas.names.items():
                value.copy_(tensors[f"alphas.{name}"])
        checkpoint.restore_optimiser("optimiser", self.optimiser, self.weights, tensors)
        checkpoint.restore_optimiser("alpha_optimiser", self.alphas.optimiser, self.alphas.names, tensors)
        for name, each in self.generators.items():
            each.set_state(tensors[f"generator.{name}"])
        for name, stream in self.streams.items():
            stream.restore(checkpoint.prefixed(f"stream.{name}", tensors))
        self.fair_paths, self.updates = tensors["fair_paths"], tensors["updates"]
        self.step, self.seconds = state["step"], state["seconds"]
        self.alphas.n_updates = state["n_alpha_updates"]
        self.pressure.restore(state["pressure"])
