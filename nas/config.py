"""The request of a search: body of the REST call, stored JSON, argument of the search, file beside the export.

Frozen and closed: an unknown field or a value out of range is refused where it enters. Fields are plain numbers;
what Optuna may vary stands apart in `ranges`, and `resolve` returns the same class with `ranges` empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from itertools import combinations, product
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator, model_validator

from nas import catalog, presets
from nas.errors import InvalidInput
from nas.options import BackboneConfig, NetworkConfig, Shape, SlotConfig
from nas.settled import settle
from nas.specs.probe import blame, reach
from nas.specs.tasks.base import TaskSpec
from nas.text import NAME

# Of a supernet. With gradients and AdamW's two moments in float32 they take 128 GiB, which no single GPU has to spare;
# a typing error of some zeros, or N x N weights at a great length, must be told before it takes a machine's memory.
MAX_PARAMETERS = 2**33


class _Config(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    pass


def one_line(error: ValidationError) -> str:
    """The first error of a request, with its place, on one line."""
    place = ".".join(str(part) for part in error.errors()[0]["loc"])
    return f"{place}: {_reason(error)}" if place else _reason(error)


def _reason(error: ValidationError) -> str:
    """The first error's message, to go on a line of ours."""
    message = error.errors()[0]["msg"].removeprefix("Value error, ")
    return message[0].lower() + message[1:]


def _read_options(options: type[Any], values: Mapping[str, Any], owner: str) -> Any:
    """Options as their own dataclass. Raises: InvalidInput: an unknown one, or a value that is not allowed."""
    known = [field.name for field in fields(options)]
    for name in values:
        if name not in known:
            raise InvalidInput(f"unknown option {name[:60]!r} of {owner}; known: {', '.join(sorted(known)) or 'none'}")
    try:
        return TypeAdapter(options).validate_python(values)
    except ValidationError as error:  # said in our words: pydantic's own location would lack "options"
        name = ".".join(str(part) for part in error.errors()[0]["loc"])
        subject = f"option {name!r}" if name else "options"
        raise InvalidInput(f"{subject} of {owner}: {_reason(error)}") from None


class Candidate(_Config):
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
            written_out = asdict(_read_options(spec.options, self.options, f"block {self.block!r}"))
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


class SearchSpace(_Config):
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
        where = self.backbone.position_embedding
        if self.memory_length and where != "none":
            raise ValueError(
                f"memory_length is {self.memory_length} with backbone.position_embedding {where!r}, which counts anew "
                "in each segment; it must be 'none' with memory"
            )
        return self

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


class ServeMode(_Config):
    """One way in which the model will be run; latency is measured and bounded there."""

    mode: Literal["prefill"] = Field("prefill", description="whole sequences at once")
    batch: int = Field(8, ge=1, le=4096, description="sequences per call")
    query_length: int = Field(128, ge=1, le=65536, description="tokens per sequence")
    memory_length: int = Field(0, ge=0, le=65536, description="earlier tokens that each slot has kept in memory")


class Tokenizer(_Config):
    """How text becomes token ids. A bare name in JSON means that type with defaults."""

    type: Literal["bytes", "characters", "words", "bpe", "file", "given"] = Field(
        "bytes",
        description="bytes: 256 values; characters and words: those of the training parts; bpe: byte-level pairs, "
        "learnt there; file: an uploaded tokenizer.json; given: the dataset is token ids already",
    )
    vocab_size: int | None = Field(
        None, ge=257, le=2**20, description="most entries of words and bpe; None: 8192 of bpe, all words"
    )
    min_count: int = Field(1, ge=1, le=10**6, description="words seldomer than this in training become <unk>")
    name: str | None = Field(None, pattern=NAME, description="of file: the uploaded tokenizer")
    fingerprint: str | None = Field(
        None, pattern=r"^[0-9a-f]{64}$", description="of file: sha256 of it; filled in when it is known"
    )

    @model_validator(mode="before")
    @classmethod
    def _expand_type(cls, value: Any) -> Any:
        return {"type": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.type == "file") != (self.name is not None):
            raise ValueError(f"type is {self.type!r} and name is {self.name!r}; file needs a name, others take none")
        if self.fingerprint is not None and self.type != "file":
            raise ValueError(f"fingerprint is of an uploaded tokenizer, and type is {self.type!r}; leave it out")
        if self.vocab_size is not None and self.type not in ("words", "bpe"):
            raise ValueError(
                f"vocab_size is {self.vocab_size} with type {self.type!r}; only words and bpe are cut to it"
            )
        if self.min_count > 1 and self.type != "words":
            raise ValueError(f"min_count is {self.min_count} with type {self.type!r}; only words are counted")
        return self


class DataSizes(_Config):
    """What a network and a figure need to know of the encoded data; filled in when it is known."""

    vocab_size: int = Field(ge=1, le=2**31, description="token ids of the tokenizer, without MASK")
    n_classes: int = Field(0, ge=0, le=65536, description="labels; 0 without")
    tokens_per_byte: float = Field(1.0, gt=0, description="of the test part")


class Task(_Config):
    """Data and objective, with the lengths the model is trained at and served at."""

    objective: Literal["causal_lm", "masked_lm", "sequence_classification", "token_classification"] = Field(
        "causal_lm",
        description="causal_lm: predict each next token; masked_lm: 15% of the tokens, from both sides; "
        "sequence_classification: the label of a document; token_classification: of each word or token",
    )
    dataset: str = Field("python-docs", pattern=NAME, description="registered name, or a synthetic task")
    dataset_fingerprint: str | None = Field(
        None, pattern=r"^[0-9a-f]{64}$", description="sha256 of the dataset; filled in when it is known"
    )
    dataset_options: dict[str, Any] = Field(
        default_factory=dict, description="of a synthetic task, defaults written out; empty for others"
    )
    tokenizer: Tokenizer = Field(Tokenizer(), description="a type's name, or {type, ...}")
    sizes: DataSizes | None = Field(None, description="filled in when the data are encoded")
    train_length: int = Field(128, ge=2, le=65536, description="tokens per training window, or segment with memory")
    serve: tuple[ServeMode, ...] = Field((ServeMode(),), min_length=1, max_length=8)

    @model_validator(mode="after")
    def _check(self) -> Self:
        spec = self.synthetic
        if spec is None:
            if self.dataset_options:
                raise ValueError(f"dataset {self.dataset!r} takes no options; only synthetic tasks do")
            return self
        if self.objective != spec.objective:
            raise ValueError(
                f"objective is {self.objective!r} but synthetic task {spec.name!r} is {spec.objective}; it must be that"
            )
        if self.tokenizer != Tokenizer():
            raise ValueError(f"synthetic task {spec.name!r} draws token ids itself; leave the tokenizer out")
        written_out = asdict(_read_options(spec.options, self.dataset_options, f"task {spec.name!r}"))
        self.dataset_options.clear()  # in place, as in Candidate
        self.dataset_options.update(written_out)
        try:
            self.synthetic_options().check(self.train_length)
        except ValueError as error:
            raise ValueError(f"synthetic task {spec.name!r}: {error}") from None
        return self

    @property
    def synthetic(self) -> TaskSpec | None:
        """The spec of the synthetic task that the dataset is, or None."""
        return catalog.TASKS.get(self.dataset)

    def synthetic_options(self) -> Any:
        """Its options as the task's own dataclass."""
        assert self.synthetic is not None
        return self.synthetic.options(**self.dataset_options)

    @property
    def classifies(self) -> bool:
        """Whether answers are labels, not tokens."""
        return self.objective in ("sequence_classification", "token_classification")

    @property
    def mask_id(self) -> int:
        """What stands for a hidden token in masked_lm: the id behind the tokenizer's."""
        return self.vocab_size - 1

    @property
    def vocab_size(self) -> int:
        """Token ids of the network: the tokenizer's, and one more behind them for MASK where it is needed.

        Before the data are encoded, as many as there may be where only the data tell.
        """
        return self._tokenizer_ids + (self.objective == "masked_lm")

    @property
    def _tokenizer_ids(self) -> int:
        if self.sizes is not None:
            return self.sizes.vocab_size
        if self.synthetic is not None:
            size: int = self.synthetic_options().vocab_size
            return size
        if self.tokenizer.type == "bytes":
            return 256
        return self.tokenizer.vocab_size or 8192

    @property
    def quality_unit(self) -> str:
        """What quality is told in. Tokens of a learnt vocabulary are no common measure, so bytes are."""
        if self.classifies:
            return "bits per answer" if self.synthetic is not None else "bits per label"
        unit = {"bytes": "byte", "characters": "character", "words": "word"}.get(self.tokenizer.type, "token")
        if self.objective == "masked_lm":
            return f"bits per masked {unit}"
        return "bits per byte" if self.tokenizer.type in ("bpe", "file") else f"bits per {unit}"

    @property
    def units_per_token(self) -> float:
        """By what nats per token are divided to be nats per unit of quality: bytes in a token of bpe, else 1."""
        if self.objective == "causal_lm" and self.tokenizer.type in ("bpe", "file") and self.sizes is not None:
            return 1 / self.sizes.tokens_per_byte
        return 1.0


class Method(_Config):
    """How the supernet is trained; `n_steps` counts weight updates."""

    alpha_estimator: Literal["soft", "straight_through", "single_path"] = "straight_through"
    n_steps: int = Field(1200, ge=1, le=10_000_000, description="weight updates")
    warmup_share: float = Field(0.33, ge=0, lt=1, description="share of n_steps with alpha frozen")
    alpha_share: float = Field(0.2, gt=0, le=0.5, description="share of alpha updates; 0.2: one to four of the weights")
    uniform_share: float = Field(0.5, ge=0, le=1, description="share of paths after warm-up drawn uniformly")
    batch_size: int = Field(8, ge=1, le=65536, description="windows per update")
    lr: float = Field(2e-3, gt=0, le=1, description="peak learning rate of the weights")
    lr_warmup_steps: int = Field(100, ge=0, description="linear rise of lr; then cosine to a tenth")
    weight_decay: float = Field(0.01, ge=0, le=1, description="decoupled, on matrices only")
    grad_clip: float = Field(1.0, gt=0, description="largest norm of the weights' gradient")
    alpha_lr: float = Field(2e-2, gt=0, le=1, description="learning rate of alpha")
    tau_start: float = Field(5.0, gt=0, le=100, description="temperature during warm-up")
    tau_end: float = Field(0.2, gt=0, le=100, description="temperature of the last step")
    cost_weight: float = Field(0.1, ge=0, le=100, description="nats per token of pressure when twice over the budget")
    report_every: int = Field(10, ge=1, description="weight updates between reports")
    checkpoint_every: int = Field(100, ge=1, description="weight updates between checkpoints")
    eval_windows: int = Field(32, ge=1, le=65536, description="validation windows of each report")
    max_minutes: float = Field(60, gt=0, le=60 * 24 * 30, description="wall time of one trial")
    random_signs: bool = Field(False, description="control run: flip the sign of each alpha gradient at random")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.tau_end > self.tau_start:
            raise ValueError(f"tau_end {self.tau_end} is above tau_start {self.tau_start}; temperature falls")
        return self


class LatencyBudget(_Config):
    """A bound on latency at the first serve mode: in milliseconds, or against the interleaved parent."""

    ms: float | None = Field(None, gt=0, description="milliseconds per call")
    ratio_to_parent: float | None = Field(None, gt=0, le=100, description="1.0 is the interleaved parent's latency")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.ms is None) == (self.ratio_to_parent is None):
            raise ValueError("a latency budget needs exactly one of ms and ratio_to_parent")
        return self


class Budget(_Config):
    latency: LatencyBudget | None = Field(None, description="None: no bound")


class Trials(_Config):
    """Seeds and samples of hyper-parameters; a sample's score is its mean over the seeds."""

    seed: int = Field(0, ge=0, lt=2**31, description="first seed; the others follow")
    n_seeds: int = Field(2, ge=1, le=64, description="independent searches per sample")
    n_samples: int = Field(1, ge=1, le=256, description="settings that Optuna draws from `ranges`")


class Range(_Config):
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


class Retrain(_Config):
    """One recipe for the derived architectures and the baselines, with the same seeds."""

    n_steps: int = Field(800, ge=1, le=10_000_000, description="weight updates of each retraining")
    n_seeds: int = Field(2, ge=1, le=64, description="seeds shared by all architectures")
    baselines: tuple[Literal["interleaved"], ...] = Field(("interleaved",), description="always trained beside")
    test_windows: int = Field(512, ge=8, le=65536, description="test windows that quality is reported on")


class Resources(_Config):
    """What one trial takes; Ray places by it. One CPU is one thread."""

    # Ray counts in ten-thousandths, and takes no part of a second GPU.
    cpus: float = Field(1, ge=0.0001, le=1024)
    gpus: float = Field(0, ge=0, le=64)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if 0 < self.gpus < 0.0001:
            raise ValueError(f"gpus is {self.gpus}; it must be 0, or at least 0.0001")
        if self.gpus > 1 and self.gpus % 1:
            raise ValueError(f"gpus is {self.gpus}; above 1 it must be a whole number")
        return self


class SearchRequest(_Config):
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
            bounded = self.space.bounded_by(serve.query_length, trained)
            if bounded is not None:
                raise ValueError(
                    f"query_length {serve.query_length} is longer than train_length {trained}, and {bounded}"
                )
            kept = self.space.shape().kept_tokens(training=False)
            if serve.memory_length > kept:
                raise ValueError(
                    f"memory_length of a serve mode is {serve.memory_length} but slots keep {kept} tokens in "
                    "evaluation; raise space.eval_memory_length"
                )
        self._check_objective()
        vocab_size = self.task.vocab_size
        self.network_config([self.space.labels[0]] * self.space.n_slots, vocab_size)  # refuses what it must
        families = {candidate.family for candidate in self.space.candidates}
        budget = self.budget.latency
        needs_parent = bool(self.retrain.baselines) or (budget is not None and budget.ratio_to_parent is not None)
        if needs_parent and not {"attention", "ffn"} <= families:
            raise ValueError(
                f"the interleaved parent needs candidates of families attention and ffn; the space has "
                f"{', '.join(sorted(families))}; without them set retrain.baselines to [] and the budget in ms"
            )
        if self.trials.n_samples > 1 and not self.ranges:
            raise ValueError(f"n_samples is {self.trials.n_samples} but ranges is empty; nothing would vary")
        last_seed = self.trials.seed + max(self.trials.n_seeds, self.retrain.n_seeds) - 1
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
        for one, other in combinations(self.ranges, 2):  # no check of `Method` looks at more than two fields
            for bounds in product((one.low, one.high), (other.low, other.high)):
                self.method_with({one.pointer: bounds[0], other.pointer: bounds[1]})
        return self

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
            raise ValueError(f"method cannot take {drawn}: {_reason(error)}") from None

    def resolve(self, sample: Mapping[str, float], seed: int) -> SearchRequest:
        """The request of one trial: the sample's values in place, one seed, `ranges` empty.

        Args:
            sample: values by JSON pointer, as Optuna drew them; empty when there are no ranges.
            seed: the trial's own seed.
        """
        return self.model_copy(
            update={
                "method": self.method_with(sample),
                "ranges": (),
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
