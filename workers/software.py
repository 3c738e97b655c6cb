"""Versions of what a search ran with: figures are only comparable with those beside them."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_NAMED = ("blockwright", "torch", "numpy", "safetensors", "ray", "optuna")


def software() -> dict[str, str]:
    """By name; what is not installed as a package is left out."""
    found = {"python": platform.python_version()}
    for name in _NAMED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
