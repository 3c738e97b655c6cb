"""What an architecture costs: parameters and FLOPs by formula, latency by a measured table.

A table holds one median per candidate at one serve mode on one device. Its model is additive:
latency = offset + scale * sum of the slots' entries, with scale and offset fitted on whole networks and the error
kept beside (FBNet's table, with the check that par-search.md section 4.1 asks for). L slots, K candidates.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator

from nas import catalog
from nas.architecture import Architecture
from nas.config.space import Candidate, SearchSpace
from nas.config.task import ServeMode
from nas.errors import InvalidInput

# Tables are brought from elsewhere: their texts are shown on terminals, and their numbers are added up.
_Text = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MOST_MS = 1e9
_MOST_ERROR = 1e6  # relative


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(name)
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def entry_key(candidate: Candidate, space: SearchSpace, serve: ServeMode) -> str:
    """What a measured entry belongs to: (block, options, Shape, norm, serve mode), whatever the request's label."""
    norm = [space.norm, space.norm_position]
    parts = [candidate.block, candidate.options, vars(space.shape()), norm, serve.model_dump()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class LatencyEntry(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """One block as its slot runs it, norm and residual included: milliseconds per call."""

    block: _Text = Field(max_length=40)
    options: dict[str, Any] = Field(max_length=64)
    median_ms: float = Field(ge=0, le=_MOST_MS)
    iqr_ms: float = Field(ge=0, le=_MOST_MS)
    n_runs: int = Field(ge=0, lt=2**31)

    @field_validator("options")
    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        """A block of one's own may have lists among them, so texts are looked for in all of it."""
        for text in _texts(options):
            if _CONTROL.search(text):
                raise ValueError(f"an option has {text[:40]!r}, with control characters; leave them out")
        return options


class LatencyTable(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Measured once, then an input of the search: the same table gives the same bits."""

    format_version: Literal[1] = 1
    device: dict[_Text, _Text] = Field(
        max_length=32, description="processor, threads, dtype and software that it holds for"
    )
    serve: ServeMode
    entries: dict[_Text, LatencyEntry] = Field(max_length=256, description="by entry_key")
    offset_ms: float = Field(ge=0, le=_MOST_MS, description="fitted: everything that is not searched")
    scale: float = Field(gt=0, le=1e6, description="fitted: slots in a network against slots alone")
    error_median: float = Field(
        ge=0, le=_MOST_ERROR, description="relative error of the additive model on whole networks"
    )
    error_p95: float = Field(ge=0, le=_MOST_ERROR)
    n_networks: int = Field(ge=0, lt=2**31, description="random networks behind the fit and its error")

    @property
    def id(self) -> str:
        """Content address: equal tables have equal ids."""
        return hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()[:32]

    def check(self, space: SearchSpace, serve: ServeMode) -> None:
        """Whether a search of this space, served so first, can use the table.

        Raises:
            InvalidInput: it is of another serve mode, or a candidate was not measured at this shape.
        """
        if self.serve != serve:
            raise InvalidInput(
                f"latency table {self.id} holds for {_words(self.serve)}; the request serves {_words(serve)} first"
            )
        self.slot_ms(space)

    def slot_ms(self, space: SearchSpace) -> list[float]:
        """What each candidate adds to a network, in the order of the space: (K,) milliseconds.

        Raises:
            InvalidInput: a candidate was not measured at this shape.
        """
        costs = []
        for candidate in space.candidates:
            entry = self.entries.get(entry_key(candidate, space, self.serve))
            if entry is None:
                raise InvalidInput(f"the latency table has no entry for candidate {candidate.label!r} at this shape")
            costs.append(self.scale * entry.median_ms)
        return costs

    def predict_ms(self, architecture: Architecture, space: SearchSpace) -> float:
        """offset + the sum over slots, milliseconds."""
        costs = dict(zip(space.labels, self.slot_ms(space), strict=True))
        return self.offset_ms + sum(costs[label] for label in architecture.labels)


def _words(serve: ServeMode) -> str:
    memory = f" behind {serve.memory_length} in memory" if serve.memory_length else ""
    return f"{serve.mode} of {serve.batch} x {serve.query_length} tokens{memory}"


def expected(weights: Any, slot_costs: Any, offset: float) -> Any:
    """Expected cost under per-slot weights: offset + sum_i sum_b weights[i, b] * slot_costs[b].

    Linear in the weights, so differentiable: d/dweights[i, b] = slot_costs[b] (par-search.md section 4.1).

    Args:
        weights: (L, K) tensor or array, rows on the simplex.
        slot_costs: (K,) of the same kind.
        offset: cost of all that is not searched.
    """
    return offset + (weights * slot_costs).sum()


def fbnet_loss(loss: Any, latency: Any, *, cost_scale: float = 0.2, cost_power: float = 0.6) -> Any:
    """FBNet's product of loss and latency: loss * cost_scale * (log latency)^cost_power (par-search.md section 4.2).

    Not a default: value and gradient depend on the unit of the latency. At one unit and below, latency is held
    just above it, where the power is finite and latency has no gradient.

    Args:
        loss: nats per token, a tensor.
        latency: in a unit that it is larger than 1 of, a tensor.
    """
    return loss * cost_scale * latency.clamp_min(1 + 1e-6).log() ** cost_power


def parameters(architecture: Architecture, space: SearchSpace) -> int:
    """Parameters of the slots' blocks and their norms; embedding, last norm and head are not counted."""
    shape = space.shape()
    total = 0
    for label in architecture.labels:
        candidate = space.candidate(label)
        spec = catalog.block(candidate.block)
        total += norm_parameters(spec.family, space) + spec.parameters(shape, spec.options(**candidate.options))
    return total


def norm_parameters(family: str, space: SearchSpace) -> int:
    """Parameters of a slot's norm beside a block of this family; identity has none."""
    return 0 if family == "identity" else (2 if space.norm == "layer" else 1) * space.d_model


def flops(labels: Sequence[str], space: SearchSpace, tokens: int, memory: int = 0) -> int:
    """Floating-point operations of the slots' blocks for one sequence, 2 per multiply-add.

    Args:
        labels: of the slots.
        space: which they are of.
        tokens: T that are read.
        memory: earlier tokens that attention sees beside them.
    """
    shape = space.shape()
    chosen = [space.candidate(label) for label in labels]
    return sum(catalog.block(each.block).flops(shape, each.built_options(), tokens, memory) for each in chosen)
