"""The parsimony pass: what each block of a path buys on held-out data, and a cheaper path where that is nothing.

A one-shot search over-provisions: while alpha learns, the other slots are random, so each slot earns credit as their
insurance (on `lookup`, MGK before the attention that does the work alone). So after it one path is taken apart. Every
strictly cheaper candidate of every slot is tried in turn: reference and variant start from the same shared weights, are
fine-tuned on the same batches with the same dropout, each on its own path, and are compared on held-out windows that
neither alpha's guards nor the weights have seen. An edit is kept unless it costs more than one standard error and more
than `prune_nats`; then path and weights become the variant's. Ours; the nearest relative is selection by perturbation
(Wang et al. 2021, arXiv:2108.04392), which asks the same without training and never for less.

Only weights of the running path are touched. L slots, K candidates, N windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nas.data.objectives import Batch
from nas.data.streams import held_out
from nas.network import Memory
from nas.training import Forward, dropout_from, evaluate, finite_or_fail, loss_of, weight_step, weights_optimiser

if TYPE_CHECKING:
    from nas.search import Search

Edit = tuple[int, int]
"""A slot and the candidate that it would get."""

_RISE = 0.2  # share of the fine-tuning with a rising rate: fresh moments make the first updates the largest


class Pruning:
    """One pass over a path, a comparison at a time; between two of them it can be saved and taken up.

    The trial's own weights, batches and dropout are used: whoever saves the trial has saved these too. Between
    comparisons the shared weights are those of the present path's last accepted edit, and the stream of batches stands
    where the next fine-tuning begins.

    A slot's candidates are tried from the cheapest up, so at most one edit of each is accepted, and a reference is
    trained only for a comparison that follows: at most L (K - 1) comparisons and L references, of `prune_steps` updates
    each (`Method.most_steps`). What was refused is not tried again when another slot has become cheaper: fewer blocks
    make those that are left buy more, not less.

    Args:
        search: trial whose weights are settled.
        path: (L,) where the pass begins: the leading candidates.
    """

    def __init__(self, search: Search, path: Sequence[int]) -> None:
        self.search = search
        self.path = list(path)
        self.effect_nats: list[list[float | None]] = [[None] * len(search.space.candidates) for _ in self.path]
        self.effect_se: list[list[float | None]] = [[None] * len(search.space.candidates) for _ in self.path]
        for slot, choice in enumerate(self.path):
            self.effect_nats[slot][choice] = self.effect_se[slot][choice] = 0.0
        self._queue: list[Edit] = []  # of this path; empty before its reference is there
        self._reference: Tensor | None = None  # (N,) losses of the present path, fine-tuned
        part = search.streams["alpha_data"].part
        self._windows = held_out(part, search.method.prune_windows, search.request, search.device)
        # Windows of a text lie side by side; drawn examples and documents stand alone.
        self._neighbours = not search.request.task.classifies

    @property
    def done(self) -> bool:
        """Whether no edit is left to try."""
        return not self._edits()

    def advance(self) -> int:
        """One comparison; returns the weight updates that it took.

        Raises:
            SearchFailed: fine-tuning diverged.
        """
        n_updates = 0
        if self._reference is None:
            before = self._snapshot(self.path)
            self._reference = self._trained_losses(self.path)
            self._put_back(before)
            self._queue = self._ordered()
            n_updates += self.search.method.prune_steps
        slot, choice = self._queue.pop(0)
        variant = self._edited(slot, choice)
        before = self._snapshot(variant)
        difference = self._trained_losses(variant) - self._reference
        n_updates += self.search.method.prune_steps
        nats, error = float(difference.double().mean()), standard_error(difference, neighbours=self._neighbours)
        if nats > max(error, self.search.method.prune_nats):
            self._put_back(before)
            self.effect_nats[slot][choice], self.effect_se[slot][choice] = nats, error
        else:
            self._accept(slot, choice, nats, error)
        return n_updates

    def _accept(self, slot: int, choice: int, nats: float, error: float) -> None:
        """Effects of the slot are told against its new candidate; of their errors the sum of squares is a bound."""
        for number, (old_nats, old_error) in enumerate(zip(self.effect_nats[slot], self.effect_se[slot], strict=True)):
            if old_nats is not None and old_error is not None:
                self.effect_nats[slot][number] = old_nats - nats
                self.effect_se[slot][number] = math.hypot(old_error, error)
        self.effect_nats[slot][choice] = self.effect_se[slot][choice] = 0.0
        self.path[slot] = choice
        self._queue, self._reference = [], None

    # -- which edits ----------------------------------------------------------------------------------------------

    def _edits(self) -> list[Edit]:
        """Those not tried yet, by slot: allowed, and strictly cheaper than what stands there."""
        costs, allowed = self.search.slot_costs.tolist(), self.search.space.allowed
        return [
            (slot, choice)
            for slot, present in enumerate(self.path)
            for choice, cost in enumerate(costs)
            if allowed[slot][choice] and cost < costs[present] and self.effect_nats[slot][choice] is None
        ]

    def _ordered(self) -> list[Edit]:
        """The cheapest candidates first, so deletions before swaps; among equals the edit that does least harm to the
        weights as they are: where blocks stand in for each other, the one that the others can do without goes."""
        costs = self.search.slot_costs.tolist()
        edits = self._edits()
        harm = {edit: float(self._losses(self._edited(*edit)).mean()) for edit in edits}
        return sorted(edits, key=lambda edit: (costs[edit[1]], harm[edit], edit))

    def _edited(self, slot: int, choice: int) -> list[int]:
        return [choice if number == slot else present for number, present in enumerate(self.path)]

    # -- training and scoring -------------------------------------------------------------------------------------

    def _trained_losses(self, path: Sequence[int]) -> Tensor:
        """Fine-tune the path's weights in place on the stream's next batches, and score it."""
        search, method = self.search, self.search.method
        weights_of = weights_optimiser(self._weights(path), method)
        stream, forward = search.streams["weight_data"], self._nats(path)
        for step in range(method.prune_steps):
            batch = stream.next()
            with dropout_from(search.generators["dropout"], search.device):
                nats, stream.memory = forward(batch, stream.memory)
            rise = min(1.0, (step + 1) / max(1, _RISE * method.prune_steps))
            weight_step(loss_of(nats, batch), weights_of, lr=method.lr * rise, grad_clip=method.grad_clip)
        return self._losses(path)

    def _losses(self, path: Sequence[int]) -> Tensor:
        """(N,) mean nats of each held-out window."""
        supernet = self.search.supernet
        supernet.eval()
        windows = evaluate(self._nats(path), self._windows, self.search.method.batch_size).windows
        supernet.train()
        finite_or_fail(windows.mean(), self.search.step)
        return windows

    def _nats(self, path: Sequence[int]) -> Forward:
        supernet = self.search.supernet

        def forward(batch: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
            hidden, kept = supernet.forward_path(batch.tokens, path, memory=memory, key_padding=batch.key_padding)
            return supernet.backbone.nats(hidden, batch.targets, batch.key_padding), kept

        return forward

    def _weights(self, path: Sequence[int]) -> dict[str, torch.nn.Parameter]:
        """The parameters that a path may touch: the backbone's, its blocks', and the norms before or behind them."""

        def runs(name: str) -> bool:
            part, *rest = name.split(".")
            if part == "slots" and rest[1] in ("blocks", "norms"):
                return int(rest[2]) == path[int(rest[0])]
            return True

        return {name: parameter for name, parameter in self.search.weights.items() if runs(name)}

    # -- state ----------------------------------------------------------------------------------------------------

    def _snapshot(self, path: Sequence[int]) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        """What fine-tuning a path changes: weights, the stream's place, and the source of dropout."""
        weights = {name: parameter.detach().clone() for name, parameter in self._weights(path).items()}
        search = self.search
        return weights, search.streams["weight_data"].state(), search.generators["dropout"].get_state()

    @torch.no_grad()
    def _put_back(self, snapshot: tuple[dict[str, Tensor], dict[str, Tensor], Tensor]) -> None:
        weights, stream, dropout = snapshot
        for name, value in weights.items():
            self.search.weights[name].copy_(value)
        self.search.streams["weight_data"].restore(stream)
        self.search.generators["dropout"].set_state(dropout)

    def tensors(self) -> dict[str, Tensor]:
        """What `restore` needs beside `state`; the trial saves weights, stream and generators."""
        return {} if self._reference is None else {"reference": self._reference}

    def state(self) -> dict[str, Any]:
        """JSON; floats come back as they were."""
        return {
            "path": self.path,
            "queue": self._queue,
            "effect_nats": self.effect_nats,
            "effect_se": self.effect_se,
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on with the next comparison; the trial's own state has been put back before."""
        self.path = list(state["path"])
        self._queue = [(slot, choice) for slot, choice in state["queue"]]
        self.effect_nats = [list(row) for row in state["effect_nats"]]
        self.effect_se = [list(row) for row in state["effect_se"]]
        self._reference = tensors.get("reference")


def standard_error(difference: Tensor, *, neighbours: bool) -> float:
    """Of the mean of paired differences, by what a circular block bootstrap would converge to (Politis & Romano 1992).

    Args:
        difference: (N,) in the order of the text.
        neighbours: windows that stand side by side may go together, as those of a text do; False where each stands
            alone.

    Returns:
        In the unit of the differences; 0 where all are equal.
    """
    values = difference.double()
    n = len(values)
    block = max(1, round(n ** (1 / 3))) if neighbours else 1
    means = torch.cat([values, values[: block - 1]]).unfold(0, block, 1).mean(dim=1)  # (N,) by first window
    return math.sqrt(float((means - values.mean()).square().mean()) * block / n)
