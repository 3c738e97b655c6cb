"""How the supernet is trained."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from nas.config.base import Config


class Method(Config):
    """How the supernet is trained; `n_steps` counts weight updates before the parsimony pass.

    A search has four phases: *warm-up* (uniform paths, alpha frozen), *search* (weight and alpha updates in turn),
    *settle* (alpha frozen, candidates that were run less catch up) and *prune* (the parsimony pass on one path).
    """

    alpha_estimator: Literal["soft", "straight_through", "single_path", "two_path"] = Field(
        "straight_through", description="two_path: straight-through between two candidates a slot, drawn anew each time"
    )
    n_steps: int = Field(2400, ge=1, le=10_000_000, description="weight updates of warm-up, search and settle")
    warmup_share: float = Field(0.33, ge=0, lt=1, description="share of n_steps with alpha frozen")
    settle_share: float = Field(0.1, ge=0, lt=1, description="share of n_steps at the end, alpha frozen again")
    alpha_share: float = Field(0.2, gt=0, le=0.5, description="share of alpha updates; 0.2: one to four of the weights")
    uniform_share: float = Field(0.5, ge=0, le=1, description="share of paths after warm-up drawn uniformly")
    batch_size: int = Field(8, ge=1, le=65536, description="windows per update")
    micro_batch: int | None = Field(
        None, ge=1, le=65536, description="windows per forward pass, gradients added up; None: as many as have room"
    )
    lr: float = Field(2e-3, gt=0, le=1, description="peak learning rate of the weights")
    lr_schedule: Literal["cosine", "constant"] = Field("cosine", description="behind the rise; cosine: to a tenth")
    lr_warmup_steps: int = Field(100, ge=0, description="linear rise of lr")
    weight_decay: float = Field(0.01, ge=0, le=1, description="decoupled, on matrices only")
    grad_clip: float = Field(1.0, gt=0, description="largest norm of the weights' gradient")
    alpha_lr: float = Field(2e-2, gt=0, le=1, description="learning rate of alpha")
    alpha_decay: float = Field(0.0, ge=0, le=1, description="decoupled decay of alpha, towards equal probabilities")
    alpha_draws: int = Field(1, ge=1, le=16, description="samples that each alpha gradient is the mean of")
    tau_start: float = Field(5.0, gt=0, le=100, description="temperature during warm-up")
    tau_end: float = Field(0.2, gt=0, le=100, description="temperature of the last step")
    cost_weight: float = Field(
        0.1,
        ge=0,
        le=100,
        description="hinge: nats per token at twice the budget; dual: a tenth of its gain there in an alpha update",
    )
    pressure: Literal["dual", "hinge"] = Field(
        "dual", description="dual: grows by itself until the budget is met; hinge: cost_weight as it is"
    )
    candidate_dropout: float = Field(
        0.0, ge=0, lt=1, description="share of slots of a warm-up path that are skipped, so that blocks stand alone"
    )
    entropy_weight: float = Field(0.0, ge=0, le=10, description="nats per token on alpha's mean entropy, at the end")
    max_identity: float = Field(
        1.0, gt=0, le=1, description="share of slots that may fall to identity before it is told"
    )
    stop_when_stable: bool = Field(False, description="end the search phase once its leaders no longer change")
    report_every: int = Field(25, ge=1, description="weight updates between reports")
    checkpoint_every: int = Field(100, ge=1, description="weight updates between checkpoints")
    eval_windows: int = Field(32, ge=1, le=65536, description="validation windows of each report")
    max_minutes: float = Field(60, gt=0, le=60 * 24 * 30, description="wall time of one trial")
    prune_steps: int = Field(
        200, ge=0, le=10_000_000, description="weight updates behind a comparison of the parsimony pass; 0: no pass"
    )
    prune_share: float = Field(
        1.0, gt=0, le=100, description="updates that the parsimony pass may spend, as a share of n_steps"
    )
    prune_windows: int = Field(256, ge=2, le=65536, description="held-out windows of each comparison")
    prune_nats: float = Field(
        0.002, ge=0, le=10, description="nats per token that a block must buy, besides one standard error, to be kept"
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="bfloat16: autocast in weight and alpha steps; slower on processors without it"
    )
    random_signs: bool = Field(False, description="control run: flip the sign of each data gradient of alpha at random")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.tau_end > self.tau_start:
            raise ValueError(f"tau_end {self.tau_end} is above tau_start {self.tau_start}; temperature falls")
        if self.warmup_share + self.settle_share >= 1:
            raise ValueError(
                f"warmup_share {self.warmup_share} and settle_share {self.settle_share} leave nothing for the search; "
                "their sum must be below 1"
            )
        return self

    @property
    def warmup_steps(self) -> int:
        """Weight updates before alpha moves."""
        return round(self.warmup_share * self.n_steps)

    @property
    def settle_start(self) -> int:
        """The weight update behind which alpha is frozen again."""
        return self.n_steps - round(self.settle_share * self.n_steps)

    @property
    def prune_most(self) -> int:
        """Weight updates behind which the parsimony pass begins no comparison."""
        return math.ceil(self.prune_share * self.n_steps) if self.prune_steps else 0

    @property
    def n_looks(self) -> int:
        """Whole networks that are scored before the parsimony pass, at most."""
        return math.ceil(self.n_steps / 16) if self.prune_steps else 0

    @property
    def most_steps(self) -> int:
        """Weight updates that a search may take, its parsimony pass included: what progress is counted against."""
        last = 2 * (self.prune_steps + self.prune_steps // 4)  # of path and variant a first glance, and all of it
        return self.n_steps + (self.prune_most + last if self.prune_most else 0)
