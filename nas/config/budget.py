"""Bounds on what the derived model may cost."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from nas.config.base import Config


class LatencyBudget(Config):
    """A bound on latency at the first serve mode: in milliseconds, or against the interleaved parent."""

    ms: float | None = Field(None, gt=0, description="milliseconds per call")
    ratio_to_parent: float | None = Field(None, gt=0, le=100, description="1.0 is the interleaved parent's latency")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.ms is None) == (self.ratio_to_parent is None):
            raise ValueError("a latency budget needs exactly one of ms and ratio_to_parent")
        return self


class Bound(Config):
    """A bound on what is counted, not measured: as a number, or against the interleaved parent."""

    at_most: float | None = Field(None, gt=0, description="of the slots' blocks, in the unit of what is bounded")
    ratio_to_parent: float | None = Field(None, gt=0, le=100, description="1.0 is as much as the interleaved parent")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.at_most is None) == (self.ratio_to_parent is None):
            raise ValueError("a bound needs exactly one of at_most and ratio_to_parent")
        return self


class Budget(Config):
    """Any mix of bounds; all of them hold."""

    latency: LatencyBudget | None = Field(None, description="at the first serve mode; None: no bound")
    parameters: Bound | None = Field(None, description="weights of the slots' blocks; None: no bound")
    flops: Bound | None = Field(None, description="operations for one sequence at the first serve mode; None: no bound")
    cache_bytes: Bound | None = Field(
        None, description="what decoding keeps of one sequence at the first serve mode's lengths; None: no bound"
    )
