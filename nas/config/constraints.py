"""What a derived architecture must meet, beside the search's own layout: any mix, all of which hold.

Slots count from 0. A *block* is what stands in a slot that is not skipped: identity is none. A *mixer* is a block of
any family but ffn. Which labels and families there are, and how many slots, only the space knows: nas.constrain checks.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from nas.config.base import Config
from nas.config.budget import Budget

MAX_CONSTRAINTS = 32  # of one kind
_Name = Annotated[str, Field(min_length=1, max_length=40)]


def _one_kind(family: str | None, label: str | None, subject: str) -> None:
    if (family is None) == (label is None):
        raise ValueError(f"{subject} needs exactly one of family and label")


class Count(Config):
    """How many slots hold a family or a label; of identity, how many are skipped."""

    family: _Name | None = Field(None, description="all candidates of this family")
    label: _Name | None = Field(None, description="this candidate alone")
    at_least: int | None = Field(None, ge=0, le=512, description="slots; None: any")
    at_most: int | None = Field(None, ge=0, le=512, description="slots; None: any")

    @model_validator(mode="after")
    def _check(self) -> Self:
        _one_kind(self.family, self.label, "a count")
        if self.at_least is None and self.at_most is None:
            raise ValueError("a count needs at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"a count of at least {self.at_least} and at most {self.at_most} holds no number")
        return self


class Ratio(Config):
    """All blocks : blocks of one family, as p : 1; without any block of the family it is infinite."""

    family: _Name = Field(description="not identity, which is no block")
    at_least: float | None = Field(None, ge=1, le=512, description="p; None: any")
    at_most: float | None = Field(None, ge=1, le=512, description="p; needs a block of the family where any stands")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.family == "identity":
            raise ValueError("a ratio is of blocks, and a skipped slot is none; count identity instead")
        if self.at_least is None and self.at_most is None:
            raise ValueError("a ratio needs at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"a ratio of at least {self.at_least:g} and at most {self.at_most:g} holds no number")
        return self


class InSlots(Config):
    """Labels in a range of slots."""

    labels: tuple[_Name, ...] = Field(min_length=1, max_length=32, description="of candidates")
    first: int = Field(0, ge=0, lt=512, description="first slot of the range, from 0")
    last: int | None = Field(None, ge=0, lt=512, description="last slot of the range, itself in it; None: to the end")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.last is not None and self.last < self.first:
            told = f"slots {self.first + 1} to {self.last + 1}, counted from 1"
            raise ValueError(f"{told}, are none; last must not be below first")
        return self


class Cut(Config):
    """Where in the depth a family or a label stands: only before, or only from, a slot or a share of all slots.

    A share counts as that many whole slots, rounded down: before two thirds of 8 slots is before slot 5.
    """

    family: _Name | None = Field(None, description="all candidates of this family")
    label: _Name | None = Field(None, description="this candidate alone")
    before_slot: int | None = Field(None, ge=0, le=512, description="it stands in lower slots only")
    before_share: float | None = Field(None, ge=0, le=1, description="the same, as a share of the depth")
    from_slot: int | None = Field(None, ge=0, le=512, description="it stands in this slot and higher ones only")
    from_share: float | None = Field(None, ge=0, le=1, description="the same, as a share of the depth")

    @model_validator(mode="after")
    def _check(self) -> Self:
        _one_kind(self.family, self.label, "a cut")
        given = (self.before_slot, self.before_share, self.from_slot, self.from_share)
        if sum(each is not None for each in given) != 1:
            raise ValueError("a cut needs exactly one of before_slot, before_share, from_slot and from_share")
        return self


class Constraints(Config):
    """Any mix of constraints; all of them hold."""

    budget: Budget = Field(Budget(), description="bounds on latency, parameters, FLOPs and cache bytes")
    counts: tuple[Count, ...] = Field((), max_length=MAX_CONSTRAINTS, description="per family or label")
    ratios: tuple[Ratio, ...] = Field((), max_length=MAX_CONSTRAINTS, description="all blocks : those of a family")
    forbidden: tuple[InSlots, ...] = Field((), max_length=MAX_CONSTRAINTS, description="where labels may not stand")
    forced: tuple[InSlots, ...] = Field((), max_length=MAX_CONSTRAINTS, description="where one of them stands")
    cuts: tuple[Cut, ...] = Field((), max_length=MAX_CONSTRAINTS, description="where in the depth a family stands")
    mixers_apart: bool = Field(
        False, description="no mixer directly behind a mixer; a skipped slot between them does not part them"
    )
