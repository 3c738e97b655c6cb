"""What the service answers of how much a request takes: trials, memory, time."""

from __future__ import annotations

from pydantic import BaseModel, Field


class TrialMeasured(BaseModel):
    """Mean seconds that the search trials behind a result took."""

    seconds: float = Field(description="of all phases but the parsimony pass")
    prune_seconds: float = Field(description="of the parsimony pass")


class TrialEstimate(BaseModel):
    """What a search trial was estimated to take before one was placed; or why there is no estimate."""

    memory_bytes: int | None = Field(None, description="at the peak: weights, moments, and what a step holds")
    seconds: float | None = Field(None, description="of all phases but the parsimony pass")
    prune_seconds: float | None = Field(None, description="of the parsimony pass, at most")
    reason: str | None = Field(None, description="why there is no estimate")
    measured: TrialMeasured | None = Field(
        None, description="in a result, what the trials took; null where max_minutes ended them all"
    )


class SpaceSize(BaseModel):
    """How many networks may be derived."""

    n_slots: int
    n_candidates: int
    n_architectures: int | None = Field(description="what the layout leaves; null above 2^53, which JSON would round")
    log10_architectures: float


class TrialCount(BaseModel):
    """Trials, and weight updates at most: of each, the parsimony pass included, and of all."""

    searches: int
    search_steps: int = Field(description="of one; as a rule the parsimony pass ends long before it")
    retrainings: int = Field(description="supposing that every seed derives an architecture of its own")
    retrain_steps: int = Field(description="of one")
    n_steps: int = Field(description="of all")


class MemorySize(BaseModel):
    """Parameters, and what they take in float32; activations come on top."""

    supernet_parameters: int
    largest_parameters: int = Field(description="of the largest network that may be derived")
    parent_parameters: int | None = Field(description="of the interleaved parent; null where the space has none")
    uncounted: list[str] = Field(description="labels of classes in Python, which tell no formula and count as 0")
    weight_bytes: int = Field(description="of the supernet, as all that follows")
    gradient_bytes: int = Field(description="if every parameter has one at once")
    moment_bytes: int = Field(description="AdamW's two")
    total_bytes: int


class TimeNeeded(BaseModel):
    """Seconds at the speed of the newest search of the same shape that has ended here, without measuring and export."""

    search_trial_s: float = Field(description="of one search trial, at most")
    retraining_s: float = Field(description="of one retraining")
    all_s: float = Field(description="of all trials, one after the other; as many as have room run side by side")
    tokens_per_s: float = Field(description="that a search trial trained on")


class Estimate(BaseModel):
    """What a request would take, at most, before it is queued."""

    space: SpaceSize
    trials: TrialCount
    memory: MemorySize
    time: TimeNeeded | None = Field(description="null where nothing of this shape has ended here")
    time_unknown: str | None = Field(description="why time is null, in words")
