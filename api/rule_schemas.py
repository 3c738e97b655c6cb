"""What the service answers about rules: statements with their evidence, and what a layout costs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from db import ids
from nas.known_rules import Known as Known
from nas.placement import MAX_SLOTS, Spacing, Zone


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
    found_at: dict[str, Any] | None = Field(description="depth, width, length, data, updates, budget, layout")
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


class Rule(BaseModel):
    """A rule line with its evidence: what describes a search's seeds, or, with a `kind`, one statement of theirs."""

    id: str
    statement: str
    verdict: str
    evidence: dict[str, Any]


class RuleAtDepth(BaseModel, extra="forbid"):
    """Which depth a rule is to be carried to, and how."""

    n_slots: int = Field(strict=True, ge=1, le=MAX_SLOTS, description="depth of the layout", examples=[32])
    ratio: float | None = Field(
        None, strict=True, ge=1, le=MAX_SLOTS, description="all blocks : attention blocks; null: the rule's own"
    )
    zone: Zone = Field(
        "found",
        description="of the line about attention. found: the part of the depth where the seeds put it; paper: the "
        "first two thirds",
    )
    spacing: Spacing = Field(
        "uniform",
        description="of the line about attention. uniform: evenly from the zone's first slot to its last; stride: one "
        "gap",
    )
    d_model: int | None = Field(None, strict=True, ge=4, le=16384, description="width; null: the search's")


class FoundAt(BaseModel):
    """Where a rule was found; elsewhere it can be wrong."""

    n_slots: int
    d_model: int
    train_length: int = Field(description="tokens of a training window")
    dataset: str
    dataset_fingerprint: str | None = Field(description="sha256 of the text")
    n_steps: int = Field(description="weight updates of each search trial")
    budget: dict[str, Any] = Field(description="as in the request")
    n_searches: int
    n_seeds: int
    undecided: int = Field(description="undecided slots over all seeds")


class Layout(BaseModel):
    """A rule at one depth: a suggestion that nobody has trained, or what a statement's retraining trained."""

    rule: str = Field(description="id of the rule, or par or sandwich")
    search: str | None = Field(description="id of the search that it comes from, or whose space it is laid out in")
    n_slots: int
    d_model: int
    slots: list[str] = Field(description="the label of each slot")
    string: str = Field(description="a letter a slot", examples=["AFFFAFFFAFFFAFFF"])
    attention: list[int] = Field(description="slots with attention, counted from 0")
    ratio: float = Field(description="all blocks : attention blocks, as asked for")
    zone: Zone | None = Field(description="null of a statement, which says itself where its blocks stand")
    spacing: Spacing | None = Field(description="null of a statement")
    statement: str = Field(description="one line for people; slots are counted from 1 there")
    verdict: Literal["not supported", "suggested", "supported"] = Field(
        description="of a layout that was not retrained, suggested at best"
    )
    found_at: FoundAt | None = Field(description="null of par and sandwich")
    costs: Costs
    request: dict[str, Any] = Field(description="fixes every slot; POST it to /searches to train the layout")
