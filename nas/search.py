"""One supernet search: warm-up, alternation of weight and alpha steps, settling, the parsimony pass, and its records.

The procedure of par-search.md section 3.3 with our defaults: weight steps run one path, alpha steps see every
candidate but compute no weight gradients. Each kind of step reads a stream of its own, with a memory of its own.
Behind the alternation alpha is frozen, candidates that were run less catch up (nas.ranking), and one path is taken
apart (nas.prune). L slots, K candidates, B batch, T tokens, D model width, N held-out windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from nas import checkpoint, cost, guards, ranks
from nas.alphas import Alphas, start
from nas.blocks import block_classes
from nas.budgets import bounds
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.data.objectives import Batch
from nas.data.parts import Parts
from nas.data.streams import HeldOut, Stream, held_out
from nas.derive import derive
from nas.finalists import Choices, finalists
from nas.gumbel import path_factor, sample, sample_pair, straight_through, temperature
from nas.network import Memory
from nas.one_search import search as search
from nas.paths import Paths
from nas.pressure import Pressure
from nas.prune import Pruning
from nas.ranking import flips, swapped_losses, winners
from nas.stability import CHECKS_PER_PHASE, Stability
from nas.steps import Phase, StepRecord
from nas.supernet import Supernet
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

# Of the trial's seed, one per use of chance; by their places, so that a new one comes last. Finalists have 7,
# retraining 8 and 9.
_STREAMS = ("weight_data", "alpha_data", "paths", "noise", "signs", "dropout", "sampled")

_SAMPLED = 2  # paths drawn from softmax(alpha) at each report
_COLDEST = 1e-6  # tau at which a draw is one-hot in float32; next to 0 the division is out of range
_EARLIEST = 20  # weight updates: a loss that has not fallen before tells nothing
_SKIPPED = -1  # no candidate: a slot that adds nothing


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
        self.request = request
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
        self.allowed = torch.tensor(self.space.allowed)  # (L, K)
        self.identity = torch.tensor([candidate.family == "identity" for candidate in self.space.candidates])  # (K,)
        self.alphas = Alphas(start(self.space), self.allowed, self.method, self.generators["signs"])
        self.paths = Paths(self.space.allowed, self.generators["paths"])
        self.slot_costs = torch.tensor(table.slot_ms(self.space))  # (K,) milliseconds
        self.offset_ms = table.offset_ms
        self.pressure = Pressure(self.method, bounds(request, table))
        self.validation = held_out(parts.validation, self.method.eval_windows, request, device)
        self.ranked_on = held_out(parts.alpha, self.method.eval_windows, request, device)
        self.updates = torch.zeros(self.allowed.shape, dtype=torch.long)
        self.stability = Stability((self.allowed.sum(dim=-1) > 1).tolist())
        self.settle_start = self.method.settle_start  # earlier once alpha has converged
        self.winners: list[int] | None = None  # of each slot by held-out loss, where settling began
        self.pruning: Pruning | None = None
        self.finalists: list[tuple[Choices, float]] = []  # with their losses; none before the parsimony pass
        self.told: list[str] = []  # names of the guards that have spoken
        self.step = 0
        self.seconds = 0.0  # of the attempts before this one
        self._began: Tensor | None = None  # (N,) losses of paths at step 0
        self._reported = _Reported(0, self.alphas.probabilities(), 0)
        self._observed = torch.zeros((), device=device)  # summed losses since the last look for the plateau
        self._losses: list[Tensor] = []  # since the last record, as is `_found`
        self._found: list[str] = []

    @property
    def end(self) -> int:
        """Weight updates before the parsimony pass."""
        return self.settle_start + self.method.n_steps - self.method.settle_start

    @property
    def done(self) -> bool:
        """Whether nothing is left to do; the last record is then due."""
        return self.step >= self.end and (self.pruning is None or self.pruning.done)

    def phase(self, update: int) -> Phase:
        """Of the weight update of this number, from 0."""
        if update < self.method.warmup_steps:
            return "warm-up"
        if update < self.settle_start:
            return "search"
        return "settle" if update < self.end else "prune"

    def run(self) -> Iterator[StepRecord]:
        """Search to the end, one record per report; safe to `save` after a record, before asking for the next.

        Raises:
            SearchFailed: training diverged.
        """
        return reports(self)

    def leading_path(self) -> list[int]:
        """(L,) the most probable candidates; exact ties go to the cheapest, of equally cheap ones to the first."""
        probabilities, costs = self.alphas.probabilities().tolist(), self.slot_costs.tolist()
        numbers = range(len(costs))
        return [max(numbers, key=lambda number: (row[number], -costs[number], -number)) for row in probabilities]

    def _affordable_path(self) -> Sequence[int]:
        """The most probable path within all bounds of the budget, by the table."""
        path, bounded = self.leading_path(), self.pressure.bounds
        if self.affordable(path):
            return path
        found = derive(
            self.alphas.probabilities().numpy(),
            [0.0] * self.space.n_slots,  # no ties: what is a tie, comparisons will tell
            self.space,
            slot_costs=self.slot_costs.numpy(),
            bounds=bounded,
        )
        return [self.space.labels.index(label) for label in found.labels]

    def affordable(self, path: Sequence[int]) -> bool:
        """Whether a path is within every bound of the budget."""
        return all(bound.holds(path) for bound in self.pressure.bounds)

    # -- one step of each kind ------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """A weight update and what goes with it, or a comparison of the parsimony pass, which is reported at once."""
        if self.pruning is not None:
            self.step += self.pruning.advance()
            return True
        phase = self.phase(self.step)
        self._weight_step()
        self.step += 1
        if phase == "search":
            if self._alpha_is_due():
                self._alpha_step()
            if self.method.stop_when_stable:
                self._settle_if_stable()
        self._look_for_plateau(phase)
        if self.alphas.n_updates:
            if self.step == self.settle_start < self.end:
                self.winners = winners(self._swapped_losses())
            if self.step == self.end:
                self._conclude()
        return False

    def _look_for_plateau(self, phase: Phase) -> None:
        """Behind every so many weight updates, for the budget's pressure; the device is not waited for in between."""
        if self.pressure.bounds:
            self._observed += self._losses[-1]
            if self.step % self.pressure.every == 0:
                mean = finite_or_fail(self._observed / self.pressure.every, self.step)
                told = self.pressure.observe(self.step, mean, searching=phase == "search")
                self._found += [told] if told else []
                self._observed = torch.zeros_like(self._observed)

    def _conclude(self) -> None:
        """At the end of settling: rank again, then begin the parsimony pass."""
        if self.winners is not None:
            self._found += flips(self.winners, self._swapped_losses(), self.updates, self.space.labels)
        if self.method.prune_steps:
            begin, self.finalists = finalists(self, tuple(self._affordable_path()))
            self.optimiser.state.clear()  # comparisons have moments of their own: twice the weights are free for them
            self.pruning = Pruning(self, begin)

    def _swapped_losses(self) -> Tensor:
        self.supernet.eval()
        found = swapped_losses(
            self.leading_path(), self.space.allowed, lambda path: self.losses(self.path_nats(path), self.ranked_on)
        )
        self.supernet.train()
        return found

    def _settle_if_stable(self) -> None:
        """Ten times in the search phase, ask whether its leaders stand; if so, go on with settling.

        Not while alpha expects more than a bound allows: what its pressure has still to move does not stand.
        """
        planned, done = self.method.settle_start - self.method.warmup_steps, self.step - self.method.warmup_steps
        if done * CHECKS_PER_PHASE // planned == (done - 1) * CHECKS_PER_PHASE // planned:
            return
        stands = self.stability.check(self.leading_path(), self._disorder())
        if stands and self.step < self.settle_start and not self.pressure.exceeded(self.alphas.probabilities()):
            self._found.append(
                f"search phase ended at step {self.step} of {self.settle_start}: its leaders have stood for "
                "three checks and alpha's entropy is below half of its most (method.stop_when_stable)"
            )
            self.settle_start = self.step

    def _disorder(self) -> float:
        """Alpha's mean entropy as a share of that of equal probabilities; 0 where no slot has a choice."""
        most = self.allowed.sum(dim=-1).double().log().sum()
        return float(self.alphas.entropy().detach().sum() / most) if most > 0 else 0.0

    def _weight_step(self) -> None:
        path = self._draw_path()
        for slot, choice in enumerate(path):
            if choice != _SKIPPED:
                self.updates[slot, choice] += 1
        stream = self.streams["weight_data"]
        loss = weight_step(
            self.loss_parts(self.path_nats(path), stream.next(), stream),
            self.optimiser,
            lr=learning_rate(self.step, self.method.n_steps, self.method),
            grad_clip=self.method.grad_clip,
        )
        self._losses.append(loss)

    def loss_parts(self, forward: Forward, batch: Batch, stream: Stream) -> Iterator[Tensor]:
        """Of a batch that is trained on, with dropout; the memory it leaves is the stream's."""
        dropout = self.generators["dropout"]
        return loss_parts(forward, batch, stream, method=self.method, dropout=dropout, device=self.device)

    def path_nats(self, path: Sequence[int], factors: Tensor | None = None) -> Forward:
        """Of one candidate per slot."""

        def forward(batch: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
            hidden, kept = self.supernet.forward_path(
                batch.tokens, path, factors, memory=memory, key_padding=batch.key_padding
            )
            return self.supernet.backbone.nats(hidden, batch.targets, batch.key_padding, batch.places), kept

        return forward

    def mixture_nats(self, weights: Tensor, path: Sequence[int] | None = None, run: Tensor | None = None) -> Forward:
        """Of all candidates under (L, K) weights, or of those alone that `run`, (L, K) bool, marks."""
        marked = self.allowed if run is None else run
        numbers = [row.nonzero()[:, 0].tolist() for row in marked]

        def forward(batch: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
            hidden, kept = self.supernet.forward_mixture(
                batch.tokens, weights, path, run=numbers, memory=memory, key_padding=batch.key_padding
            )
            return self.supernet.backbone.nats(hidden, batch.targets, batch.key_padding, batch.places), kept

        return forward

    def _draw_path(self) -> list[int]:
        """A path for a weight step: fair in warm-up, afterwards alpha's own with 1 - uniform_share, then catching up.

        Paths of alpha alone would starve the losers, who then cannot return.
        """
        phase, generator = self.phase(self.step), self.generators["paths"]
        if phase == "settle":
            return self.paths.catch_up(self.updates)
        if phase == "search" and float(torch.rand((), generator=generator)) >= self.method.uniform_share:
            return self.paths.own(self.alphas.logits)
        path, skip = self.paths.fair(), self.method.candidate_dropout
        if phase == "warm-up" and skip:
            # Blocks that never ran without the others may only work with them (Bender et al. 2018).
            drawn = torch.rand(len(path), generator=generator).tolist()
            path = [_SKIPPED if each < skip else choice for each, choice in zip(drawn, path, strict=True)]
        return path

    def _alpha_is_due(self) -> bool:
        """One alpha update after every (1 - alpha_share) / alpha_share weight updates beyond warm-up."""
        done = self.step - self.method.warmup_steps
        share = self.method.alpha_share / (1 - self.method.alpha_share)
        return int(done * share + 1e-9) > int((done - 1) * share + 1e-9)

    def _tau(self) -> float:
        """Of the next alpha update; it falls to its end over the search phase as planned."""
        method = self.method
        planned = temperature(
            self.step,
            warmup_steps=method.warmup_steps,
            n_steps=method.settle_start,
            start=method.tau_start,
            end=method.tau_end,
        )
        return max(planned, _COLDEST)

    def _alpha_step(self) -> None:
        """Gradient of alpha alone on alpha's own text: no weight gradient is computed, no moment touched."""
        stream, draws = self.streams["alpha_data"], self.method.alpha_draws
        batch, gradient, memory = stream.next(), torch.zeros(self.allowed.shape), stream.memory
        for _ in range(draws):
            stream.memory = memory  # each draw reads what the first one read
            with self.supernet.frozen():
                for loss in self.loss_parts(self._same_alpha_nats(), batch, stream):
                    gradient += self._alpha_gradient(loss) / draws
        ranks.add_up([gradient])
        penalties = self._alpha_gradient(self.pressure.penalty(torch.softmax(self.alphas.logits, dim=-1), self.step))
        penalties += self._alpha_gradient(self._entropy_penalty())
        self.alphas.update(gradient, penalties)
        self.pressure.update(self.alphas.probabilities())

    def _same_alpha_nats(self) -> Forward:
        """One draw of the estimator for all passes of a batch, each with its own way back to alpha."""
        noise = self.generators["noise"]
        before = noise.get_state()

        def forward(batch: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
            noise.set_state(before)
            return self._alpha_nats()(batch, memory)

        return forward

    def _alpha_gradient(self, loss: Tensor | float) -> Tensor:
        """Zero where the loss does not depend on alpha, as that of a single path of identities alone."""
        if not isinstance(loss, Tensor) or not loss.requires_grad:
            return torch.zeros(self.allowed.shape)
        (found,) = torch.autograd.grad(loss, [self.alphas.values], materialize_grads=True)
        return found

    def _entropy_penalty(self) -> Tensor | float:
        """entropy_weight times alpha's mean entropy, rising from 0 over the last quarter of the search phase."""
        if not self.method.entropy_weight:
            return 0.0
        quarter = (self.method.settle_start - self.method.warmup_steps) / 4
        share = 1 - (self.method.settle_start - self.step) / quarter
        return self.method.entropy_weight * max(0.0, share) * self.alphas.entropy().mean()

    def _alpha_nats(self) -> Forward:
        """The network that one draw of the estimator makes, with its way back to alpha."""
        noise, logits, estimator = self.generators["noise"], self.alphas.logits, self.method.alpha_estimator
        if estimator == "two_path":
            soft, pair = sample_pair(logits, self._tau(), generator=noise)
            choices: list[int] = soft.argmax(dim=-1).tolist()
            return self.mixture_nats(straight_through(soft).to(self.device, non_blocking=True), choices, pair)
        soft = sample(logits, self._tau(), generator=noise)
        if estimator == "soft":
            return self.mixture_nats(soft.to(self.device, non_blocking=True))
        path = soft.argmax(dim=-1)
        choices = path.tolist()
        if estimator == "single_path":
            return self.path_nats(choices, path_factor(soft, path).to(self.device, non_blocking=True))
        return self.mixture_nats(straight_through(soft).to(self.device, non_blocking=True), choices)

    # -- reports --------------------------------------------------------------------------------------------------

    def record(self, *, tokens_per_s: float | None, last: bool) -> StepRecord:
        train_loss = mean_or_fail(self._losses, self.step)
        self._losses = []
        phase = self.phase(max(0, self.step - 1))  # of what has been done
        probabilities, path = self.alphas.probabilities(), self.leading_path()
        self.supernet.eval()
        soft = self.losses(self.mixture_nats(probabilities.to(self.device)))
        # Before alpha has moved there is no largest entry: argmax would only name the first candidate.
        is_known = self.alphas.n_updates or not self.space.n_free
        hard = self.losses(self.path_nats(path)) if is_known else None
        sampled = self._sampled_losses()
        held = None if self.pruning is None else self.losses(self.path_nats(self.pruning.path))
        self._began = sampled if self._began is None else self._began
        fifth = max(self.method.n_steps / 5, _EARLIEST)
        if self._reported.step < fifth <= self.step and not last:
            early = {"falling": guards.does_not_fall(self._began, sampled, self.step, self.end)}
            self._found += guards.tell_once(self.told, early)
        if hard is not None and phase != "prune":
            self._guard(path, probabilities, float(soft.mean()), hard)
        self.supernet.train()
        not_learnt = None
        if last and self.space.n_free:  # where nothing was to be chosen, nothing needs to be learnt for it
            not_learnt = guards.has_not_learnt(self._began, _first(held, hard, sampled))
        cut_short = guards.time_is_up(self._ended(), self.method.max_minutes) if last and not self.done else None
        self._found += filter(None, (not_learnt, cut_short))
        if cut_short is None and last and self.pruning is not None and self.pruning.untried:
            self._found.append(f"{self._ended()}: prune_share is {self.method.prune_share:g}")
        moved = guards.velocity(self._reported.probabilities, probabilities)
        every, before = self.method.checkpoint_every, self._reported.step
        self._reported = _Reported(self.step, probabilities, self.alphas.n_updates)
        found, self._found = self._found, []
        return StepRecord(
            step=self.step,
            phase=phase,
            train_loss=train_loss,
            val_loss=None if held is None else float(held.mean()),
            val_loss_soft=float(soft.mean()),
            val_loss_argmax=None if hard is None else float(hard.mean()),
            val_loss_sampled=float(sampled.mean()),
            tau=self._tau(),
            expected_ms=float(cost.expected(probabilities, self.slot_costs, self.offset_ms)),
            entropy=float(self.alphas.entropy().detach().mean()),
            identity_share=guards.identity_share(probabilities, self.identity),
            alpha_velocity=moved,
            dual=self.pressure.dual,
            tokens_per_s=tokens_per_s,
            probabilities=probabilities.tolist(),
            null_gaps=self.alphas.null_gaps().tolist(),
            updates=self.updates.tolist(),
            z=self.alphas.z().tolist(),
            path=None if self.pruning is None else list(self.pruning.path),
            effect_nats=None if self.pruning is None else [list(row) for row in self.pruning.effect_nats],
            effect_se=None if self.pruning is None else [list(row) for row in self.pruning.effect_se],
            finalists=None if self.pruning is None else [list(path) for path, _ in self.finalists],
            finalist_nats=None if self.pruning is None else [nats for _, nats in self.finalists],
            warning="\n".join(found) or None,
            not_learnt=not_learnt,
            cut_short=cut_short,
            last=last,
            checkpoint=last or self.step // every > before // every,
        )

    def _ended(self) -> str:
        """How far a search has come that is not done."""
        if self.pruning is not None and self.step >= self.end:
            return f"the parsimony pass ended at step {self.step}, before all that {self.pruning.untried} was tried"
        missed = ", before its parsimony pass" if self.method.prune_steps else ""
        return f"the search ended after {self.step} of {self.end} weight updates{missed}"

    def losses(self, forward: Forward, on: HeldOut | None = None) -> Tensor:
        """(N,) nats per token of each held-out window, by default of the validation part; in evaluation mode.

        Raises:
            SearchFailed: training diverged.
        """
        found = evaluate(forward, self.validation if on is None else on, rows_at_once(self.method)).windows
        finite_or_fail(found.mean(), self.step)
        return found

    def _sampled_losses(self) -> Tensor:
        """(N,) mean over paths drawn from softmax(alpha)."""
        drawn = Paths(self.space.allowed, self.generators["sampled"])
        each = [self.losses(self.path_nats(drawn.own(self.alphas.logits))) for _ in range(_SAMPLED)]
        return torch.stack(each).mean(dim=0)

    def _guard(self, path: Sequence[int], probabilities: Tensor, soft: float, hard: Tensor) -> None:
        assert self._began is not None
        gaps, pressed = self.alphas.null_gaps(), self.pressure.start is not None
        beyond = guards.beyond_chance(probabilities, gaps)
        found = {
            "identities": guards.too_many_identities(path, self.identity, self.method.max_identity),
            "gap": guards.discretisation_gap(float(self._began.mean()), soft, float(hard.mean())),
            "still": guards.alpha_stands_still(
                guards.velocity(self._reported.probabilities, probabilities),
                self.alphas.n_updates - self._reported.n_alpha_updates,
                self._disorder(),
            ),
            "one": guards.one_everywhere(path, probabilities, beyond, self.allowed, self.space.labels, self.identity),
        }
        leading = guards.leads(probabilities, gaps, pressed=pressed)
        n_identities = int((self.identity[list(path)] & leading).sum())
        if "collapse" not in self.told and n_identities > len(path) / 2:
            other = guards.without_identity(path, probabilities, self.allowed, self.identity, self.affordable)
            if other != list(path):  # else a budget asks for just that
                found["collapse"] = guards.identity_collapse(
                    n_identities, hard, self.losses(self.path_nats(other)), self.method.prune_nats, pressed=pressed
                )
        self._found += guards.tell_once(self.told, found)

    # -- state ----------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the whole state to one file, atomically; call it between records only."""
        assert not self._losses
        assert not self._found
        tensors: dict[str, Tensor] = {f"supernet.{name}": parameter for name, parameter in self.weights.items()}
        tensors |= checkpoint.optimiser_tensors("optimiser", self.optimiser, self.weights)
        tensors |= {f"alphas.{name}": value for name, value in self.alphas.names.items()}
        tensors |= checkpoint.optimiser_tensors("alpha_optimiser", self.alphas.optimiser, self.alphas.names)
        tensors |= {f"generator.{name}": each.get_state() for name, each in self.generators.items()}
        for name, stream in self.streams.items():
            tensors |= {f"stream.{name}.{key}": value for key, value in stream.state().items()}
        tensors |= {"observed": self._observed, "updates": self.updates} | (
            {} if self._began is None else {"began": self._began}
        )
        tensors |= {"gradients.mean": self.alphas.mean, "gradients.squares": self.alphas.squares}
        tensors |= {"cut.values": self.alphas.cut, "cut.nulls": self.alphas.null_cuts}
        if self.pruning is not None:
            tensors |= {f"pruning.{name}": value for name, value in self.pruning.tensors().items()}
        state = {
            "kind": "search",
            "step": self.step,
            "micro_batch": self.method.micro_batch,  # chosen by the memory there was; taken up, the same passes go on
            "seconds": self.seconds,
            "n_alpha_updates": self.alphas.n_updates,
            "pressure": self.pressure.state(),
            "paths": self.paths.state(),
            "stability": self.stability.state(),
            "settle_start": self.settle_start,
            "winners": self.winners,
            "told": self.told,
            "pruning": None if self.pruning is None else self.pruning.state(),
            "finalists": self.finalists,
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
        self.updates, self._began = tensors["updates"], tensors.get("began")
        if "observed" in tensors:  # checkpoints of before looked at each report, and have none
            self._observed = tensors["observed"].to(self.device)
        self.alphas.mean, self.alphas.squares = tensors["gradients.mean"], tensors["gradients.squares"]
        if "cut.values" in tensors:  # checkpoints of before did not keep it
            self.alphas.cut, self.alphas.null_cuts = tensors["cut.values"], tensors["cut.nulls"]
        self.alphas.n_updates = state["n_alpha_updates"]
        self.step, self.seconds = state["step"], state["seconds"]
        self.pressure.restore(state["pressure"])
        self.paths.restore(state["paths"])
        self.stability.restore(state["stability"])
        self.settle_start, self.winners, self.told = state["settle_start"], state["winners"], state["told"]
        self._reported = _Reported(self.step, self.alphas.probabilities(), self.alphas.n_updates)
        self.finalists = [(tuple(path), nats) for path, nats in state.get("finalists", ())]  # none of before there were
        if state["pruning"] is not None:
            self.optimiser.state.clear()  # checkpoints of before kept the supernet's moments in the pass
            self.pruning = Pruning(self, state["pruning"]["path"])
            self.pruning.restore(checkpoint.prefixed("pruning", tensors), state["pruning"])


@dataclass(frozen=True, eq=False)
class _Reported:
    """What the last record was of; a trial is saved and taken up at one."""

    step: int
    probabilities: Tensor
    n_alpha_updates: int


def _first(*losses: Tensor | None) -> Tensor:
    return next(each for each in losses if each is not None)
