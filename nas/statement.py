"""One thing that the seeds of a search say, with its evidence: what is stored, sent and shown of it. No numpy here.

How it comes to be stands in nas.statements, its verdict in nas.verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

Kind = Literal["ratio", "position", "cut", "spacing", "order"]
Verdict = Literal["not supported", "suggested", "supported"]


@dataclass(frozen=True)
class Statement:
    """One thing that the seeds say, with its evidence.

    Args:
        kind: what it is about.
        family: of which blocks.
        statement: the line for people.
        direction: early, late; first, last; even, clustered; before, after; None of a ratio.
        other: the family that an order is held against.
        at: position: mean place, 0 the beginning and 1 the end. cut: share of the family's blocks within. spacing:
            widest gap over the even one. order: share of pairs with the family first. ratio: all blocks : its blocks.
        statistic: what was tested, mean of `n_seeds`: position: the family's places, summed. cut: its blocks beyond.
            spacing: how far gaps are from even. order: places among the blocks of both, summed. ratio: its share.
        p: chance of this or more, in either direction, if a seed's blocks could stand anywhere; None of a ratio.
        p_corrected: by Holm over all tests of the report.
        n_draws: placements drawn, where they could not all be counted; None: they were.
        low: lower end of a ratio's 95% t interval over the seeds.
        high: upper end; None: it has none, the seeds may as well have no such block.
        range_low: smallest ratio of a seed, from 6 seeds on.
        range_high: largest.
        n_seeds: seeds that can tell: with the family, and with room to place it otherwise.
        by_seed: `at` of each seed in order; None where it cannot tell.
        found_at: depth, width, length, data, updates, budget and layout of the search.
        verdict: nas.verdicts.
        reason: of the verdict, one sentence.
        confirmation: JSON of what retraining the rule's layout said (nas.confirmation); None: it was not done.
        n_tests: tests that the correction is over.
    """

    kind: Kind
    family: str
    statement: str
    direction: str | None = None
    other: str | None = None
    at: float | None = None
    statistic: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    n_draws: int | None = None
    low: float | None = None
    high: float | None = None
    range_low: float | None = None
    range_high: float | None = None
    n_seeds: int = 0
    by_seed: tuple[float | None, ...] = ()
    found_at: Mapping[str, Any] | None = None
    verdict: Verdict = "not supported"
    reason: str = ""
    confirmation: Mapping[str, Any] | None = None
    n_tests: int = 0

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Statement:
        """The statement of a stored body; fields of a newer version are left out."""
        known = {each.name for each in fields(cls)}
        kept = {name: value for name, value in body.items() if name in known}
        return cls(**{**kept, "by_seed": tuple(kept.get("by_seed", ()))})

    @property
    def name(self) -> str:
        """Of its layout among others."""
        return f"rule: {self.kind}"
