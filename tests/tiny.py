"""Small real inputs that many tests share: a space of few slots, a made-up latency table, a text, a request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.config.task import ServeMode, Task
from nas.cost import LatencyEntry, LatencyTable, entry_key
from nas.data.objectives import Batch
from nas.data.parts import Part, Parts, TokenIds, Tokens, split
from nas.heads import IGNORE

MILLISECONDS = {"attention": 3.0, "ffn": 2.0, "identity": 0.0, "sgu": 2.5, "mgk": 3.5}


def request(**overrides: Any) -> SearchRequest:
    """A request that a search finishes in about a second; overrides are merged one level deep."""
    base: dict[str, Any] = {
        "name": "tiny",
        "space": {"n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16},
        "task": {"train_length": 16, "serve": [{"batch": 2, "query_length": 16}]},
        "method": {
            "n_steps": 12, "batch_size": 4, "report_every": 2, "checkpoint_every": 4, "lr_warmup_steps": 2,
            "eval_windows": 4, "prune_steps": 0,
        },
        "trials": {"n_seeds": 1},
        "retrain": {"n_steps": 6, "n_seeds": 1, "test_windows": 8},
    }  # fmt: skip
    for part, values in overrides.items():
        base[part] = {**base.get(part, {}), **values} if isinstance(values, dict) else values
    return SearchRequest.model_validate(base)


def table(space: SearchSpace, serve: ServeMode | None = None, **milliseconds: float) -> LatencyTable:
    """A latency table with the given milliseconds per family; offset 1 ms, scale 1."""
    serve = serve or ServeMode(batch=2, query_length=16)
    costs = {**MILLISECONDS, **milliseconds}
    entries = {
        entry_key(candidate, space, serve): LatencyEntry(
            block=candidate.block, options=candidate.options, median_ms=costs[candidate.family], iqr_ms=0, n_runs=1
        )
        for candidate in space.candidates
    }
    return LatencyTable(
        device={"processor": "made up"}, serve=serve, entries=entries, offset_ms=1.0, scale=1.0,
        error_median=0, error_p95=0, n_networks=0,
    )  # fmt: skip


def text(n_bytes: int = 20_000, seed: int = 0) -> bytes:
    """Letters with some structure, so that a loss can fall: each repeats one of the eight before it, or is new."""
    rng = np.random.default_rng(seed)
    letters = list(rng.integers(97, 123, 8))
    for _ in range(n_bytes - 8):
        letters.append(letters[-int(rng.integers(1, 9))] if rng.random() < 0.8 else int(rng.integers(97, 123)))
    return bytes(int(letter) for letter in letters)


ROUND = b"abcd" * 5_000  # whoever sees another letter knows each of them


def parts(search: SearchRequest) -> Parts:
    return split(text(), search.task.train_length, search.method.batch_size)


def ids(part: Part) -> TokenIds:
    """Of a part that is one stream of tokens."""
    assert isinstance(part, Tokens)
    return part.ids


# Spaces and tasks of the other kinds, for `request`: a decoder with memory, and an encoder for masked tokens.
RECURRENT: dict[str, Any] = {
    "space": {
        "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "positions": "transformer_xl",
        "norm_position": "post", "dropout": 0.1, "memory_length": 24, "clamp_len": 20, "same_length": True,
        "backbone": {"scaled_embedding": True, "tied_head": True}, "candidates": ["attention", "ffn", "identity"],
    },
    "task": {"train_length": 16, "serve": [{"batch": 2, "query_length": 16, "memory_length": 24}]},
}  # fmt: skip
MASKED: dict[str, Any] = {
    "space": {
        "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "causal": False, "positions": "none",
        "backbone": {"position_embedding": "learned", "head_transform": True}, "candidates": ["sgu", "ffn", "identity"],
    },
    "task": {"objective": "masked_lm", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]},
    "retrain": {"n_steps": 6, "n_seeds": 1, "test_windows": 8, "baselines": []},
}  # fmt: skip


LETTERS = 16  # of each part in `lettered_parts`


def lettered_parts(search: SearchRequest) -> Parts:
    """Parts in alphabets of their own, so that token // LETTERS tells where it came from: 0 to 3 in their order."""
    lettered = parts(search)
    for number, part in enumerate((lettered.weights, lettered.alpha, lettered.validation, lettered.test)):
        letters = ids(part)
        letters[:] = number * LETTERS + letters % LETTERS
    return lettered


@dataclass(frozen=True, eq=False)
class PartlyScored:
    """A part whose every fourth held-out document has no token that is scored."""

    part: Part

    def batch(self, task: Task, n: int, generator: torch.Generator) -> Batch:
        return self.part.batch(task, n, generator)

    def held_out(self, task: Task, n: int) -> Batch:
        whole = self.part.held_out(task, n)
        targets = whole.targets.clone()  # those of a text are its tokens
        targets[::4] = IGNORE
        return replace(whole, targets=targets)
