"""What a search trial was estimated to take before one was placed, in a sentence; behind it what the trials took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sentence(found: Mapping[str, Any]) -> str:
    """The estimate as the service, its event and result.json tell it."""
    if found.get("reason"):
        told = f"no estimate of a trial: {found['reason']}"
    else:
        told = f"about {_seconds(found['seconds'])} and {_bytes(found['memory_bytes'])} a trial"
        if found["prune_seconds"]:
            told += f", parsimony pass about {_seconds(found['prune_seconds'])} more"
    took = found.get("measured")
    if took is not None:
        told += f"; measured {_seconds(took['seconds'])}"
        if took["prune_seconds"]:
            told += f", parsimony pass {_seconds(took['prune_seconds'])}"
    return told


def _seconds(value: float) -> str:
    """Two digits below 10 s; minutes from 10 of them on."""
    if value < 9.95:
        return f"{value:.1f} s"
    return f"{value:,.0f} s" if value < 600 else f"{value / 60:,.0f} min"


def _bytes(value: int) -> str:
    return f"{value / 1e6:,.0f} MB" if value < 9.995e8 else f"{value / 1e9:,.1f} GB"
