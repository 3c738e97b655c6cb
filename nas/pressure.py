"""The budget's pressure on alpha: one dual variable per bound, which finds by itself how hard to press.

The penalty is the Lagrangian of expected cost under pi = softmax(alpha): sum_j dual_j (E_pi cost_j / target_j - 1), in
nats per token, with gradient sum_j dual_j pi_il (t_l - mean_i t) / target_j (par-search.md section 4.2). A dual rises
by projected gradient ascent while its cost is over the target. What ascent alone would overshoot is held back in four
ways (ours): no rise before the one-path loss has fallen and then flattened, at the latest half-way through the search
phase, since pressed from the start every slot falls to identity before any block is worth its time (measured: five to
seven of eight slots), and a loss that still stands at chance is as flat; a rise that is damped by how fast the cost
falls already, because alpha follows the dual late; decay below the target; and a ceiling.
The bound itself is kept by the exact derivation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nas import cost
from nas.budgets import BoundedCost
from nas.config.method import Method

_FLAT = 0.01  # relative fall of the loss between two tenths of the run below which it counts as flat
# Of the first look, and in standard deviations of the looks: what a loss must be below it to have fallen. A head that
# has learnt nothing begins above chance (on shift-then-match by 4% in the first look of 48 updates).
_FALLEN, _NOISE = 0.1, 3.0
_LOOKS = 50  # for it in a run, evenly spaced, however often a trial reports
# Of cost_weight: what the dual gains in one alpha update at twice the target, and the most it may be. With these the
# expected cost ended within 3% of the target in a simulated trainer, whose blocks bought between 0.01 and 0.5 nats.
_RATE, _MOST = 10.0, 100.0
_DAMPING = 0.4  # of the rise, in alpha's own time: the updates in which Adam moves an alpha that far
_DECAY = 0.95  # of the dual per alpha update, below the target
# Of what the dearest slot costs: a bound below is pressed for as if it stood there. Excess against next to nothing, or
# against the nothing that a table of zeros makes of a ratio, is beyond float32.
_LEAST, _SMALLEST = 1e-6, 1e-30


class Pressure:
    """Nothing before the plateau, and exactly nothing as long as no bound was exceeded behind it.

    Args:
        method: pressure `dual`, or `hinge`: cost_weight * max(0, expected / target - 1), risen to over a quarter of the
            alternation; cost_weight and the phases.
        bounds: of the request; none never press.
    """

    def __init__(self, method: Method, bounds: Sequence[BoundedCost]) -> None:
        self.method = method
        self.bounds = tuple(bounds)
        self.costs = [torch.tensor(each.slot_costs) for each in self.bounds]  # (K,) each
        self._targets = [
            max(each.target, _LEAST * (each.offset + max(each.slot_costs)), _SMALLEST) for each in self.bounds
        ]
        self.start: int | None = None  # step from which it may press
        self._duals = [0.0] * len(self.bounds)
        self._excess: list[float] | None = None  # of the last update: expected / target - 1
        self._first: float | None = None  # train loss of the first look
        self._history: list[tuple[int, float]] = []  # (step, train loss up to it) of the last two tenths

    @property
    def every(self) -> int:
        """Weight updates between two looks for the plateau."""
        return max(1, self.method.n_steps // _LOOKS)

    @property
    def dual(self) -> float:
        """Nats per token for a cost of once the budget, all bounds together; 0 presses nothing. The hinge's is what it
        rises to over a quarter of the alternation."""
        return sum(self._duals)

    def observe(self, step: int, train_loss: float, *, searching: bool) -> str | None:
        """Look for the plateau; only once alpha is released, at the latest half-way from there.

        A loss that has not fallen since the first look is no plateau, however flat: no block has learnt what alpha
        could weigh against its cost.

        Args:
            step: weight updates done, a multiple of `every`.
            train_loss: mean one-path loss of the last `every` of them.
            searching: whether alpha moves.

        Returns:
            What to tell where the pressure starts here, and not for a plateau.
        """
        self._first = train_loss if self._first is None else self._first
        tenth = max(1, self.method.n_steps // 10)
        self._history = [(at, loss) for at, loss in self._history if at > step - 2 * tenth] + [(step, train_loss)]
        if self.start is not None or not searching:
            return None
        earlier = [loss for at, loss in self._history if at <= step - tenth]
        recent = [loss for at, loss in self._history if at > step - tenth]
        mean = sum(recent) / len(recent)
        fall, noise = self._first - mean, _NOISE * _spread([*earlier, *recent])
        if fall > max(_FALLEN * self._first, noise) and earlier and mean > (1 - _FLAT) * sum(earlier) / len(earlier):
            self.start = step
        elif step >= self.method.warmup_steps + self._alternation / 2:
            self.start = step
            lacks = "flattened" if fall > _FALLEN * self._first else "fallen"
            return (
                f"the budget may press from step {step} on, half-way through the search phase, though the loss had not "
                f"{lacks} by then: it was {self._first:.4f} nats at first and is {mean:.4f}; more method.n_steps, or a "
                "larger method.warmup_share, lets blocks learn before that"
            )
        return None

    @property
    def _alternation(self) -> int:
        return self.method.settle_start - self.method.warmup_steps

    def penalty(self, probabilities: Tensor, step: int) -> Tensor | float:
        """What is added to alpha's loss, a scalar that carries the gradient to alpha; 0.0 where nothing presses.

        Args:
            probabilities: pi = softmax(alpha), never a sample, (L, K); 0 of a candidate that a slot may not take.
            step: weight updates done.
        """
        if self.start is None:
            return 0.0
        pressed: Tensor | float = 0.0
        for number, dual in enumerate(self._duals):
            if self.method.pressure == "hinge":
                ramp = max(1.0, self._alternation / 4)
                share = min(1.0, (step - self.start) / ramp)
                pressed = pressed + self.method.cost_weight * share * self.excess(probabilities, number).clamp_min(0)
            elif dual > 0:
                pressed = pressed + dual * self.excess(probabilities, number)
        return pressed

    def excess(self, probabilities: Tensor, number: int) -> Tensor:
        """expected / target - 1 of one bound; negative within it."""
        bound = self.bounds[number]
        expected: Tensor = cost.expected(probabilities, self.costs[number].to(probabilities), bound.offset)
        return expected / self._targets[number] - 1

    def exceeded(self, probabilities: Tensor) -> bool:
        """Whether alpha expects more than some bound allows."""
        return any(float(self.excess(probabilities, number)) > 0 for number in range(len(self.bounds)))

    @torch.no_grad()
    def update(self, probabilities: Tensor) -> None:
        """Move the duals, after an alpha update.

        Args:
            probabilities: pi = softmax(alpha) as it is now, (L, K).
        """
        before = self._excess
        self._excess = [float(self.excess(probabilities, number)) for number in range(len(self.bounds))]
        if self.start is None:
            return
        for number, excess in enumerate(self._excess):
            if self.method.pressure == "hinge":
                self._duals[number] = self.method.cost_weight if excess > 0 else 0.0
                continue
            if excess <= 0 and self._duals[number] == 0:
                continue
            falling = excess - before[number] if before is not None else 0.0
            rise = _RATE * self.method.cost_weight * (excess + _DAMPING / self.method.alpha_lr * falling)
            risen = min(max(0.0, self._duals[number] + rise), _MOST * self.method.cost_weight)
            self._duals[number] = risen if excess > 0 else _DECAY * risen

    def state(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "first": self._first,
            "history": self._history,
            "duals": self._duals,
            "excess": self._excess,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.start, self._duals, self._excess = state["start"], [*state["duals"]], state["excess"]
        self._first = state.get("first")  # checkpoints of before have none: the next look stands for it
        self._history = [(step, loss) for step, loss in state["history"]]


def _spread(looks: Sequence[float]) -> float:
    """Their standard deviation."""
    mean = sum(looks) / len(looks)
    return math.sqrt(sum((look - mean) ** 2 for look in looks) / len(looks))
