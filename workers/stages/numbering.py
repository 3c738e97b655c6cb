"""Numbers of retrainings within a search, the same after any restart.

A retraining's `sample` is the number of its network under one recipe. Numbers are given in the order in which trainings
are first wanted, and written to the search's folder before any trial has one: a stage that runs again, or another one
that wants a network which was trained before, finds the number it had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.folder import write_json

FILE = "retrainings.json"  # in the search's folder


@dataclass(frozen=True)
class Numbered:
    """A network under one recipe.

    Args:
        number: of its trials; seeds share it.
        architecture_id: in the store, as it was first named.
    """

    number: int
    architecture_id: str


class Numbering:
    """The numbers of one search.

    Args:
        folder: of the search.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._known: list[dict[str, Any]] = json.loads(self._path.read_text()) if self._path.exists() else []

    def give(self, network: str, values: Mapping[str, float], teaches: bool, architecture_id: str) -> Numbered:
        """The number of a network under a recipe: the one it has, or the next; `save` before it is used.

        Args:
            network: as `training.network_of` tells them apart.
            values: of hyper-parameters, by JSON pointer.
            teaches: it is trained to be a teacher, without one itself.
            architecture_id: what a new one is kept under.
        """
        wanted = {"network": network, "values": dict(values), "teaches": teaches}
        for number, known in enumerate(self._known):
            if {name: known[name] for name in wanted} == wanted:
                return Numbered(number, known["architecture"])
        self._known.append({**wanted, "architecture": architecture_id})
        return Numbered(len(self._known) - 1, architecture_id)

    def architecture_of(self, network: str) -> str | None:
        """What a network that has a number is kept under in the store; None of a new one."""
        return next((known["architecture"] for known in self._known if known["network"] == network), None)

    def save(self) -> None:
        write_json(self._path, self._known)
