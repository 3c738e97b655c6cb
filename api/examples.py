"""A small request for the OpenAPI document, and whole requests to start from by name.

`par` follows the recipe of PAR (Mandava et al. 2020, arXiv:2009.04534) where it is known: 32 slots of attention, FFN or
identity, soft mixtures, a fifth of the steps as warm-up, alpha by 1e-2 on a fifth of the updates, no cost in the loss.
Unknown there and chosen by us: the temperature, the optimiser of the weights (AdamW for LAMB) and with it their rate.
"""

from __future__ import annotations

from typing import Any

REQUEST: dict[str, Any] = {
    "name": "first search",
    "space": {"n_slots": 8, "candidates": ["attention", "ffn", "identity", "sgu", "mgk"]},
    "task": {"dataset": "python-docs"},
    "budget": {"latency": {"ratio_to_parent": 1.0}},
    "trials": {"seed": 0, "n_seeds": 2},
}

# What the page shows beside each preset.
DESCRIPTIONS: dict[str, str] = {
    "quickstart": "a first look: some minutes on two cores, and a model to download",
    "default": "what a request without any fields means: eight slots, a short text, no budget",
    "par": "the recipe of PAR as far as it is known: 32 slots of attention, FFN or identity; for a GPU and days",
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
        },
        "budget": {"latency": {"ratio_to_parent": 1.0}},
        "trials": {"seed": 0, "n_seeds": 2},
        "retrain": {"n_steps": 800, "n_seeds": 2},
    },
    "default": {"name": "default"},
    "par": {
        "name": "par",
        "space": {
            "n_slots": 32,
            "d_model": 512,
            "n_heads": 8,
            "max_len": 192,
            "candidates": ["attention", "ffn", "identity"],
        },
        "task": {
            "dataset": "python-stdlib",
            "train_length": 192,
            "serve": [{"mode": "prefill", "batch": 1, "query_length": 192, "memory_length": 0}],
        },
        "method": {
            "alpha_estimator": "soft",
            "n_steps": 50_000,
            "warmup_share": 0.2,
            "alpha_share": 0.2,
            "batch_size": 128,
            "lr": 1e-3,
            "weight_decay": 1e-4,
            "alpha_lr": 1e-2,
            "tau_start": 5.0,
            "tau_end": 0.1,
            "cost_weight": 0.0,
            "report_every": 100,
            "checkpoint_every": 1000,
            "max_minutes": 7 * 24 * 60,
        },
        "trials": {"seed": 0, "n_seeds": 6},
        "retrain": {"n_steps": 40_000, "n_seeds": 2},
    },
}
