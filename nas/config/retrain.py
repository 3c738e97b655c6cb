"""How the derived architectures and their baselines are trained, and what they are held against."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from nas.config.base import Config
from nas.config.space import SearchSpace

FEWEST = 3  # seeds, and random placements: with two, a t interval is too wide to tell anything

Baseline = Literal["interleaved", "present", "sandwich", "par", "random", "all-ffn", "all-attention"]

PAR_RATIO = 5  # all blocks : attention blocks, the best one of Mandava et al. 2020 (arXiv:2009.04534)
_FAMILIES: dict[str, tuple[str, ...]] = {  # that a baseline is built of; interleaved is checked with the budget
    "sandwich": ("attention", "ffn"),
    "par": ("attention", "ffn"),
    "all-ffn": ("ffn",),
    "all-attention": ("attention",),
}


class Distil(Config):
    """Learning from a teacher beside the targets: the parent, trained first, with the same seed and without one."""

    weight: float = Field(
        0.5, gt=0, le=1, description="share of the loss that is the teacher's; the data's is the rest"
    )
    temperature: float = Field(2.0, gt=0, le=100, description="that both models' logits are divided by")


class Retrain(Config):
    """One recipe for the derived architectures and the baselines, with the same seeds."""

    n_steps: int = Field(800, ge=1, le=10_000_000, description="weight updates of each retraining")
    n_seeds: int = Field(2, ge=1, le=64, description="seeds shared by all architectures")
    baselines: tuple[Baseline, ...] = Field(
        ("interleaved",),
        description="always trained beside; present: the labels of space.layout, and what the derived one is held "
        "against, in the place of the interleaved parent; random: stacks of the derived one's predicted latency",
    )
    k_best: int = Field(
        1,
        ge=1,
        le=16,
        description="architectures of each seed within the budget: the derived one, then those that did best by "
        "shared weights",
    )
    n_random: int = Field(2, ge=1, le=64, description="stacks that the baseline `random` draws")
    lrs: tuple[float, ...] = Field(
        (),
        max_length=8,
        description="factors of method.lr: each architecture takes the one that validates best with the first "
        "lr_seeds; empty: method.lr as it is",
    )
    lr_seeds: int = Field(
        1, ge=1, le=64, description="seeds that choose among lrs, all that there are at most; one can choose wrongly"
    )
    start: Literal["scratch", "supernet"] = Field(
        "scratch",
        description="supernet: every architecture begins with the weights that the search trained for its blocks, "
        "which has trained those of the derived one most",
    )
    distil: Distil | None = Field(
        None, description="every architecture, the parent too, learns from the parent; null: from the data alone"
    )
    confirm_seeds: int = Field(
        0,
        ge=0,
        le=64,
        description="fresh seeds on which the layout of what the rules say is trained against random placements of its "
        "blocks and the interleaved parent; 0: rules stay suggested",
    )
    confirm_placements: int = Field(
        5,
        ge=FEWEST,
        le=64,
        description="random placements of its blocks at most; where many of them do as well, it takes more to tell",
    )
    test_windows: int = Field(512, ge=8, le=65536, description="test windows that quality is reported on")

    @field_validator("baselines")
    @classmethod
    def _check_names(cls, names: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"baselines has {name!r} {names.count(name)} times; once is enough")
        return names

    @field_validator("lrs")
    @classmethod
    def _check_lrs(cls, factors: tuple[float, ...]) -> tuple[float, ...]:
        for factor in factors:
            if factor <= 0:
                raise ValueError(f"lrs has {factor:g}; a factor of method.lr must be above 0")
        if len(set(factors)) < len(factors):
            raise ValueError(f"lrs {list(factors)} has a factor twice")
        return factors

    @field_validator("confirm_seeds")
    @classmethod
    def _check_confirm_seeds(cls, n_seeds: int) -> int:
        if 0 < n_seeds < FEWEST:
            raise ValueError(f"confirm_seeds is {n_seeds}; it must be 0, or {FEWEST} at least for an interval")
        return n_seeds

    @model_validator(mode="after")
    def _check_fresh(self) -> Self:
        """Weights of the search would favour the places that its rules are about, so that no seed would be fresh."""
        if self.confirm_seeds and self.start == "supernet":
            raise ValueError(
                f"confirm_seeds is {self.confirm_seeds} and start is 'supernet'; weights of the search favour what it "
                "found, so rules are confirmed from 'scratch' alone: give that start, or 0 confirm_seeds"
            )
        return self

    @property
    def all_at_once(self) -> bool:
        """Whether all trainings are known when the first begins: no choice hangs on the outcome of one."""
        return len(self.lrs) < 2 and "random" not in self.baselines and self.distil is None and not self.confirm_seeds

    @property
    def fixed_baselines(self) -> tuple[Baseline, ...]:
        """Those that are one layout whatever is derived, without the interleaved parent."""
        return tuple(each for each in self.baselines if each not in ("interleaved", "random"))

    def most_trials(self, n_derived: int) -> int:
        """Trainings, supposing that all architectures differ.

        Args:
            n_derived: seeds, each of which derives `k_best`.
        """
        others = [each for each in self.baselines if each != "random"]
        n_layouts = n_derived * self.k_best + len(others) + ("random" in self.baselines) * self.n_random
        n_layouts += self.distil is not None  # the teacher
        lost = max(0, len(self.lrs) - 1)
        grid, fresh_grid = (lost * min(self.lr_seeds, n_seeds) for n_seeds in (self.n_seeds, self.confirm_seeds))
        n_confirming = self.confirm_placements + 2 + len(self.fixed_baselines)
        n_confirming += self.distil is not None  # fresh seeds have teachers of their own
        confirming = n_confirming * (self.confirm_seeds + fresh_grid) if self.confirm_seeds else 0
        return n_layouts * (self.n_seeds + grid) + confirming


def check_baselines(retrain: Retrain, space: SearchSpace) -> None:
    """Raises: ValueError: the space cannot build a baseline, or nothing teaches."""
    families = {candidate.family for candidate in space.candidates}
    for name in retrain.baselines:
        missing = [family for family in _FAMILIES.get(name, ()) if family not in families]
        if missing:
            raise ValueError(
                f"retrain.baselines has {name!r}, which needs candidates of family {' and '.join(_FAMILIES[name])}; "
                f"the space has {', '.join(sorted(families))}"
            )
    depth = space.n_slots
    if "sandwich" in retrain.baselines and (depth % 2 or depth < 4):
        raise ValueError(
            f"retrain.baselines has 'sandwich' but space.n_slots is {depth}; a sandwich has as many attention as ffn "
            "blocks, and below 4 slots it is the interleaved parent: give an even number from 4 on, or leave it out"
        )
    if "par" in retrain.baselines and depth < PAR_RATIO:
        raise ValueError(
            f"retrain.baselines has 'par' but space.n_slots is {depth}; at its ratio of {PAR_RATIO} : 1 there is no "
            f"attention below {PAR_RATIO} slots, so give as many, or leave it out"
        )
    if "present" in retrain.baselines and space.present is None:
        raise ValueError(
            "retrain.baselines has 'present' but space.layout does not say what stands in each slot; give every "
            "slot its present label, or leave 'present' out"
        )
    if retrain.distil is not None and not {"interleaved", "present"} & {*retrain.baselines}:
        raise ValueError(
            "retrain.distil is given but no parent is trained that could teach; put 'interleaved' or 'present' into "
            "retrain.baselines"
        )
