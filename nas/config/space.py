"""What may be built: slots, widths and the candidates of every slot."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from nas import catalog
from nas.config.base import Config, read_options
from nas.errors import InvalidInput
from nas.options import BackboneConfig, Shape
from nas.specs.probe import blame, reach

# Of a supernet. With gradients and AdamW's two moments in float32 they take 128 GiB, which no single GPU has to spare;
# a typing error of some zeros, or N x N weights at a great length, must be told before it takes a machine's memory.
MAX_PARAMETERS = 2**33


class Candidate(Config):
    """A block with its options under a label; a bare name in JSON means label = block, options at their defaults."""

    label: str = Field(pattern=r"^[a-z][a-z0-9_.-]{0,39}$", description="how architectures and tables name it")
    block: str = Field(max_length=40, description="registered block")
    options: dict[str, Any] = Field(default_factory=dict, description="the block's options, defaults written out")

    @model_validator(mode="before")
    @classmethod
    def _expand_name(cls, value: Any) -> Any:
        return {"label": value, "block": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _write_out_options(self) -> Self:
        spec = catalog.block(self.block)
        with blame(self.block, "take its options"):
            written_out = asdict(read_options(spec.options, self.options, f"block {self.block!r}"))
        self.options.clear()  # in place, and in the declared order: the instance is frozen, its dict is ours
        self.options.update(written_out)
        return self

    def built_options(self) -> Any:
        """The options as the block's own dataclass."""
        return catalog.block(self.block).options(**self.options)

    @property
    def family(self) -> str:
        return catalog.block(self.block).family

    @property
    def letter(self) -> str:
        return catalog.block(self.block).letter


class SlotChoice(Config):
    """What one slot may become, where a search starts from a model there is; a bare label in JSON: the present one."""

    present: str | None = Field(None, max_length=40, description="label that stands there now")
    fixed: bool = Field(False, description="the present one stays; nothing is searched here")
    forbidden: tuple[str, ...] = Field((), max_length=32, description="labels that may not stand here")

    @model_validator(mode="before")
    @classmethod
    def _expand_label(cls, value: Any) -> Any:
        return {"present": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.fixed and self.present is None:
            raise ValueError("a fixed slot needs a present label")
        if self.fixed and self.present in self.forbidden:
            raise ValueError(f"present label {self.present!r} is forbidden in its own slot, which is fixed")
        return self


class SearchSpace(Config):
    """What may be built: slots, widths and the candidates of every slot."""

    n_slots: int = Field(8, ge=1, le=512, description="depth L: mixed blocks in the supernet")
    d_model: int = Field(64, ge=4, le=16384, description="width D of the residual stream")
    n_heads: int = Field(4, ge=1, le=256, description="attention heads; each is d_model / n_heads wide")
    max_len: int = Field(128, ge=2, le=65536, description="longest sequence T, tokens")
    causal: bool = Field(True, description="decoder: a token sees only earlier ones; false: encoder")
    positions: Literal["rotary", "none", "relative_bias", "transformer_xl"] = Field(
        "rotary", description="positions inside attention; MGK knows rotary and none, and takes rotary for the others"
    )
    norm: Literal["layer", "rms"] = Field("layer", description="LayerNorm or RMSNorm")
    norm_position: Literal["pre", "post"] = Field(
        "pre", description="pre: one norm before the candidates of a slot; post: each candidate its own, behind the sum"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="of what a block adds, and of hidden activations")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="of attention probabilities")
    memory_length: int = Field(0, ge=0, le=65536, description="earlier tokens that each slot keeps between segments")
    eval_memory_length: int | None = Field(
        None, ge=1, le=65536, description="the same in evaluation and where the model is served; None: as in training"
    )
    clamp_len: int | None = Field(
        None, ge=1, le=65536, description="largest distance of transformer_xl positions in evaluation; None: all"
    )
    same_length: bool = Field(False, description="in evaluation every query sees one key more than memory holds")
    backbone: BackboneConfig = Field(BackboneConfig(), description="embeddings and head, which are not searched")
    candidates: tuple[Candidate, ...] = Field(
        tuple(Candidate(label=name, block=name) for name in ("attention", "ffn", "identity", "sgu", "mgk")),
        max_length=32,
        description="what each slot chooses from; a name, or {label, block, options}",
        # Checked below: as min_length it would also be reported beside every error inside a candidate.
        json_schema_extra={"minItems": 1},
    )

    layout: tuple[SlotChoice, ...] = Field(
        (), max_length=512, description="of each slot: its present label and what is forbidden; empty: all are free"
    )
    layout_prior: float = Field(
        1.0, ge=0, le=5, description="nats by which a slot's present label leads when the search begins"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.candidates:
            raise ValueError("candidates is empty; a slot needs at least one")
        shape = self.shape()
        for candidate in self.candidates:
            options = candidate.built_options()
            if not hasattr(options, "check"):  # a plug-in's may have nothing that depends on the shape
                continue
            with blame(candidate.block, f"be checked as candidate {candidate.label!r}"):
                try:
                    options.check(shape)
                except ValueError as error:
                    raise InvalidInput(f"candidate {candidate.label!r}: {error}") from None
        labels = self.labels
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"label {label!r} stands for two candidates; labels must differ")
        counts = self.parameters()
        total = self.n_slots * sum(counts.values())
        if total > MAX_PARAMETERS:
            largest = max(counts, key=lambda label: counts[label])
            raise ValueError(
                f"the supernet has {total / 1e9:,.1f} billion parameters, which take {16 * total / 1e9:,.0f} GB with "
                f"gradients and moments; it may have {MAX_PARAMETERS / 1e9:.1f} billion. Candidate {largest!r} has the "
                f"most, {counts[largest] / 1e9:,.1f} billion in each of {self.n_slots} slots"
            )
        self._check_layout()
        where = self.backbone.position_embedding
        if self.memory_length and where != "none":
            raise ValueError(
                f"memory_length is {self.memory_length} with backbone.position_embedding {where!r}, which counts anew "
                "in each segment; it must be 'none' with memory"
            )
        return self

    def _check_layout(self) -> None:
        if self.layout and len(self.layout) != self.n_slots:
            raise ValueError(
                f"layout has {len(self.layout)} entries and n_slots is {self.n_slots}; it needs one for each slot"
            )
        for number, choice in enumerate(self.layout):
            for label in (*choice.forbidden, *([] if choice.present is None else [choice.present])):
                if label not in self.labels:
                    raise ValueError(
                        f"layout names label {label!r} in slot {number + 1}; the space has {', '.join(self.labels)}"
                    )
            if not any(self.allowed[number]):
                raise ValueError(f"layout forbids every label in slot {number + 1}; one must be left")

    @property
    def allowed(self) -> list[list[bool]]:
        """(L, K): whether a candidate may stand in a slot."""
        if not self.layout:
            return [[True] * len(self.candidates) for _ in range(self.n_slots)]
        return [
            [label == choice.present if choice.fixed else label not in choice.forbidden for label in self.labels]
            for choice in self.layout
        ]

    @property
    def n_free(self) -> int:
        """Slots in which there is anything to choose."""
        return sum(sum(row) > 1 for row in self.allowed)

    @property
    def present(self) -> tuple[str, ...] | None:
        """(L,) labels of the model there is; None where the layout does not name each of them."""
        labels = tuple(choice.present for choice in self.layout if choice.present is not None)
        return labels if self.layout and len(labels) == self.n_slots else None

    def bounded_by(self, tokens: int, trained: int) -> str | None:
        """What keeps inputs of this many tokens out after training with `trained`, as the end of a sentence; or None.

        Weights or positions that are one for each place of the input have learnt nothing beyond what was trained.
        """
        if tokens <= trained:
            return None
        if self.backbone.position_embedding == "learned":
            return "backbone.position_embedding is 'learned', which learns nothing there"
        for candidate in self.candidates:
            told = reach(catalog.block(candidate.block), self.shape(), candidate.built_options())
            if told.longest is None:
                continue
            if tokens > told.longest:
                return f"candidate {candidate.label!r} cannot run there: {told.why}"
            return f"candidate {candidate.label!r} has weights for each position, which learn nothing there"
        return None

    def parameters(self) -> dict[str, int]:
        """Parameters of one slot's block, by label of the candidate; of a class in Python not counted, as 0."""
        shape, counts = self.shape(), {}
        for candidate in self.candidates:
            spec = catalog.block(candidate.block)
            with blame(spec.name, "count its parameters"):
                counts[candidate.label] = 0 if spec.own else spec.parameters(shape, candidate.built_options())
        return counts

    @property
    def labels(self) -> list[str]:
        return [candidate.label for candidate in self.candidates]

    def shape(self) -> Shape:
        return Shape(**{field.name: getattr(self, field.name) for field in fields(Shape)})

    def candidate(self, label: str) -> Candidate:
        """Raises: InvalidInput: no candidate has this label."""
        for candidate in self.candidates:
            if candidate.label == label:
                return candidate
        raise InvalidInput(f"unknown label {label!r}; the space has {', '.join(self.labels)}")
