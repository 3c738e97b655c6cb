"""What blocks are built from: `Shape`, each block's Options, and the `NetworkConfig` of a concrete model.

Plain frozen dataclasses of the standard library, because an exported `model.py` carries this file: it must
need nothing but Python. D is the model width, H the number of heads, M the keys per position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

FORMAT_VERSION = 2  # of config.json; grows when an older reader could no longer build the network

POSITIONS = ("none", "relative_bias", "rotary", "transformer_xl")

# Tokens from which on Toeplitz weights are applied by FFT. Forward and backward against the explicit matrix,
# interleaved on a loaded core: 1.1 to 1.6 times the time at 512 tokens, 0.8 to 0.9 at 768, 0.5 to 0.8 at 1024,
# 0.3 to 0.6 at 1536. Forward alone: 1.3 to 1.8 at 768, 1.0 to 1.3 at 1024, 0.7 to 0.9 at 1280 and above.
FFT_FROM = 1024

T5_BUCKETS = 32  # of distances, each with a bias for each head
T5_FARTHEST = 128  # keys at this distance and beyond share the last bucket
LINEAR_CHUNK = 64  # tokens of linear attention that are taken at once


def ranged(default: int | None, least: int, most: int) -> Any:
    """A field of whole numbers in a range, which `check_ranges` keeps and the JSON schema of options tells."""
    return field(default=default, metadata={"minimum": least, "maximum": most})


def check_ranges(config: Any) -> None:
    """A typing error of some zeros must be refused here, not run out of memory in a trial.

    Raises:
        ValueError: a field is outside the `minimum` and `maximum` of its metadata; None is in no range and passes.
    """
    for each in fields(config):
        value, bounds = getattr(config, each.name), each.metadata
        if "minimum" in bounds and value is not None and not bounds["minimum"] <= value <= bounds["maximum"]:
            raise ValueError(f"{each.name} is {value}; it must be between {bounds['minimum']} and {bounds['maximum']}")


def _check_known(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"unknown {name} {value!r}; known: {', '.join(known)}")


def _check_rate(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ValueError(f"{name} is {value}; it must be at least 0 and below 1")


@dataclass(frozen=True)
class Shape:
    """What every block of a network shares.

    Args:
        d_model: width D of the residual stream.
        n_heads: heads H that divide D; a head is D / H wide in every attention-like block.
        max_len: longest sequence T, in tokens, that the network is built and trained for.
        causal: whether a position sees only itself and earlier ones.
        positions: inside attention-like blocks: "rotary", "none", "relative_bias" (T5) or "transformer_xl".
        dropout: of what a block adds to the residual stream, and of its hidden activations.
        attention_dropout: of attention probabilities.
        memory_length: earlier tokens, at most, whose inputs each slot keeps from segment to segment.
        eval_memory_length: the same in evaluation; None: as in training.
        clamp_len: largest distance that "transformer_xl" positions tell apart, in evaluation only; None: all.
        same_length: in evaluation, let each query see one key more than memory holds, and no more.

    Raises:
        ValueError: a size is out of range, H does not divide D, rotary heads have an odd width, or a bidirectional
            shape has memory.
    """

    d_model: int
    n_heads: int
    max_len: int
    causal: bool = True
    positions: str = "rotary"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    memory_length: int = ranged(0, 0, 65536)
    eval_memory_length: int | None = ranged(None, 1, 65536)
    clamp_len: int | None = ranged(None, 1, 65536)
    same_length: bool = False

    def __post_init__(self) -> None:
        for name in ("d_model", "n_heads", "max_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}")
        _check_known("positions", self.positions, POSITIONS)
        if self.positions == "rotary" and self.head_width % 2:
            raise ValueError(f"rotary positions need an even head width; d_model / n_heads is {self.head_width}")
        if self.positions == "transformer_xl" and self.d_model % 2:
            raise ValueError(f"transformer_xl positions need an even d_model; it is {self.d_model}")
        for name in ("dropout", "attention_dropout"):
            _check_rate(name, getattr(self, name))
        check_ranges(self)
        if self.memory_length and not self.causal:
            raise ValueError(f"memory_length is {self.memory_length} in an encoder; only a causal decoder has memory")
        if self.eval_memory_length is not None and not self.memory_length:
            raise ValueError(
                f"eval_memory_length is {self.eval_memory_length} but memory_length is 0; memory is learnt to be used"
            )
        if self.clamp_len is not None and self.positions != "transformer_xl":
            raise ValueError(
                f"clamp_len is {self.clamp_len} but positions is {self.positions!r}; it is transformer_xl's"
            )
        if self.same_length and not self.memory_length:
            raise ValueError("same_length is true but memory_length is 0; without memory the first query has one key")

    @property
    def head_width(self) -> int:
        return self.d_model // self.n_heads

    def kept_tokens(self, training: bool) -> int:
        """Earlier tokens, at most, whose inputs each slot keeps."""
        return self.memory_length if training or self.eval_memory_length is None else self.eval_memory_length


@dataclass(frozen=True)
class AttentionOptions:
    """Softmax or linear attention.

    Args:
        n_heads: heads of this block, each `Shape.head_width` wide; None takes the shape's.
        n_kv_heads: heads of keys and values, each serving n_heads / n_kv_heads query heads; None: as many as n_heads.
        kind: "softmax", or "linear" by the feature map elu(x) + 1.
        positions: None takes the shape's; "relative_bias_only" has no content terms, that is neither queries nor keys.
        window: keys a query sees on its side, its own among them; None: all.
        bias: whether the projections have biases.
    """

    n_heads: int | None = ranged(None, 1, 256)
    n_kv_heads: int | None = ranged(None, 1, 256)
    kind: Literal["softmax", "linear"] = "softmax"
    positions: Literal["none", "relative_bias", "relative_bias_only", "rotary", "transformer_xl"] | None = None
    window: int | None = ranged(None, 1, 65536)
    bias: bool = False

    def __post_init__(self) -> None:
        check_ranges(self)
        _check_known("kind", self.kind, ("linear", "softmax"))
        if self.positions is not None:
            _check_known("positions", self.positions, tuple(sorted((*POSITIONS, "relative_bias_only"))))
        if self.kind == "linear" and self.window is not None:
            raise ValueError(f"window is {self.window} in linear attention, which sums over all keys; leave it out")
        if self.kind == "linear" and self.positions not in (None, "none", "rotary"):
            raise ValueError(f"positions is {self.positions!r} in linear attention; it can be 'none' or 'rotary'")
        if self.positions == "relative_bias_only" and self.n_kv_heads is not None:
            raise ValueError(f"n_kv_heads is {self.n_kv_heads} but relative_bias_only has no keys; leave it out")

    def heads(self, shape: Shape) -> int:
        return self.n_heads or shape.n_heads

    def kv_heads(self, shape: Shape) -> int:
        return self.n_kv_heads or self.heads(shape)

    def where(self, shape: Shape) -> str:
        """The positions that the block uses: its own, else the shape's; linear attention has no scores to bias."""
        positions = self.positions or shape.positions
        return "none" if self.kind == "linear" and positions not in ("none", "rotary") else positions

    def chunk(self, shape: Shape, tokens: int, memory: int) -> int | None:
        """Queries that are taken at once, each chunk with the keys of its window alone; None: all, with all keys."""
        if self.window is None:
            return None
        size = max(64, self.window)
        keys = size + (1 if shape.causal else 2) * (self.window - 1)
        queries = -(-tokens // size) * size
        # Making the chunks costs as much as 256 more keys for each query (one thread, T 256 to 2048).
        return size if queries * (keys + 256) <= tokens * (memory + tokens) else None

    def check(self, shape: Shape) -> None:
        """Raises: ValueError: the block cannot be built at this shape."""
        heads, kv_heads = self.heads(shape), self.kv_heads(shape)
        if heads % kv_heads:
            raise ValueError(f"n_kv_heads {kv_heads} does not divide n_heads {heads}")
        where = self.where(shape)
        if where == "rotary" and shape.head_width % 2:
            raise ValueError(f"rotary positions need an even head width; d_model / n_heads is {shape.head_width}")
        if where == "transformer_xl":
            if shape.positions != "transformer_xl":
                raise ValueError(
                    f"positions is 'transformer_xl' but the space's positions is {shape.positions!r}; the biases u and "
                    "v are shared by all layers, so the space's must be 'transformer_xl' too"
                )
            if heads != shape.n_heads:
                raise ValueError(
                    f"n_heads is {heads}, the space's {shape.n_heads}; with transformer_xl positions they must be "
                    "equal, since all layers share the biases u and v"
                )
            if not shape.causal:
                raise ValueError("positions is 'transformer_xl' in an encoder; it tells only earlier tokens apart")


@dataclass(frozen=True)
class FfnOptions:
    """Position-wise feed-forward network.

    Args:
        ratio: hidden width as a multiple of D. SwiGLU takes two thirds of it, rounded up to a multiple of 8, so that
            its three matrices weigh what the two of the others weigh.
        activation: "gelu", "relu" or "swiglu".
        bias: whether the projections have biases.
    """

    ratio: int = ranged(4, 1, 64)
    activation: Literal["gelu", "relu", "swiglu"] = "gelu"
    bias: bool = True

    def __post_init__(self) -> None:
        check_ranges(self)
        _check_known("activation", self.activation, ("gelu", "relu", "swiglu"))

    def hidden(self, shape: Shape) -> int:
        width = self.ratio * shape.d_model
        return width if self.activation != "swiglu" else -(-2 * width // (3 * 8)) * 8


@dataclass(frozen=True)
class IdentityOptions:
    """Nothing to choose."""


@dataclass(frozen=True)
class SguOptions:
    """Spatial gating unit of gMLP.

    Args:
        ratio: expanded width e as a multiple of D.
        gate: "split" is the paper's unit, Z1 * f(Z2) on halves; the others gate the whole width by f(Z), Z + f(Z) or
            Z * f(Z).
        spatial: "free" holds max_len x max_len weights, "toeplitz" one for each distance.
        apply: how Toeplitz weights are applied: "explicit", "fft", or "auto", the faster by length.
        bias: one for each position ("vector"), or one for all ("scalar"), which alone ignores shifts.
        n_heads: groups of channels with spatial weights of their own (not in the paper).
        attention_width: width of the tiny attention that aMLP adds to the gate; 0: none.
    """

    ratio: int = ranged(4, 1, 64)
    gate: Literal["additive", "linear", "multiplicative", "split"] = "split"
    spatial: Literal["free", "toeplitz"] = "free"
    apply: Literal["auto", "explicit", "fft"] = "auto"
    bias: Literal["scalar", "vector"] = "vector"
    n_heads: int = ranged(1, 1, 256)
    attention_width: int = ranged(0, 0, 4096)

    def __post_init__(self) -> None:
        check_ranges(self)
        _check_known("gate", self.gate, ("additive", "linear", "multiplicative", "split"))
        _check_known("spatial", self.spatial, ("free", "toeplitz"))
        _check_known("apply", self.apply, ("auto", "explicit", "fft"))
        _check_known("bias", self.bias, ("scalar", "vector"))
        if self.spatial == "free" and self.apply == "fft":
            raise ValueError("apply is 'fft' but spatial is 'free'; only toeplitz weights are a convolution")

    def expanded(self, shape: Shape) -> int:
        """Width e of the activation."""
        return self.ratio * shape.d_model

    def gated(self, shape: Shape) -> int:
        """Width g of the gate: half of e where the unit splits it."""
        return self.expanded(shape) // 2 if self.gate == "split" else self.expanded(shape)

    def fft_length(self, tokens: int) -> int | None:
        """Length of the transforms that apply Toeplitz weights to so many tokens; None: an explicit matrix does."""
        if self.spatial == "free" or self.apply == "explicit" or (self.apply == "auto" and tokens < FFT_FROM):
            return None
        # 2 T keeps the circulant from wrapping round. Where transforms are long, lengths with large prime factors take
        # up to 16 times the time of the next multiple of 512.
        return 2 * tokens if tokens < FFT_FROM else -(-2 * tokens // 512) * 512

    def check(self, shape: Shape) -> None:
        """Raises: ValueError: the block cannot be built at this shape."""
        if self.gate == "split" and self.expanded(shape) % 2:
            raise ValueError(f"ratio * d_model is {self.expanded(shape)}; a split gate needs an even width")
        if self.gated(shape) % self.n_heads:
            raise ValueError(f"n_heads {self.n_heads} does not divide the gate's width {self.gated(shape)}")


@dataclass(frozen=True)
class MgkOptions:
    """Attention with a mixture of Gaussian keys, in distance form.

    Args:
        n_heads: heads, each `Shape.head_width` wide; None takes half of the shape's.
        n_keys: Gaussian keys M per position; 1 is attention with the key-norm term alone (GK).
        keys: "free": a projection for each of the M; "shifted": one projection and M learned shifts (sMGK).
        assignment: "soft" sums over the M, "hard" takes the nearest (shifted keys only).
        variance: "fixed" at sqrt(head width), or "learned" for each head (and each free key).
        kind: "softmax", or "linear" (MLK): keys are mixed behind the feature map elu(x) + 1.
        positions: None takes the shape's where it is rotary or none, else rotary.
    """

    n_heads: int | None = ranged(None, 1, 256)
    n_keys: int = ranged(2, 1, 64)
    keys: Literal["free", "shifted"] = "free"
    assignment: Literal["hard", "soft"] = "soft"
    variance: Literal["fixed", "learned"] = "fixed"
    kind: Literal["linear", "softmax"] = "softmax"
    positions: Literal["none", "rotary"] | None = None

    def __post_init__(self) -> None:
        check_ranges(self)
        _check_known("keys", self.keys, ("free", "shifted"))
        _check_known("assignment", self.assignment, ("hard", "soft"))
        _check_known("variance", self.variance, ("fixed", "learned"))
        _check_known("kind", self.kind, ("linear", "softmax"))
        if self.positions is not None:
            _check_known("positions", self.positions, ("none", "rotary"))
        if self.assignment == "hard" and self.keys != "shifted":
            raise ValueError(f"assignment is 'hard' with keys {self.keys!r}; it needs shifted keys")
        if self.kind == "linear" and self.assignment == "hard":
            raise ValueError("assignment is 'hard' in the linear form, which has no scores to compare; use 'soft'")
        if self.kind == "linear" and self.variance == "learned":
            raise ValueError("variance is 'learned' in the linear form, which has no variance; use 'fixed'")

    def heads(self, shape: Shape) -> int:
        return self.n_heads or max(1, shape.n_heads // 2)

    def where(self, shape: Shape) -> str:
        """The positions that the block uses."""
        if self.positions is not None:
            return self.positions
        return "none" if shape.positions == "none" else "rotary"

    @property
    def n_projected(self) -> int:
        """Keys per position that are projected."""
        return self.n_keys if self.keys == "free" else 1

    @property
    def is_weighted(self) -> bool:
        """Whether there are mixture weights: one Gaussian has none, and the nearest of some wins whatever its own."""
        return self.n_keys > 1 and self.assignment == "soft"

    def blocks(self, tokens: int, memory: int, causal: bool) -> list[tuple[int, int, int]]:
        """Queries that are computed together: of each block the first, the end, and the end of the keys it may see.

        Shifted keys hold their scores in memory, so their blocks are small; larger ones suit the fused kernel.
        """
        size = 64 if self.keys == "shifted" else 256 if causal else tokens
        ends = [(first, min(first + size, tokens)) for first in range(0, tokens, size)]
        return [(first, end, memory + (end if causal else tokens)) for first, end in ends]

    def check(self, shape: Shape) -> None:
        """Raises: ValueError: the block cannot be built at this shape."""
        if self.where(shape) == "rotary" and shape.head_width % 2:
            raise ValueError(f"rotary positions need an even head width; d_model / n_heads is {shape.head_width}")


@dataclass(frozen=True)
class BackboneConfig:
    """What stands around the slots and is not searched. V is the vocabulary.

    Args:
        position_embedding: added to the tokens' embeddings: "none", "learned" or "sinusoidal".
        token_types: rows of the token-type embedding; 0: there is none.
        embedding_norm: whether a norm follows the sum of the embeddings (BERT).
        scaled_embedding: whether embeddings are multiplied by sqrt(D) (Transformer-XL).
        tied_head: whether the head's weights are the embedding's.
        head_transform: whether D x D weights, a GELU and a norm stand before the head (masked LM of BERT).
        cutoffs: first token ids of the adaptive softmax's clusters, rising; those not below V do not count, and with
            none left the head is a plain softmax.
        div_value: cluster number c has embeddings D / div_value^c wide.
        n_classes: classes of sequences or of tokens; 0: the head predicts tokens.
        pooling: what is classified: a sequence by its "first" token ([CLS]) or by the "mean" of its real tokens; with
            "none" each token by itself; with "unroll" each place by the last token alone, with that place's sinusoids
            added to it and two layers as of head_transform before the classes (MAD's compression).
    """

    position_embedding: Literal["learned", "none", "sinusoidal"] = "none"
    token_types: int = ranged(0, 0, 64)
    embedding_norm: bool = False
    scaled_embedding: bool = False
    tied_head: bool = False
    head_transform: bool = False
    cutoffs: tuple[int, ...] = ()
    div_value: int = ranged(1, 1, 64)
    n_classes: int = ranged(0, 0, 65536)
    pooling: Literal["first", "mean", "none", "unroll"] = "first"

    __pydantic_config__ = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check_known("position_embedding", self.position_embedding, ("learned", "none", "sinusoidal"))
        _check_known("pooling", self.pooling, ("first", "mean", "none", "unroll"))
        check_ranges(self)
        if len(self.cutoffs) > 16:
            raise ValueError(f"cutoffs has {len(self.cutoffs)} entries; it may have 16")
        if list(self.cutoffs) != sorted(set(self.cutoffs)) or any(each < 1 for each in self.cutoffs):
            raise ValueError(f"cutoffs is {list(self.cutoffs)}; it must be positive and rise")
        if self.div_value > 1 and not self.cutoffs:
            raise ValueError(
                f"div_value is {self.div_value} but cutoffs is empty; only clusters of an adaptive softmax narrow"
            )
        if self.n_classes == 1:
            raise ValueError("n_classes is 1; it must be 0 (none) or at least 2")

    @property
    def unrolls(self) -> bool:
        """Whether each place is classified by the last token."""
        return self.n_classes > 0 and self.pooling == "unroll"

    @property
    def head_layers(self) -> int:
        """Layers of D x D weights, GELU and norm before the head's own weights."""
        return 2 if self.unrolls else int(self.head_transform)

    def clusters(self, vocab_size: int) -> list[int]:
        """First token id of each cluster behind the shortlist."""
        return [each for each in self.cutoffs if each < vocab_size]


@dataclass(frozen=True)
class SlotConfig:
    """The block of one slot: its registered name and its options as JSON holds them."""

    block: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NetworkConfig:
    """Everything that `Network` needs, and nothing else: what `config.json` holds.

    Args:
        shape: shared by all blocks.
        vocab_size: number of token ids.
        slots: the block of each slot, first to last; an identity slot is skipped in the network.
        norm: "layer" (LayerNorm) or "rms" (RMSNorm).
        norm_position: "pre": x + block(norm(x)), and one norm before the head; "post": norm(x + block(x)), none there.
        backbone: what stands around the slots.

    Raises:
        ValueError: an unknown norm, a cluster of the vocabulary without width, or a decoder that would classify by its
            first token.
    """

    shape: Shape
    vocab_size: int
    slots: tuple[SlotConfig, ...]
    norm: str = "layer"
    norm_position: str = "pre"
    backbone: BackboneConfig = BackboneConfig()
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        _check_known("norm", self.norm, ("layer", "rms"))
        _check_known("norm_position", self.norm_position, ("post", "pre"))
        backbone, n_clusters = self.backbone, len(self.backbone.clusters(self.vocab_size))
        if self.shape.d_model < backbone.div_value**n_clusters:
            raise ValueError(
                f"div_value is {backbone.div_value} with {n_clusters} cutoffs below the vocabulary; the last cluster "
                f"of d_model {self.shape.d_model} would have no width"
            )
        if backbone.n_classes and backbone.pooling == "first" and self.shape.causal:
            raise ValueError("pooling is 'first' in a decoder, whose first token sees no other; it must be 'mean'")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkConfig:
        """Read what `config.json` holds.

        Raises:
            ValueError: the file is of another format_version.
        """
        if data["format_version"] != FORMAT_VERSION:
            raise ValueError(f"config has format_version {data['format_version']}; this code reads {FORMAT_VERSION}")
        slots = tuple(SlotConfig(slot["block"], dict(slot["options"])) for slot in data["slots"])
        backbone = BackboneConfig(**{**data["backbone"], "cutoffs": tuple(data["backbone"]["cutoffs"])})
        shape = Shape(**data["shape"])
        return cls(shape, data["vocab_size"], slots, data["norm"], data["norm_position"], backbone)
