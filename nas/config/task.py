"""Data and objective, with the lengths the model is trained at and served at."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from nas import catalog
from nas.config.base import Config, read_options
from nas.specs.tasks.base import TaskSpec
from nas.text import NAME


class ServeMode(Config):
    """One way in which the model will be run; latency is measured and bounded there."""

    mode: Literal["prefill", "decode", "training"] = Field(
        "prefill",
        description="prefill: whole sequences at once; decode: one token more, behind query_length that were read; "
        "training: forward and backward",
    )
    batch: int = Field(8, ge=1, le=4096, description="sequences per call")
    query_length: int = Field(128, ge=1, le=65536, description="tokens per sequence")
    memory_length: int = Field(0, ge=0, le=65536, description="earlier tokens that each slot has kept in memory")


class Tokenizer(Config):
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


class DataSizes(Config):
    """What a network and a figure need to know of the encoded data; filled in when it is known."""

    vocab_size: int = Field(ge=1, le=2**31, description="token ids of the tokenizer, without MASK")
    n_classes: int = Field(0, ge=0, le=65536, description="labels; 0 without")
    tokens_per_byte: float = Field(1.0, gt=0, description="of the test part")


class Task(Config):
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
    serve_lengths: tuple[int, ...] | None = Field(
        None,
        max_length=16,
        description="tokens at which derived and parent are scored; None: a quarter, one, two and four of train_length",
    )

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
        written_out = asdict(read_options(spec.options, self.dataset_options, f"task {spec.name!r}"))
        self.dataset_options.clear()  # in place, as in Candidate
        self.dataset_options.update(written_out)
        try:
            self.synthetic_options().check(self.train_length)
        except ValueError as error:
            raise ValueError(f"synthetic task {spec.name!r}: {error}") from None
        return self

    @field_validator("serve_lengths")
    @classmethod
    def _check_lengths(cls, lengths: tuple[int, ...] | None) -> tuple[int, ...] | None:
        for length in lengths or ():
            if not 2 <= length <= 65536:
                raise ValueError(f"serve_lengths has {length}; a length must be from 2 to 65536 tokens")
        if lengths is not None and len(set(lengths)) < len(lengths):
            raise ValueError(f"serve_lengths {list(lengths)} has a length twice")
        return lengths

    @property
    def scored_lengths(self) -> tuple[int, ...]:
        """Tokens at which networks are scored, rising."""
        t = self.train_length
        asked = {max(2, t // 4), t, 2 * t, 4 * t} if self.serve_lengths is None else {*self.serve_lengths}
        return tuple(sorted(asked))

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
