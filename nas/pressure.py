"""The budget's pressure on alpha: a hinge on expected latency, held back until the weights have learnt.

Pressed from the start, every slot falls to identity before any block is worth its time (measured: five to seven of
eight slots). So the hinge starts once the one-path loss has flattened, at the latest half-way through the
alternation, and rises linearly over a quarter of it. The bound itself is kept by the exact derivation.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nas.architecture import interleaved
from nas.config import Method, SearchRequest
from nas.cost import LatencyTable

_FLAT = 0.01  # relative fall of the loss between two tenths of the run below which it counts as flat


def target_ms(request: SearchRequest, table: LatencyTable) -> float | None:
    """The latency bound in milliseconds of the table's own prediction; None without a budget."""
    budget = request.budget.latency
    if budget is None:
        return None
    if budget.ms is not None:
        return budget.ms
    assert budget.ratio_to_parent is not None
    return budget.ratio_to_parent * table.predict_ms(interleaved(request.space), request.space)


class Pressure:
    """Nothing at first, then cost_weight * max(0, expected / target - 1), in nats per token.

    Args:
        method: its schedule.
        target: milliseconds; None never presses.
    """

    def __init__(self, method: Method, target: float | None) -> None:
        self.method = method
        self.target = target
        self.start: int | None = None  # step at which the ramp begins
        self._history: list[tuple[int, float]] = []  # (step, train loss) of the last two tenths

    def observe(self, step: int, train_loss: float, *, searching: bool) -> None:
        """Look for the plateau at each report; only once alpha is released."""
        tenth = max(1, self.method.n_steps // 10)
        self._history = [(at, loss) for at, loss in self._history if at > step - 2 * tenth] + [(step, train_loss)]
        if self.start is not None or not searching:
            return
        earlier = [loss for at, loss in self._history if at <= step - tenth]
        recent = [loss for at, loss in self._history if at > step - tenth]
        warmup = self.method.warmup_share * self.method.n_steps
        late = step >= warmup + (self.method.n_steps - warmup) / 2
        mean_earlier = sum(earlier) / max(1, len(earlier))
        flat = bool(earlier) and sum(recent) / len(recent) > (1 - _FLAT) * mean_earlier
        if flat or late:
            self.start = step

    def penalty(self, expected_ms: Tensor, step: int) -> Tensor | float:
        """The hinge, a scalar that carries the gradient to alpha; exactly 0 below the target."""
        if self.target is None or self.start is None:
            return 0.0
        ramp = max(1.0, (1 - self.method.warmup_share) * self.method.n_steps / 4)
        share = min(1.0, (step - self.start) / ramp)
        return self.method.cost_weight * share * hinge(expected_ms, self.target)

    def state(self) -> dict[str, Any]:
        return {"start": self.start, "history": self._history}

    def restore(self, state: dict[str, Any]) -> None:
        self.start = state["start"]
        self._history = [(step, loss) for step, loss in state["history"]]


def hinge(expected_ms: Tensor, target: float) -> Tensor:
    """max(0, expected / target - 1): 0 with zero gradient below the target (par-search.md section 4.2)."""
    return (expected_ms / target - 1).clamp_min(0)
