"""The parsimony pass: what each block of a path buys on held-out data, and a cheaper path where that is nothing.

A one-shot search over-provisions: while alpha learns, the other slots are random, so each slot earns credit as their
insurance (on `lookup`, MGK before the attention that does the work alone). So after it one path is taken apart. Every
strictly cheaper candidate of every slot is tried in turn: reference and variant start from the same shared weights, are
fine-tuned on the same batches with the same dropout, each on its own path, and are compared on held-out windows of
alpha's part. The cheaper one wins unless it costs more than one standard error and more than `prune_nats`, alone or
together with what earlier edits have given away; then path and weights become the variant's. Ours; the nearest
relative is selection by perturbation (Wang et al. 2021, arXiv:2108.04392), which asks the same without training and
never for less.

A budget says what a stack may cost, so room that is left below it is there to be used: where there is one, dearer
candidates that fit are then tried likewise. One is taken where it buys more than the luckiest of all edits of the
space would by chance (Bonferroni): at one standard error each, six of 36 useless ones would be. Without this half, a
text's search at its parent's latency gave a fifth of it away and lost 0.08 bits per byte.

What fine-tuning cannot tell is a block that helps for good from one that helps to learn: on `lookup` two attentions
were 0.123 nats ahead of one before fine-tuning, 0.040 behind 50 updates, 0.010 behind 100 and 0.000 behind 200. So a
comparison is first made over a quarter of `prune_steps`. A difference that is too large then, but closing fast enough
to be gone in the end, is settled over all of them, from the same weights.

Only weights of the running path are touched. L slots, K candidates, N windows in which something is scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nas.data.streams import held_out
from nas.heads import IGNORE
from nas.paired import standard_error
from nas.training import evaluate, finite_or_fail, learning_rate, rows_at_once, weight_step, weights_optimiser

if TYPE_CHECKING:
    from nas.search import Search

Edit = tuple[int, int]
"""A slot and the candidate that it would get."""

_RISE = 10  # updates with a rising rate: fresh moments make the first ones the largest
_CHANCE = 0.05  # that any of a pass's dearer candidates is taken though none buys anything
_SLACK = 4  # a forecast from two points is rough: it may miss by this factor before a long comparison is not worth it


class Pruning:
    """One pass over a path, a comparison at a time; between two of them it can be saved and taken up.

    The trial's own weights, batches and dropout are used: whoever saves the trial has saved these too. Between
    comparisons the shared weights are those of the present path's last accepted edit, and the stream of batches stands
    where the next fine-tuning begins.

    A slot's candidates are tried from the cheapest up. What was refused is not tried again when another slot has become
    cheaper: fewer blocks make those that are left buy more, not less. But where a swap was accepted, the slot's
    cheapest candidate gets a second trial, since it was refused against a block that is gone (measured on
    shift-then-match, where weights still learnt fast: `ASA` became `AFA`, where `A.A` does as well). Of dearer ones
    each is tried once. No comparison is begun once `prune_share` of the search's updates are spent.

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
        self.n_updates = 0  # spent
        self._queue: list[Edit] = []  # of this path; empty before its first comparison
        self._references: dict[int, Tensor] = {}  # (N,) losses of this path, by the updates that it was fine-tuned for
        part = search.streams["alpha_data"].part
        self._windows = held_out(part, search.method.prune_windows, search.request, search.device)
        # (N,) nats lost against the best path so far; of the windows in which something is scored, as all losses are.
        self._given = torch.zeros(int((self._windows.batch.targets != IGNORE).any(dim=1).sum()))
        n_edits = sum(map(sum, search.space.allowed)) - len(self.path)
        self._luck = NormalDist().inv_cdf(1 - _CHANCE / max(1, n_edits))  # standard errors
        # Windows of a text lie side by side; drawn examples and documents stand alone.
        self._neighbours = not search.request.task.classifies

    @property
    def done(self) -> bool:
        """Whether no edit is left to try, or no comparison may be begun."""
        return self.n_updates >= self.search.method.prune_most or not self._edits()

    @property
    def untried(self) -> str:
        """What has not all been tried, in words; empty where nothing is left."""
        return "is cheaper" if self._cheaper() else "has room in the budget" if self._dearer() else ""

    def advance(self) -> int:
        """One comparison; returns the weight updates that it took.

        Raises:
            SearchFailed: fine-tuning diverged.
        """
        if not self._queue:
            self._queue = self._ordered()
        slot, choice = self._queue.pop(0)
        variant = self._edited(slot, choice)
        sign = 1 if self._is_cheaper(slot, choice) else -1  # of variant less path: what the cheaper one costs
        before = self._snapshot(variant)
        most = self.search.method.prune_steps
        early = [most // 8, most // 4] if most >= 8 else [most]
        n_updates = self._refer(early) + early[-1]
        gaps = [sign * gap for gap in self._gaps(variant, early)]
        if most > early[-1] and self._is_open(gaps, early, sign):
            self._put_back(before)
            n_updates += self._refer([most]) + most
            gaps = [sign * gap for gap in self._gaps(variant, [most])]
        difference = sign * gaps[-1]
        if (self._room(gaps[-1], sign) < float(gaps[-1].double().mean())) == (sign > 0):  # the path as it is wins
            self._put_back(before)
            self.effect_nats[slot][choice], self.effect_se[slot][choice] = self._effect(difference)
        else:
            self._accept(slot, choice, difference)
        self.n_updates += n_updates
        return n_updates

    def _effect(self, difference: Tensor) -> tuple[float, float]:
        """Mean and standard error of (N,) paired differences, nats."""
        return float(difference.double().mean()), standard_error(difference, neighbours=self._neighbours)

    def _room(self, gap: Tensor, sign: int) -> float:
        """Nats that the cheaper of two paths may cost and still win.

        Args:
            gap: (N,) its losses less the dearer one's.
            sign: 1 where the cheaper one is an edit of this path, and pays for earlier ones as well.
        """
        least = self.search.method.prune_nats
        error = self._effect(gap)[1]
        if sign < 0:
            return max(self._luck * error, least)
        together = max(self._effect(self._given + gap)[1], least)
        # Two edits may cancel, so that their sum is surer than the first alone; what costs nothing still has room.
        return max(0.0, min(max(error, least), together - float(self._given.double().mean())))

    def _is_open(self, gaps: Sequence[Tensor], ends: Sequence[int], sign: int) -> bool:
        """Whether a first look, `gaps` behind the updates of `ends`, may still turn: a gap that is too large is closing
        fast, or what a dearer candidate buys shows already, and not yet beyond chance."""
        nats, error = self._effect(gaps[-1])
        room = self._room(gaps[-1], sign)
        if nats <= room:
            return sign < 0 and nats > error
        forecast = _forecast([float(gap.double().mean()) for gap in gaps], ends, self.search.method.prune_steps)
        return forecast <= _SLACK * room

    def _gaps(self, variant: Sequence[int], ends: Sequence[int]) -> list[Tensor]:
        """(N,) losses of the variant less the path's, behind each number of updates; the variant's weights stay."""
        return [losses - self._references[end] for end, losses in self._trained(variant, ends)]

    def _accept(self, slot: int, choice: int, difference: Tensor) -> None:
        """Make an edit that costs (N,) nats. Effects of its slot are told against the new candidate from now on; the
        root of the summed squares of two errors stands for that of their sum."""
        nats, error = self._effect(difference)
        for number, (old_nats, old_error) in enumerate(zip(self.effect_nats[slot], self.effect_se[slot], strict=True)):
            if old_nats is not None and old_error is not None:
                self.effect_nats[slot][number] = old_nats - nats
                self.effect_se[slot][number] = math.hypot(old_error, error)
        if self._is_cheaper(slot, choice):
            costs, allowed = self.search.slot_costs.tolist(), self.search.space.allowed[slot]
            cheapest = min((number for number, may in enumerate(allowed) if may), key=costs.__getitem__)
            self.effect_nats[slot][cheapest] = self.effect_se[slot][cheapest] = None  # tried again, if it was refused
        self.effect_nats[slot][choice] = self.effect_se[slot][choice] = 0.0
        self.path[slot] = choice
        lost = self._given + difference
        self._given = lost if lost.mean() > 0 else torch.zeros_like(lost)
        self._queue, self._references = [], {}

    # -- which edits ----------------------------------------------------------------------------------------------

    def _edits(self) -> list[Edit]:
        """Those not tried yet: what is cheaper first, then what a budget has room for."""
        return self._cheaper() or self._dearer()

    def _cheaper(self) -> list[Edit]:
        return [edit for edit in self._untried() if self._is_cheaper(*edit) and self._fits(*edit)]

    def _dearer(self) -> list[Edit]:
        if not self.search.pressure.bounds:
            return []
        return [edit for edit in self._untried() if not self._is_cheaper(*edit) and self._fits(*edit)]

    def _fits(self, slot: int, choice: int) -> bool:
        """Whether an edit is within every bound: what takes less time may still have more weights."""
        return all(bound.holds(self._edited(slot, choice)) for bound in self.search.pressure.bounds)

    def _untried(self) -> list[Edit]:
        """By slot: allowed, of another cost than what stands there."""
        costs, allowed = self.search.slot_costs.tolist(), self.search.space.allowed
        return [
            (slot, choice)
            for slot, present in enumerate(self.path)
            for choice, cost in enumerate(costs)
            if allowed[slot][choice] and cost != costs[present] and self.effect_nats[slot][choice] is None
        ]

    def _is_cheaper(self, slot: int, choice: int) -> bool:
        costs = self.search.slot_costs.tolist()
        return bool(costs[choice] < costs[self.path[slot]])

    def _ordered(self) -> list[Edit]:
        """Of cheaper ones those to the cheapest candidate, so deletions before swaps; among these, and of dearer ones,
        the edit that does least harm to the weights as they are: where blocks stand in for each other, the one that the
        others can do without goes. What is dearer than these is asked for later: each answer is a look at all windows.
        """
        costs = self.search.slot_costs.tolist()
        edits = self._cheaper()
        least = min((costs[choice] for _, choice in edits), default=0.0)
        edits = [edit for edit in edits if costs[edit[1]] == least] or self._dearer()
        harm = {edit: float(self._losses(self._edited(*edit)).mean()) for edit in edits}
        return sorted(edits, key=lambda edit: (harm[edit], edit))

    def _edited(self, slot: int, choice: int) -> list[int]:
        return [choice if number == slot else present for number, present in enumerate(self.path)]

    # -- training and scoring -------------------------------------------------------------------------------------

    def _refer(self, ends: Sequence[int]) -> int:
        """See that the path's own losses are known behind each number of updates; returns the updates that it took."""
        if all(end in self._references for end in ends):
            return 0
        before = self._snapshot(self.path)
        self._references |= dict(self._trained(self.path, ends))
        self._put_back(before)
        return ends[-1]

    def _trained(self, path: Sequence[int], ends: Sequence[int]) -> Iterator[tuple[int, Tensor]]:
        """Fine-tune the path's weights in place on the stream's next batches; its losses behind each of `ends`."""
        search, method = self.search, self.search.method
        optimiser = weights_optimiser(self._weights(path), method)
        stream, forward = search.streams["weight_data"], search.path_nats(path)
        # Where the search ended: its peak would first undo what the falling rate had settled (measured on text: 1.716
        # nats became 1.760 in 50 updates at the peak, 1.700 at a quarter of it).
        lr = learning_rate(search.end, method.n_steps, method)
        for step in range(1, ends[-1] + 1):
            losses = search.loss_parts(forward, stream.next(), stream)
            weight_step(losses, optimiser, lr=lr * min(1.0, step / _RISE), grad_clip=method.grad_clip)
            if step in ends:
                yield step, self._losses(path)

    def _losses(self, path: Sequence[int]) -> Tensor:
        """(N,) mean nats of each held-out window."""
        supernet = self.search.supernet
        supernet.eval()
        windows = evaluate(self.search.path_nats(path), self._windows, rows_at_once(self.search.method)).windows
        supernet.train()
        finite_or_fail(windows.mean(), self.search.step)
        return windows

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
        return {"given": self._given} | {f"reference.{n}": losses for n, losses in self._references.items()}

    def state(self) -> dict[str, Any]:
        """JSON; floats come back as they were."""
        return {
            "path": self.path,
            "n_updates": self.n_updates,
            "queue": self._queue,
            "effect_nats": self.effect_nats,
            "effect_se": self.effect_se,
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on with the next comparison; the trial's own state has been put back before."""
        self.path, self.n_updates = list(state["path"]), state["n_updates"]
        self._queue = [(slot, choice) for slot, choice in state["queue"]]
        self.effect_nats = [list(row) for row in state["effect_nats"]]
        self.effect_se = [list(row) for row in state["effect_se"]]
        self._given = tensors["given"]
        references = {name: losses for name, losses in tensors.items() if name.startswith("reference.")}
        self._references = {int(name.removeprefix("reference.")): losses for name, losses in references.items()}


def _forecast(gaps: Sequence[float], ends: Sequence[int], last: int) -> float:
    """What a gap will be at `last` updates if it goes on shrinking by the same factor; as it is where it does not.

    Args:
        gaps: nats, the last positive, behind the updates of `ends`: one, where that is `last`, or two.
    """
    if len(gaps) < 2:
        return math.inf  # there is no further
    if gaps[0] <= gaps[1]:
        return gaps[1]
    return gaps[1] * float((gaps[1] / gaps[0]) ** ((last - ends[1]) / (ends[1] - ends[0])))
