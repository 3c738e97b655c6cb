"""The request, whole: what was asked, and what is filled in once it is known.

It is the body of the REST call, the stored JSON, the argument of the search and the file beside the export. It is
frozen and closed, as its parts are: an unknown field or a value out of range is refused where it enters. Fields are
plain numbers; what Optuna may vary stands apart in `ranges`, and `resolve` returns the same class with `ranges` empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from nas import presets
from nas.config.base import Config, one_line, reason
from nas.config.budget import Budget
from nas.config.method import Method
from nas.config.retrain import Retrain as Retrain
from nas.config.retrain import check_baselines
from nas.config.space import SearchSpace
from nas.config.task import DataSizes, Task
from nas.errors import InvalidInput
from nas.options import NetworkConfig, SlotConfig
from nas.settled import settle


class Trials(Config):
    """Seeds and samples of hyper-parameters; a sample's score is its mean over the seeds."""

    seed: int = Field(0, ge=0, lt=2**31, description="first seed; the others follow")
    n_seeds: int = Field(2, ge=1, le=64, description="independent searches per sample")
    n_samples: int = Field(1, ge=1, le=256, description="settings that Optuna draws from `ranges`")
    pruner: Literal["asha", "none"] = Field(
        "asha", description="asha: samples that are behind at a third of their steps, all seeds taken, end there"
    )


class Range(Config):
    """A field of `method` that Optuna may vary."""

    pointer: str = Field(pattern=r"^/method/[a-z_]+$", description="JSON pointer, such as /method/lr")
    low: float
    high: float
    log: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"range of {self.pointer} has low {self.low} and high {self.high}; low must be smaller")
        if self.log and self.low <= 0:
            raise ValueError(f"range of {self.pointer} is logarithmic from {self.low}; low must be positive")
        return self

    def whole(self, method: Method) -> bool:
        """Whether the field takes whole numbers only; then those between the bounds are drawn."""
        return isinstance(getattr(method, self.pointer.removeprefix("/method/")), int)


class Resources(Config):
    """What one trial takes; Ray places by it. One CPU is one thread."""

    # Ray counts in ten-thousandths, and takes no part of a second GPU.
    cpus: float = Field(1, ge=0.0001, le=1024)
    gpus: float = Field(0, ge=0, le=64)  # of one machine; above 1 each batch is shared out over them (nas.ranks)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if 0 < self.gpus < 0.0001:
            raise ValueError(f"gpus is {self.gpus}; it must be 0, or at least 0.0001")
        if self.gpus > 1 and self.gpus % 1:
            raise ValueError(f"gpus is {self.gpus}; above 1 it must be a whole number")
        return self

    @property
    def n_ranks(self) -> int:
        """Processes of a trial: one for each GPU, and one where there is none or a part of one."""
        return max(1, int(self.gpus))


class SearchRequest(Config):
    """A search, whole."""

    format_version: Literal[1] = 1
    name: str = Field(
        "search",
        min_length=1,
        max_length=120,
        pattern=r"^[^\x00-\x1f\x7f-\x9f]+$",  # it is printed on terminals, which take orders in control characters
        description="for people",
    )
    preset: str | None = Field(
        None,
        max_length=40,
        description="whole request that this one changes: what is given here stands, of objects part by part",
        json_schema_extra={"enum": [*presets.PRESETS, None]},
    )
    space: SearchSpace = SearchSpace.model_validate(presets.PRESETS[presets.DEFAULT]["space"])
    task: Task = Task()
    method: Method = Method()
    budget: Budget = Budget()
    trials: Trials = Trials()
    ranges: tuple[Range, ...] = Field((), max_length=16, description="what Optuna varies; none: no searcher")
    retrain: Retrain = Retrain()
    resources: Resources = Resources()
    latency_table: str | None = Field(
        None, pattern=r"^[0-9a-f]{32}$", description="id of the table to use; None: measure or reuse"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, value: Any) -> Any:
        return settle(presets.expand(value)) if isinstance(value, Mapping) else value

    @field_validator("preset")
    @classmethod
    def _check_preset(cls, name: str | None) -> str | None:
        if name is not None and name not in presets.PRESETS:
            raise ValueError(presets.refusal(name))
        return name

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.task.train_length > self.space.max_len:
            raise ValueError(f"train_length {self.task.train_length} is longer than max_len {self.space.max_len}")
        for serve in self.task.serve:
            trained = self.task.train_length
            decodes = serve.mode == "decode"
            bounded = self.space.bounded_by(serve.query_length + decodes, trained)
            if bounded is not None:
                more = ", with the token that is decoded," if decodes else ""
                raise ValueError(
                    f"query_length {serve.query_length}{more} is longer than train_length {trained}, and {bounded}"
                )
            if decodes:
                self._check_decodes("serve mode 'decode'")
            if decodes and serve.memory_length:
                raise ValueError(
                    f"memory_length of serve mode 'decode' is {serve.memory_length}, but its cache holds all that was "
                    "read; count it in query_length, and leave memory_length 0"
                )
            kept = self.space.shape().kept_tokens(training=False)
            if serve.memory_length > kept:
                raise ValueError(
                    f"memory_length of a serve mode is {serve.memory_length} but slots keep {kept} tokens in "
                    "evaluation; raise space.eval_memory_length"
                )
        if self.budget.cache_bytes is not None:
            self._check_decodes("budget.cache_bytes")
        self._check_objective()
        vocab_size = self.task.vocab_size
        self.network_config([self.space.labels[0]] * self.space.n_slots, vocab_size)  # refuses what it must
        families = {candidate.family for candidate in self.space.candidates}
        asked = (self.budget.latency, self.budget.parameters, self.budget.flops, self.budget.cache_bytes)
        needs_parent = "interleaved" in self.retrain.baselines or any(
            bound is not None and bound.ratio_to_parent is not None for bound in asked
        )
        if needs_parent and not {"attention", "ffn"} <= families:
            raise ValueError(
                f"the interleaved parent needs candidates of families attention and ffn; the space has "
                f"{', '.join(sorted(families))}; without them set retrain.baselines to [], and bounds of the budget in "
                "numbers, not as ratios"
            )
        check_baselines(self.retrain, self.space)
        if self.trials.n_samples > 1 and not self.ranges:
            raise ValueError(f"n_samples is {self.trials.n_samples} but ranges is empty; nothing would vary")
        last_seed = self.trials.seed + max(self.trials.n_seeds, self.retrain.n_seeds) + self.retrain.confirm_seeds - 1
        if last_seed >= 2**31:
            raise ValueError(
                f"the last seed is {last_seed}; it must be below 2^31, so begin with a smaller trials.seed"
            )
        pointers = [varied.pointer for varied in self.ranges]
        for varied in self.ranges:
            if pointers.count(varied.pointer) > 1:
                raise ValueError(f"{varied.pointer} stands twice in ranges")
            for bound in (varied.low, varied.high):
                self.method_with({varied.pointer: bound})
            if varied.whole(self.method) and math.ceil(varied.low) > math.floor(varied.high):
                raise ValueError(
                    f"range of {varied.pointer} from {varied.low} to {varied.high} holds no whole number, and it "
                    "takes no other"
                )
        for one, other in combinations(self.ranges, 2):  # no check of `Method` looks at more than two fields
            for bounds in product((one.low, one.high), (other.low, other.high)):
                self.method_with({one.pointer: bounds[0], other.pointer: bounds[1]})
        self._check_rows()
        self._check_lrs()
        return self

    def _check_lrs(self) -> None:
        highest = max([self.method.lr, *(varied.high for varied in self.ranges if varied.pointer == "/method/lr")])
        for factor in self.retrain.lrs:
            if not 0 < highest * factor <= 1:
                raise ValueError(
                    f"retrain.lrs has {factor:g}, which makes a learning rate of {highest * factor:g} of {highest:g}; "
                    "it must be above 0, and at most 1"
                )

    def _check_rows(self) -> None:
        lows = {varied.pointer: varied.low for varied in self.ranges}
        least = min(self.method.batch_size, round(lows.get("/method/batch_size", self.method.batch_size)))
        if least < self.resources.n_ranks:
            raise ValueError(
                f"resources.gpus is {self.resources.gpus:g} but batch_size may be {least}; each GPU takes rows of "
                f"every batch, so batch_size must be at least {self.resources.n_ranks}"
            )

    @property
    def decodes(self) -> bool:
        """Whether the networks are decoders that predict tokens one by one."""
        return self.space.causal and not self.task.classifies

    def _check_decodes(self, subject: str) -> None:
        if not self.decodes:
            kind = "an encoder" if not self.space.causal else "a classifier"
            raise ValueError(
                f"{subject} is of decoders that predict tokens one by one, and this is {kind}; leave it out"
            )

    def _check_objective(self) -> None:
        task, space, backbone = self.task, self.space, self.space.backbone
        causal = {"causal_lm": True, "masked_lm": False}.get(task.objective)
        if task.synthetic is not None:
            causal = task.synthetic.causal
        if causal is not None and space.causal != causal:
            subject = f"task.dataset is {task.dataset!r}" if task.synthetic else f"task.objective is {task.objective!r}"
            raise ValueError(
                f"{subject} but space.causal is {str(space.causal).lower()}; it must be {str(causal).lower()}"
            )
        if not task.classifies:
            if backbone.n_classes:
                raise ValueError(
                    f"space.backbone.n_classes is {backbone.n_classes} but task.objective is {task.objective!r}, which "
                    "predicts tokens; it must be 0"
                )
            return
        if space.memory_length:
            raise ValueError(
                f"memory_length is {space.memory_length} but task.objective is {task.objective!r}, whose examples "
                "stand alone; it must be 0"
            )
        subject = f"task.objective is {task.objective!r}"
        if task.objective == "token_classification":
            allowed: tuple[str, ...] = ("none",)
        elif space.causal:
            subject, allowed = f"{subject} in a decoder, whose first token sees no other", ("mean",)
        else:
            allowed = ("mean", "first")
        if task.synthetic is not None and task.synthetic.unrolled:
            subject, allowed = f"task.dataset is {task.dataset!r}", ("unroll",)
        if backbone.pooling not in allowed:
            raise ValueError(
                f"space.backbone.pooling is {backbone.pooling!r} but {subject}; it must be "
                f"{' or '.join(map(repr, allowed))}"
            )

    def in_passes(self, rows: int | None) -> SearchRequest:
        """The request with so many windows a forward pass; None: a batch at once."""
        return self.model_copy(update={"method": self.method.model_copy(update={"micro_batch": rows})})

    def with_data(self, fingerprint: str, sizes: DataSizes) -> SearchRequest:
        """The request with what is known once its data are: their fingerprint, vocabulary and classes.

        Raises:
            InvalidInput: it names other ones.
        """
        named = self.space.backbone.n_classes
        if self.task.classifies and not sizes.n_classes:
            raise InvalidInput(
                f"task.objective is {self.task.objective!r} but dataset {self.task.dataset!r} has no such labels; "
                "add it again and say which field holds them"
            )
        if named and named != sizes.n_classes:
            raise InvalidInput(
                f"space.backbone.n_classes is {named} but dataset {self.task.dataset!r} has {sizes.n_classes} labels; "
                "leave it 0 to have it filled in"
            )
        body = self.model_dump(mode="json")
        body["task"] |= {"dataset_fingerprint": fingerprint, "sizes": sizes.model_dump(mode="json")}
        body["space"]["backbone"]["n_classes"] = sizes.n_classes if self.task.classifies else 0
        return read_request(body)  # refuses what does not fit the vocabulary

    def method_with(self, sample: Mapping[str, float]) -> Method:
        """The method with a sample's values put in; whole numbers where the field is one.

        Raises:
            ValueError: a pointer names no number of `method`, or a value is out of its range.
        """
        values = self.method.model_dump()
        for pointer, value in sample.items():
            name = pointer.removeprefix("/method/")
            if isinstance(values.get(name), bool) or not isinstance(values.get(name), int | float):
                raise ValueError(f"{pointer} names no number that may vary")
            values[name] = round(value) if isinstance(values[name], int) else value
        try:
            return Method.model_validate(values)
        except ValidationError as error:  # of another model: its location would mislead beside this one's
            drawn = ", ".join(f"{pointer} = {value}" for pointer, value in sample.items())
            raise ValueError(f"method cannot take {drawn}: {reason(error)}") from None

    def resolve(self, sample: Mapping[str, float], seed: int) -> SearchRequest:
        """The request of one trial: the sample's values in place, one seed, `ranges` and `retrain.lrs` empty.

        Args:
            sample: values by JSON pointer, as Optuna drew them; empty when there are no ranges.
            seed: the trial's own seed.
        """
        return self.model_copy(
            update={
                "method": self.method_with(sample),
                "ranges": (),
                "retrain": self.retrain.model_copy(update={"lrs": ()}),
                "trials": Trials(seed=seed, n_seeds=1, n_samples=1),
            }
        )

    def network_config(self, labels: Sequence[str], vocab_size: int) -> NetworkConfig:
        """The concrete network with these candidate labels, slot by slot."""
        chosen = [self.space.candidate(labels[slot]) for slot in range(self.space.n_slots)]
        slots = tuple(SlotConfig(candidate.block, candidate.options) for candidate in chosen)
        space = self.space
        return NetworkConfig(space.shape(), vocab_size, slots, space.norm, space.norm_position, space.backbone)


def read_request(body: Any) -> SearchRequest:
    """A request from its JSON; of what is wrong with it, the first is told in one line.

    Raises:
        InvalidInput: it is none, or names a block that is not installed here.
    """
    try:
        return SearchRequest.model_validate(body)
    except ValidationError as error:
        raise InvalidInput(one_line(error)) from None
