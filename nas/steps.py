"""What a trial tells while it runs: torch-free records that the recorder stores and every client reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["warm-up", "search", "settle", "prune"]


@dataclass(frozen=True)
class StepRecord:
    """The state of one trial after `step` weight updates. L slots, K candidates.

    Search trials fill everything but `val_loss`; retraining trials fill step, train_loss, val_loss, tokens_per_s
    and, where their time was up, warning and cut_short.

    Args:
        step: weight updates done.
        phase: what the trial is at: warm-up, search, settle or prune; None of a retraining.
        train_loss: mean loss of the weight steps since the last record, nats per token; None at step 0.
        val_loss: validation loss of a concrete network, nats per token.
        val_loss_soft: validation loss of the supernet mixed by softmax(alpha), nats per token.
        val_loss_argmax: validation loss of the path of the largest alphas, nats per token.
        val_loss_sampled: mean validation loss of paths drawn from softmax(alpha), nats per token.
        tau: temperature of the next step.
        expected_ms: expected latency under softmax(alpha), milliseconds.
        entropy: mean entropy of the rows of softmax(alpha), nats.
        identity_share: expected share of slots with identity under softmax(alpha).
        alpha_velocity: mean change of softmax(alpha) since the last record, total variation per slot.
        dual: what the budget's pressure stands at, nats per token for a cost of once the budget; 0 presses nothing.
        tokens_per_s: training tokens per second since the last record; it may differ in a rerun.
        probabilities: softmax(alpha) in float32, (L, K); never a sample.
        null_gaps: (L,) how far ahead of all others the leading alpha comes in none of 256 copies with sign-flipped
            gradients, in any slot.
        updates: (L, K) weight updates each candidate has had.
        z: (L, K) mean of each alpha's gradient on its data, penalties left out, over its standard error; positive
            where descent would lower alpha.
        path: (L,) candidate of each slot of the network that the parsimony pass holds now; None before it.
        effect_nats: (L, K) nats per token that held-out loss rises by when the path takes this candidate in this slot,
            other slots as they were when it was tried, both fine-tuned alike; an edit of another slot that was kept
            later is not in it; 0 for the path's own; None where it was not tried.
        effect_se: (L, K) standard error of the same.
        finalists: (F, L) the networks that do best by shared weights, within every bound, best first, each with the
            candidate of its slots; None before the parsimony pass.
        finalist_nats: (F,) their held-out losses, nats per token, by the weights that the pass began with.
        warning: what guards found since the last record, and of the last one whether time was up, a line each; None:
            nothing. In a rerun it may differ with `last`.
        not_learnt: why nothing should be derived of a search that ends here, also a line of `warning`; None: it has
            learnt, or goes on.
        cut_short: how far a trial came that its wall time ends here, also a line of `warning`; None: it goes on, or
            came to its end.
        last: whether the trial ends here.
        checkpoint: whether the trial should be saved at this step.
    """

    step: int
    phase: Phase | None = None
    train_loss: float | None = None
    val_loss: float | None = None
    val_loss_soft: float | None = None
    val_loss_argmax: float | None = None
    val_loss_sampled: float | None = None
    tau: float | None = None
    expected_ms: float | None = None
    entropy: float | None = None
    identity_share: float | None = None
    alpha_velocity: float | None = None
    dual: float | None = None
    tokens_per_s: float | None = None
    probabilities: list[list[float]] | None = None
    null_gaps: list[float] | None = None
    updates: list[list[int]] | None = None
    z: list[list[float]] | None = None
    path: list[int] | None = None
    effect_nats: list[list[float | None]] | None = None
    effect_se: list[list[float | None]] | None = None
    finalists: list[list[int]] | None = None
    finalist_nats: list[float] | None = None
    warning: str | None = None
    not_learnt: str | None = None
    cut_short: str | None = None
    last: bool = False
    checkpoint: bool = False

    @property
    def path_loss(self) -> float | None:
        """Validation loss of what is derived here, nats per token: of the path that the parsimony pass holds, before it
        of the path of the largest alphas; None while none leads."""
        return self.val_loss_argmax if self.val_loss is None else self.val_loss
