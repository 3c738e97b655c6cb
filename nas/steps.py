"""What a trial tells while it runs: torch-free records that the recorder stores and every client reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepRecord:
    """The state of one trial after `step` weight updates. L slots, K candidates.

    Search trials fill everything but `val_loss`; retraining trials fill step, train_loss, val_loss, tokens_per_s.

    Args:
        step: weight updates done.
        train_loss: mean loss of the weight steps since the last record, nats per token; None at step 0.
        val_loss: validation loss of a concrete network, nats per token.
        val_loss_soft: validation loss of the supernet mixed by softmax(alpha), nats per token.
        val_loss_argmax: validation loss of the path of the largest alphas, nats per token.
        tau: temperature of the next step.
        expected_ms: expected latency under softmax(alpha), milliseconds.
        entropy: mean entropy of the rows of softmax(alpha), nats.
        tokens_per_s: training tokens per second since the last record; the only field that may differ in a rerun.
        probabilities: softmax(alpha) in float32, (L, K); never a sample.
        null_gaps: (L,) the gap between the two largest alphas that sign-flipped gradients reach by chance (95%).
        updates: (L, K) weight updates each candidate has had.
        last: whether the trial ends here.
        checkpoint: whether the trial should be saved at this step.
    """

    step: int
    train_loss: float | None = None
    val_loss: float | None = None
    val_loss_soft: float | None = None
    val_loss_argmax: float | None = None
    tau: float | None = None
    expected_ms: float | None = None
    entropy: float | None = None
    tokens_per_s: float | None = None
    probabilities: list[list[float]] | None = None
    null_gaps: list[float] | None = None
    updates: list[list[int]] | None = None
    last: bool = False
    checkpoint: bool = False
