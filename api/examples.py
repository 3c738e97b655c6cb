"""A small request for the OpenAPI document; whole ones to start from stand in nas.presets."""

from __future__ import annotations

from typing import Any

REQUEST: dict[str, Any] = {
    "name": "first search",
    "space": {"n_slots": 8, "candidates": ["attention", "ffn", "identity", "sgu", "mgk"]},
    "task": {"dataset": "python-docs"},
    "budget": {"latency": {"ratio_to_parent": 1.0}},
    "trials": {"seed": 0, "n_seeds": 2},
}
