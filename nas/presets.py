"""Whole requests to start from by name, and what a request that names one means.

Plain data: `{"preset": "decoder", ...}` is expanded before anything is checked, and stored requests keep the name, so a
name is for good. Each preset writes out its whole `space`, because a request without one means that of `decoder`.

Where the figures come from: Transformer-XL by NVIDIA's code, PAR (Mandava et al. 2020, arXiv:2009.04534), gMLP and the
BERT beside it (Liu et al. 2021, arXiv:2105.08050). What the papers leave open is ours: the estimator where it is not
PAR's, the temperature, AdamW in the place of LAMB and with it the rates, and the batches: by the count of activations
they fit a GPU of 80 GB. The small presets have been run; those at the papers' sizes have been built, and not yet run to
their end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEFAULT = "decoder"  # whose space a request without one means

DESCRIPTIONS: dict[str, str] = {
    "quickstart": "a first look: some minutes on two cores, and a model to download",
    "decoder": "what a request without a space means: a small language model of today's parts; minutes on two cores",
    "transformer-xl-small": "post-norm decoder with memory, like Transformer-XL but small; minutes on two cores",
    "bert-small": "encoder for masked tokens, like BERT but small; minutes on two cores",
    "gmlp-small": "spatial gating without positions, with and without a tiny attention; minutes on two cores",
    "transformer-xl-base": "the 16 layers of Transformer-XL base; for a GPU of 80 GB, days and 100 MB of text",
    "transformer-xl-large": "the 18 layers of Transformer-XL large; for a GPU of 80 GB, weeks and 100 MB of text",
    "xl-24b": "the 12 layers of Transformer-XL for characters; for a GPU of 80 GB, days and a text such as enwik8",
    "bert-base": "the 12 layers of BERT base at 128 tokens; for a GPU of 80 GB, days and 100 MB of text",
    "gmlp-base": "the 48 units of gMLP base at 512 tokens, aMLP beside; for a GPU of 80 GB, days and 100 MB of text",
    "par": "the recipe of PAR as far as it is known, on Transformer-XL base; for a GPU of 80 GB and days",
    "par-small": "the recipe of PAR, six seeds of it, on a small Transformer-XL; an hour on two cores",
}

_WEEK = 7 * 24 * 60
_ONE_GPU = {"cpus": 4, "gpus": 1}
_ONE_RATIO = {"latency": {"ratio_to_parent": 1.0}}

# For two cores: quickstart's, at half its rate, since stacks in post-norm start less steadily; bert-small has its own.
_SMALL_METHOD = {
    "n_steps": 1200,
    "alpha_share": 0.33,
    "batch_size": 8,
    "lr": 4e-3,
    "tau_end": 0.5,
    "report_every": 25,
    "eval_windows": 32,
}
_SMALL_RETRAIN = {"n_steps": 800, "n_seeds": 2}

# 50,000 updates with a fifth as warm-up are near PAR's; the warm-up of the rate is NVIDIA's.
_LARGE_METHOD = {
    "n_steps": 50_000,
    "warmup_share": 0.2,
    "alpha_share": 0.2,
    "lr_warmup_steps": 1000,
    "report_every": 100,
    "checkpoint_every": 1000,
    "max_minutes": _WEEK,
}
_LARGE_RETRAIN = {"n_steps": 40_000, "n_seeds": 2}

# The clusters are those of WikiText-103's words; a vocabulary of bytes has none of them, and its softmax is plain.
_XL_BACKBONE = {"scaled_embedding": True, "tied_head": True, "cutoffs": [19_997, 39_997, 199_997]}
_XL_SPACE = {
    "n_slots": 32,
    "d_model": 512,
    "n_heads": 8,
    "max_len": 192,
    "positions": "transformer_xl",
    "norm": "layer",
    "norm_position": "post",
    "dropout": 0.1,
    "memory_length": 192,
    "eval_memory_length": 640,
    "clamp_len": 400,
    "same_length": True,
    "backbone": _XL_BACKBONE,
    "candidates": [
        "attention",
        {"label": "ffn", "block": "ffn", "options": {"activation": "relu"}},
        "identity",
    ],
}
_XL_TASK = {
    "dataset": "python-stdlib",
    "train_length": 192,
    "serve": [{"batch": 1, "query_length": 64, "memory_length": 640}],
}

# PAR's: alpha's steps on a mixture, its rate and decay, frozen at first, no budget, six seeds, and an end once three of
# four blocks stand. It knows neither a settling nor a parsimony pass. Not the paper's: weight steps run single paths
# here, behind warm-up half of them uniform; the paper's, as far as it is known, mix all candidates.
_PAR_METHOD = {
    "alpha_estimator": "soft",
    "warmup_share": 0.2,
    "settle_share": 0.0,
    "alpha_share": 0.2,
    "alpha_lr": 1e-2,
    "alpha_decay": 5e-4,
    "weight_decay": 1e-4,
    "grad_clip": 0.25,
    "tau_start": 5.0,
    "tau_end": 0.1,
    "stop_when_stable": True,
    "prune_steps": 0,
}
_PAR_TRIALS = {"seed": 0, "n_seeds": 6}

# The rate of gMLP's full recipe, which has 256 windows a batch.
_MASKED_METHOD = {"lr": 1e-4, "lr_warmup_steps": 10_000, "weight_decay": 0.01}

_BERT_SPACE = {
    "n_slots": 24,
    "d_model": 768,
    "n_heads": 12,
    "max_len": 128,
    "causal": False,
    "positions": "none",
    "norm": "layer",
    "norm_position": "post",
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "backbone": {
        "position_embedding": "learned",
        "token_types": 2,
        "embedding_norm": True,
        "tied_head": True,
        "head_transform": True,
    },
    "candidates": [
        {"label": "attention", "block": "attention", "options": {"bias": True}},
        {"label": "ffn", "block": "ffn", "options": {"activation": "gelu", "bias": True}},
        "identity",
    ],
}

_SGU = {"ratio": 6, "spatial": "toeplitz"}
_GMLP_SPACE = {
    "n_slots": 48,
    "d_model": 512,
    "n_heads": 8,
    "max_len": 512,
    "causal": False,
    "positions": "none",
    "norm": "layer",
    "norm_position": "pre",
    "backbone": {"tied_head": True, "head_transform": True},
    "candidates": [
        {"label": "sgu", "block": "sgu", "options": _SGU},
        {"label": "amlp", "block": "sgu", "options": {**_SGU, "attention_width": 64}},
        "identity",
    ],
}

PRESETS: dict[str, dict[str, Any]] = {
    # The same as examples/quickstart.json, which is not part of an installation.
    "quickstart": {
        "name": "quickstart",
        "space": {
            "n_slots": 6,
            "d_model": 64,
            "n_heads": 4,
            "max_len": 128,
            "candidates": [
                "attention",
                "ffn",
                "identity",
                "sgu",
                {"label": "mgk", "block": "mgk", "options": {"n_heads": 2, "n_keys": 2}},
            ],
        },
        "task": {
            "dataset": "python-stdlib",
            "train_length": 128,
            "serve": [{"mode": "prefill", "batch": 8, "query_length": 128, "memory_length": 0}],
        },
        "method": {
            "alpha_estimator": "straight_through",
            "n_steps": 1200,
            "warmup_share": 0.33,
            "alpha_share": 0.33,
            "batch_size": 8,
            "lr": 8e-3,
            "alpha_lr": 2e-2,
            "tau_start": 5.0,
            "tau_end": 0.5,
            "cost_weight": 0.1,
            "report_every": 25,
            "checkpoint_every": 100,
            "max_minutes": 60,
            "prune_steps": 60,
            "prune_share": 0.5,
        },
        "budget": _ONE_RATIO,
        "trials": {"seed": 0, "n_seeds": 2},
        "retrain": {"n_steps": 800, "n_seeds": 2},
    },
    "decoder": {
        "name": "decoder",
        "space": {
            "n_slots": 8,
            "d_model": 64,
            "n_heads": 4,
            "max_len": 128,
            "positions": "rotary",
            "norm": "rms",
            "candidates": [
                {"label": "attention", "block": "attention", "options": {"n_kv_heads": 2}},
                {"label": "ffn", "block": "ffn", "options": {"activation": "swiglu", "bias": False}},
                "identity",
                # Toeplitz and one bias: every candidate can then run beyond the length it was trained at.
                {"label": "sgu", "block": "sgu", "options": {"spatial": "toeplitz", "bias": "scalar"}},
                "mgk",
            ],
        },
    },
    "transformer-xl-small": {
        "name": "transformer-xl-small",
        "space": {
            **_XL_SPACE,
            "n_slots": 8,
            "d_model": 64,
            "n_heads": 4,
            "max_len": 64,
            "memory_length": 64,
            "eval_memory_length": 128,
            "clamp_len": 100,
            "candidates": [
                "attention",
                {"label": "ffn", "block": "ffn", "options": {"activation": "relu"}},
                {"label": "ffn-2", "block": "ffn", "options": {"activation": "relu", "ratio": 2}},
                "identity",
            ],
        },
        "task": {
            "dataset": "python-stdlib",
            "train_length": 64,
            "serve": [{"batch": 1, "query_length": 32, "memory_length": 128}],
        },
        "method": {**_SMALL_METHOD, "grad_clip": 0.25},
        "budget": _ONE_RATIO,
        "retrain": _SMALL_RETRAIN,
    },
    "bert-small": {
        "name": "bert-small",
        # Relative biases beside the learned positions: in as few updates as these, the latter teach attention little.
        "space": {
            **_BERT_SPACE,
            "n_slots": 8,
            "d_model": 64,
            "n_heads": 4,
            "positions": "relative_bias",
            "dropout": 0.0,
            "attention_dropout": 0.0,
        },
        "task": {
            "objective": "masked_lm",
            "dataset": "python-stdlib",
            "train_length": 128,
            "serve": [{"batch": 8, "query_length": 128}],
        },
        "method": {**_SMALL_METHOD, "batch_size": 16, "lr": 2e-3},
        "budget": _ONE_RATIO,
        "retrain": _SMALL_RETRAIN,
    },
    "gmlp-small": {
        "name": "gmlp-small",
        "space": {
            **_GMLP_SPACE,
            "n_slots": 8,
            "d_model": 64,
            "n_heads": 4,
            "max_len": 128,
            "candidates": [
                {"label": "sgu", "block": "sgu", "options": _SGU},
                {"label": "amlp", "block": "sgu", "options": {**_SGU, "attention_width": 16}},
                "identity",
            ],
        },
        "task": {
            "objective": "masked_lm",
            "dataset": "python-stdlib",
            "train_length": 128,
            "serve": [{"batch": 8, "query_length": 128}],
        },
        "method": _SMALL_METHOD,
        "retrain": {**_SMALL_RETRAIN, "baselines": []},
    },
    "transformer-xl-base": {
        "name": "transformer-xl-base",
        "space": _XL_SPACE,
        "task": _XL_TASK,
        "method": {**_LARGE_METHOD, "batch_size": 128, "lr": 1e-3, "weight_decay": 0.0, "grad_clip": 0.25},
        "budget": _ONE_RATIO,
        "retrain": _LARGE_RETRAIN,
        "resources": _ONE_GPU,
    },
    "transformer-xl-large": {
        "name": "transformer-xl-large",
        "space": {
            **_XL_SPACE,
            "n_slots": 36,
            "d_model": 1024,
            "n_heads": 16,
            "max_len": 384,
            "dropout": 0.2,
            "attention_dropout": 0.2,
            "memory_length": 384,
            "eval_memory_length": 1600,
            "clamp_len": 1000,
            "backbone": {**_XL_BACKBONE, "div_value": 4},
        },
        "task": {
            "dataset": "python-stdlib",
            "train_length": 384,
            "serve": [{"batch": 1, "query_length": 128, "memory_length": 1600}],
        },
        "method": {
            **_LARGE_METHOD,
            "n_steps": 100_000,
            "batch_size": 16,
            "lr": 2.5e-4,
            "lr_warmup_steps": 16_000,
            "weight_decay": 0.0,
            "grad_clip": 0.25,
            "max_minutes": 4 * _WEEK,
        },
        "budget": _ONE_RATIO,
        "retrain": {**_LARGE_RETRAIN, "n_steps": 100_000},
        "resources": _ONE_GPU,
    },
    "xl-24b": {
        "name": "xl-24b",
        "space": {
            **_XL_SPACE,
            "n_slots": 24,
            "max_len": 512,
            "memory_length": 512,
            "eval_memory_length": 2100,
            "clamp_len": 820,
            "backbone": {**_XL_BACKBONE, "cutoffs": []},
        },
        "task": {
            "dataset": "python-stdlib",
            "train_length": 512,
            "serve": [{"batch": 1, "query_length": 80, "memory_length": 2100}],
        },
        "method": {**_LARGE_METHOD, "batch_size": 22, "lr": 2.5e-4, "weight_decay": 0.0, "grad_clip": 0.25},
        "budget": _ONE_RATIO,
        "retrain": _LARGE_RETRAIN,
        "resources": _ONE_GPU,
    },
    "bert-base": {
        "name": "bert-base",
        "space": _BERT_SPACE,
        "task": {
            "objective": "masked_lm",
            "dataset": "python-stdlib",
            "train_length": 128,
            "serve": [{"batch": 8, "query_length": 128}],
        },
        "method": {**_LARGE_METHOD, **_MASKED_METHOD, "batch_size": 256},
        "budget": _ONE_RATIO,
        "retrain": _LARGE_RETRAIN,
        "resources": _ONE_GPU,
    },
    "gmlp-base": {
        "name": "gmlp-base",
        "space": _GMLP_SPACE,
        "task": {
            "objective": "masked_lm",
            "dataset": "python-stdlib",
            "train_length": 512,
            "serve": [{"batch": 8, "query_length": 512}],
        },
        "method": {**_LARGE_METHOD, **_MASKED_METHOD, "batch_size": 16},
        "retrain": {**_LARGE_RETRAIN, "baselines": []},
        "resources": _ONE_GPU,
    },
    "par": {
        "name": "par",
        "space": _XL_SPACE,
        "task": _XL_TASK,
        # 10,000 steps of weights alone, then 40,000 of which every fifth is alpha's: 32,000 updates of weights.
        "method": {
            **_LARGE_METHOD,
            **_PAR_METHOD,
            "n_steps": 42_000,
            "warmup_share": 0.2381,
            "batch_size": 128,
            "lr": 1e-3,
        },
        "trials": _PAR_TRIALS,
        "retrain": _LARGE_RETRAIN,
        "resources": _ONE_GPU,
    },
    "par-small": {
        "name": "par-small",
        "space": {
            **_XL_SPACE,
            "n_slots": 12,
            "d_model": 64,
            "n_heads": 4,
            "max_len": 64,
            "memory_length": 64,
            "eval_memory_length": 128,
            "clamp_len": 100,
        },
        "task": {
            "dataset": "python-stdlib",
            "train_length": 64,
            "serve": [{"batch": 1, "query_length": 32, "memory_length": 128}],
        },
        "method": {
            **_PAR_METHOD,
            "n_steps": 1500,
            "batch_size": 8,
            "lr": 4e-3,
            "report_every": 25,
            "eval_windows": 32,
        },
        "trials": _PAR_TRIALS,
        "retrain": _SMALL_RETRAIN,
    },
}

_WHOLE = ("latency",)  # a bound in ms takes the place of one by ratio; beside it, it would be refused


def expand(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request with its preset beneath it: objects are merged, whatever else is given takes the preset's place.

    Args:
        request: JSON of a request; it comes back as it is where it names no known preset.
    """
    name = request.get("preset")
    return merge(PRESETS[name], request) if isinstance(name, str) and name in PRESETS else dict(request)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both objects in one: objects of one name are merged, and of all else the one above stands."""
    merged = dict(below)
    for name, value in above.items():
        before = merged.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping) and name not in _WHOLE:
            merged[name] = merge(before, value)
        else:
            merged[name] = value
    return merged


def refusal(name: str) -> str:
    """What is said of a preset that does not exist."""
    return f"unknown preset {name!r}; known: {', '.join(PRESETS)}"
