"""What the service answers about rules: statements with their evidence, and what a layout costs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from db import ids
from nas.known_rules import Known as Known
from nas.placement import MAX_SLOTS, Spacing


class Statement(BaseModel, extra="allow"):
    """One thing that the seeds of a search say, with its evidence (docs/rules.md)."""

    id: str | None = Field(None, description="of the stored rule; null in a search without a service")
    kind: Literal["ratio", "position", "cut", "spacing", "order"]
    family: str
    other: str | None = Field(description="the second family of an order")
    direction: str | None = Field(description="early, late; first, last; even, clustered; before, after")
    statement: str
    verdict: Literal["not supported", "suggested", "supported"]
    reason: str = Field(description="of the verdict, one sentence")
    at: float | None = Field(description="the figure in the statement")
    statistic: float | None = Field(description="what was tested, mean of the seeds that can tell")
    p: float | None = Field(description="by permutation; null of a ratio")
    p_corrected: float | None = Field(description="by Holm over all tests of the report")
    n_tests: int = Field(description="that the correction is over")
    n_draws: int | None = Field(description="placements drawn; null: all were counted")
    low: float | None = Field(description="lower end of a ratio's 95% interval")
    high: float | None = Field(description="upper end; null: none")
    range_low: float | None = Field(description="smallest ratio of a seed, from 6 seeds on")
    range_high: float | None
    n_seeds: int = Field(description="seeds that can tell")
    by_seed: list[float | None]
    found_at: dict[str, Any] | None = Field(description="depth, width, length, data, updates and budget")
    confirmation: dict[str, Any] | None = Field(description="what retraining the layout said; null: not done")


class Costs(BaseModel):
    """What the slots of a layout cost."""

    parameters: int = Field(description="of the blocks and their norms")
    flops: int = Field(description="of one sequence at the first serve mode")
    cache_bytes: int | None = Field(description="that decoding keeps of one sequence; null where nothing tells it")
    predicted_ms: float | None = Field(description="per call at the first serve mode; null: see no_latency")
    latency_table: str | None = Field(description="id of the stored table behind it")
    no_latency: str | None = Field(description="why nothing is predicted")


class KnownAtDepth(BaseModel, extra="forbid"):
    """Which depth a rule of other people is to be laid out at, and of which blocks."""

    n_slots: int = Field(strict=True, ge=1, le=MAX_SLOTS, description="depth of the layout", examples=[32])
    ratio: float | None = Field(
        None, strict=True, ge=1, le=MAX_SLOTS, description="all blocks : attention blocks of par; null: 5"
    )
    spacing: Spacing = "uniform"
    d_model: int | None = Field(None, strict=True, ge=4, le=16384, description="width; null: the space's")
    search: str | None = Field(
        None,
        pattern=ids.PATTERN,
        description="id of a search whose space, data and recipe are meant; null: the defaults",
    )
