"""What is not searched: embeddings, last norm, head, and the context that blocks see.

B batch, T tokens, D model width, H heads, W head width, V vocabulary.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks.base import Context, sinusoids
from nas.heads import IGNORE, WEIGHT_STD, AdaptiveEmbedding, AdaptiveSoftmax, TiedLinear, at_least_float32, drawn
from nas.options import NetworkConfig

# Measured: tied heads and embeddings of std 0.02 cost a small parent 0.1 bits per byte. An embedding that is multiplied
# by sqrt(D), or is also the head, whose first logits would spread by sqrt(D) / 2, starts at WEIGHT_STD instead.
EMBEDDING_STD = 0.5


def make_norm(norm: str, d_model: int) -> nn.Module:
    """The norm of a slot or before the head.

    Raises:
        ValueError: unknown norm.
    """
    if norm not in ("layer", "rms"):
        raise ValueError(f"unknown norm {norm!r}; known: layer, rms")
    return nn.LayerNorm(d_model) if norm == "layer" else nn.RMSNorm(d_model)


def check_tokens(tokens: Tensor, longest: int | None) -> None:
    """Raises: ValueError: the input is not (B, T), or T is more than `longest`."""
    if tokens.dim() != 2:
        raise ValueError(f"tokens have {tokens.dim()} axes; they must be (batch, tokens)")
    if longest is not None and tokens.shape[1] > longest:
        raise ValueError(f"input has {tokens.shape[1]} tokens; this network takes at most {longest}")


def _places(targets: Tensor) -> Tensor:
    return (targets != IGNORE).flatten().nonzero()[:, 0]


class Backbone(nn.Module):
    """Embeddings in, norm and head out, and what all blocks share.

    Args:
        config: of the network; its slots are not read.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.shape = shape = config.shape
        self.options = options = config.backbone
        width, vocab_size = shape.d_model, config.vocab_size
        cutoffs = options.clusters(vocab_size)
        tied = options.tied_head and not options.n_classes
        std = WEIGHT_STD if tied or options.scaled_embedding else EMBEDDING_STD

        self.embedding: nn.Module
        if cutoffs:
            self.embedding = AdaptiveEmbedding(vocab_size, width, cutoffs, options.div_value, std)
        else:
            self.embedding = nn.Embedding(vocab_size, width)
            nn.init.normal_(self.embedding.weight, std=std)
        learned = options.position_embedding == "learned"
        self.positions = drawn(shape.max_len, width) if learned else None
        self.token_types = drawn(options.token_types, width) if options.token_types else None
        self.embedding_norm = make_norm(config.norm, width) if options.embedding_norm else None
        self.u: nn.Parameter | None = None
        self.v: nn.Parameter | None = None
        if shape.positions == "transformer_xl":  # one pair for all layers, as in the released code
            self.u = drawn(shape.n_heads, shape.head_width)
            self.v = drawn(shape.n_heads, shape.head_width)
        # In post-norm the last slot has normed already.
        self.norm = make_norm(config.norm, width) if config.norm_position == "pre" else None
        self.transform: nn.Module | None = None
        if options.head_layers:
            layers = []
            for _ in range(options.head_layers):
                gelu = nn.GELU(approximate="tanh")  # the faster one, as in the blocks
                layers += [nn.Linear(width, width), gelu, make_norm(config.norm, width)]
            self.transform = nn.Sequential(*layers)

        self.proj_out: nn.Module
        if options.n_classes:
            self.proj_out = nn.Linear(width, options.n_classes)
        elif isinstance(self.embedding, AdaptiveEmbedding):
            rows = self.embedding if tied else AdaptiveEmbedding(vocab_size, width, cutoffs, options.div_value)
            self.proj_out = AdaptiveSoftmax(rows, tied=tied)
        elif tied:
            assert isinstance(self.embedding, nn.Embedding)
            self.proj_out = TiedLinear(self.embedding)
        else:
            self.proj_out = nn.Linear(width, vocab_size)

    @property
    def longest(self) -> int | None:
        """Tokens that the embeddings have positions for; None: any number."""
        return None if self.positions is None else self.shape.max_len

    def embed(self, tokens: Tensor, token_types: Tensor | None = None, *, start: int = 0) -> Tensor:
        """The input of the first slot: the sum of the embeddings, normed where the config says so, with dropout.

        Args:
            tokens: (B, T) token ids.
            token_types: (B, T) type of each token; None: all are of type 0.
            start: position of the first token.

        Returns:
            (B, T, D).

        Raises:
            ValueError: token types for a network that has none.
        """
        x: Tensor = self.embedding(tokens)
        if self.options.scaled_embedding:
            x = x * math.sqrt(self.shape.d_model)
        end = start + tokens.shape[1]
        if self.positions is not None:
            x = x + self.positions[start:end]
        elif self.options.position_embedding == "sinusoidal":
            precise = torch.promote_types(x.dtype, torch.float32)
            x = x + sinusoids(torch.arange(start, end, device=x.device, dtype=precise), x.shape[-1]).to(x.dtype)
        if self.token_types is not None:
            x = x + (self.token_types[0] if token_types is None else F.embedding(token_types, self.token_types))
        elif token_types is not None:
            raise ValueError("token_types are given, but the network's backbone has 0 of them")
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        return F.dropout(x, self.shape.dropout, self.training)

    def context(self, tokens: Tensor, key_padding: Tensor | None = None) -> Context:
        """What the blocks may know of (B, T) tokens; key_padding: (B, T) bool, True where a token is real."""
        shape = self.shape
        return Context(
            causal=shape.causal,
            positions=torch.arange(tokens.shape[1], device=tokens.device),
            key_padding=key_padding,
            lengths=None if key_padding is None else key_padding.sum(dim=1),
            biases=None if self.u is None or self.v is None else (self.u, self.v),
            clamp_len=None if self.training else shape.clamp_len,
            span=shape.kept_tokens(False) + 1 if shape.same_length and not self.training else None,
        )

    def head(self, hidden: Tensor) -> Tensor:
        """(B, T, D) behind the last slot -> (B, T, V) logits; log-probabilities where the softmax is adaptive."""
        x = self._transformed(self._finished(self._unrolled(hidden)))
        if isinstance(self.proj_out, AdaptiveSoftmax):
            return self.proj_out.log_prob(at_least_float32(x.flatten(0, 1))).view(*x.shape[:2], -1)
        out: Tensor = self.proj_out(x)
        return out

    def nats(
        self, hidden: Tensor, targets: Tensor, key_padding: Tensor | None = None, places: Tensor | None = None
    ) -> Tensor:
        """Cross-entropy of each position, or of each sequence; the head runs where there is a target, and nowhere else.

        Args:
            hidden: (B, T, D) behind the last slot.
            targets: (B, T) token ids or classes, IGNORE where a position is not scored; (B, 1) classes of sequences.
            key_padding: (B, T) bool, True where a token is real; None when all are.
            places: (N,) the numbers of what is scored among all targets; None: they are looked for, and the device is
                waited for.

        Returns:
            As targets: nats, in float32 or better; 0 where a position is not scored.
        """
        if self.pools:
            pooled = at_least_float32(self.classes(hidden, key_padding))
            return F.cross_entropy(pooled, targets[:, 0], reduction="none")[:, None]
        places = _places(targets) if places is None else places
        hidden, flat = self._unrolled(hidden).flatten(0, 1), targets.flatten()
        if len(places) == len(flat):
            return self._nats(hidden, flat).view_as(targets)
        nats = self._nats(hidden[places], flat[places])
        return nats.new_zeros(flat.shape).index_copy(0, places, nats).view_as(targets)

    def scored(
        self, hidden: Tensor, targets: Tensor, key_padding: Tensor | None = None, places: Tensor | None = None
    ) -> Tensor:
        """Logits of what is scored, in the order of the targets, in float32 or better: (N, V), or (N, n_classes).

        Arguments are those of `nats`; of an adaptive softmax they are log-probabilities.
        """
        places = _places(targets) if places is None else places
        if self.pools:
            return at_least_float32(self.classes(hidden, key_padding))[places]
        x = self._transformed(self._finished(self._unrolled(hidden).flatten(0, 1)[places]))
        if isinstance(self.proj_out, AdaptiveSoftmax):
            return self.proj_out.log_prob(at_least_float32(x))
        return at_least_float32(self.proj_out(x))

    @torch.no_grad()
    def answers(self, hidden: Tensor, key_padding: Tensor | None = None) -> Tensor:
        """The likeliest class of each position, (B, T), or of each sequence, (B, 1)."""
        if self.pools:
            return self.classes(hidden, key_padding).argmax(dim=-1, keepdim=True)
        return self.head(hidden).argmax(dim=-1)

    @property
    def pools(self) -> bool:
        """Whether one answer is given for a whole sequence."""
        return self.options.n_classes > 0 and self.options.pooling in ("first", "mean")

    def _nats(self, hidden: Tensor, targets: Tensor) -> Tensor:  # (N, D), (N,) -> (N,)
        x = self._transformed(self._finished(hidden))
        if isinstance(self.proj_out, AdaptiveSoftmax):
            output: Tensor = self.proj_out(at_least_float32(x), targets).output
            return -output
        return F.cross_entropy(at_least_float32(self.proj_out(x)), targets, reduction="none")

    def pool(self, hidden: Tensor, key_padding: Tensor | None = None) -> Tensor:
        """(B, T, D) behind the last slot -> (B, D): the first token, or the mean over those that key_padding has."""
        x = self._finished(hidden)
        if self.options.pooling == "first":
            return x[:, 0]
        if key_padding is None:
            return x.mean(dim=1)
        real = key_padding[:, :, None]
        return torch.where(real, x, 0).sum(dim=1) / real.sum(dim=1).clamp_min(1)

    def classes(self, hidden: Tensor, key_padding: Tensor | None = None) -> Tensor:
        """(B, T, D) behind the last slot -> (B, n_classes) logits."""
        out: Tensor = self.proj_out(self._transformed(self.pool(hidden, key_padding)))
        return out

    def _unrolled(self, hidden: Tensor) -> Tensor:
        """What is classified at each place: where the config says so, the last token with the place's sinusoids."""
        if not self.options.unrolls:
            return hidden
        precise = torch.promote_types(hidden.dtype, torch.float32)
        places = torch.arange(hidden.shape[1], device=hidden.device, dtype=precise)
        return hidden[:, -1:] + sinusoids(places, hidden.shape[-1]).to(hidden.dtype)

    def _finished(self, hidden: Tensor) -> Tensor:
        """The last norm. In post-norm the last slot has normed; Transformer-XL has a last dropout there, BERT none."""
        if self.norm is None:
            return hidden if self.transform is not None else F.dropout(hidden, self.shape.dropout, self.training)
        out: Tensor = self.norm(hidden)
        return out

    def _transformed(self, x: Tensor) -> Tensor:
        if self.transform is None:
            return x
        out: Tensor = self.transform(x)
        return out
