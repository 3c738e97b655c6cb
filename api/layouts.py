"""What a result tells of retrained layouts: each by itself, the derived one against each other, and the power of it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class RetrainedLayout(BaseModel):
    """One network with its retrainings, a figure a seed; qualities are in the unit of the task."""

    name: str = Field(
        description="derived, derived 2, ..., interleaved, present, sandwich, par, random 1, ..., all-ffn, "
        "all-attention, teacher, or `rule: ` with a kind",
        examples=["derived"],
    )
    role: str = Field(description="as in `architectures`")
    string: str = Field(description="a letter a slot", examples=["SAFSFAFM"])
    slots: list[str] = Field(description="the label of each slot")
    architecture: str = Field(description="its id")
    trials: list[str] = Field(description="ids of its trials, in the order of the seeds; equal networks share them")
    lr: float = Field(description="peak one; of `retrain.lrs` what validates best with the first `lr_seeds`")
    seeds: list[int]
    val_loss: list[float] = Field(description="by seed, on validation, bits per unit")
    test: list[float] = Field(description="by seed, on test, bits per unit")
    mean: float = Field(description="of test over the seeds")
    low: float | None = Field(description="lower end of the 95% t interval over seeds; null of one")
    high: float | None
    predicted_ms: float | None = Field(description="by the latency table")
    parameters: int = Field(description="of the slots' blocks and norms")
    flops: int = Field(description="of the slots' blocks, for one sequence at the first serve mode")
    cache_bytes: int | None = Field(description="that decoding keeps of one; null where nothing is decoded or told")


class LatencyRatio(BaseModel):
    """Two networks timed in turns at the first serve mode."""

    ratio: float = Field(description="first to second, median of paired ratios")
    low: float
    high: float


class LayoutComparison(BaseModel):
    """One layout against another on test, paired over seeds and windows; not corrected for how many there are."""

    first: str = Field(description="name in `retrained`")
    second: str
    unit: str
    difference: float = Field(description="first minus second, bits per unit; negative where the first is better")
    low: float = Field(description="lower end of the 95% interval; of one seed it is of the windows alone")
    high: float
    verdict: Literal["better", "worse", "cannot tell"]
    n_seeds: int
    detectable: float | None = Field(
        description="smallest true difference that such a comparison finds 8 times in 10; null of one seed"
    )
    latency: LatencyRatio | None = Field(description="null where it was not timed")


class Power(BaseModel):
    """What comparisons can show, as it was told before they ran."""

    message: str = Field(description="one line for people")
    n_seeds: int
    unit: str
    sd: float | None = Field(description="of a seed's paired difference, as far as it was seen by then")
    source: str = Field(description="what the sd is from")
    detectable: float | None = Field(description="smallest true difference that is found 8 times in 10")
