"""An architecture: one candidate label per slot, with what each label means.

The JSON form is what REST answers and what `architecture.json` of an export holds; the string form is one letter
a slot, such as AFS.M.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nas import catalog
from nas.config.space import Candidate, SearchSpace
from nas.errors import InvalidInput
from nas.options import Shape
from nas.specs.probe import reach

ARCHITECTURE_FORMAT_VERSION = 1


@dataclass(frozen=True)
class Architecture:
    """A choice for every slot.

    Args:
        labels: the chosen label of each slot, first to last.
        candidates: what could be chosen, in the order of the request.
        undecided: slots whose choice is a tie that went to the cheapest.

    Raises:
        InvalidInput: a label is not among the candidates, or an undecided slot does not exist.
    """

    labels: tuple[str, ...]
    candidates: tuple[Candidate, ...] = field(hash=False)  # their options are dicts; equality still compares them
    undecided: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        known = [candidate.label for candidate in self.candidates]
        for label in self.labels:
            if label not in known:
                raise InvalidInput(f"unknown label {label!r}; the space has {', '.join(known)}")
        for slot in self.undecided:
            if not 0 <= slot < len(self.labels):
                raise InvalidInput(f"undecided slot {slot} does not exist; there are {len(self.labels)} slots")

    def __str__(self) -> str:
        letters = {candidate.label: candidate.letter for candidate in self.candidates}
        return "".join(letters[label] for label in self.labels)

    @property
    def families(self) -> tuple[str, ...]:
        families = {candidate.label: candidate.family for candidate in self.candidates}
        return tuple(families[label] for label in self.labels)

    @property
    def word(self) -> tuple[str, ...]:
        """Labels of the slots that are not skipped: wherever between them others are, the same is computed."""
        pairs = zip(self.labels, self.families, strict=True)
        return tuple(label for label, family in pairs if family != "identity")

    @property
    def hash(self) -> str:
        """sha256 of what the network is: the chosen blocks and options, whatever their labels."""
        return self._hash(self.labels)

    @property
    def network(self) -> str:
        """As `hash`, of `word`: equal where the same is computed, wherever slots are skipped."""
        return self._hash(self.word)

    def _hash(self, labels: Sequence[str]) -> str:
        by_label = {candidate.label: candidate for candidate in self.candidates}
        slots = [[by_label[label].block, by_label[label].options] for label in labels]
        return hashlib.sha256(json.dumps(slots, sort_keys=True).encode()).hexdigest()

    def to_json(self, shape: Shape | None = None) -> dict[str, Any]:
        """What `from_json` reads; with the shape, each candidate also tells its `reach`: the longest input it takes.

        Args:
            shape: of the space that it is from.
        """
        candidates = []
        for candidate in self.candidates:
            told = {**candidate.model_dump(), "family": candidate.family}
            if shape is not None:
                told["reach"] = asdict(reach(catalog.block(candidate.block), shape, candidate.built_options()))
            candidates.append(told)
        return {
            "format_version": ARCHITECTURE_FORMAT_VERSION,
            "string": str(self),
            "slots": list(self.labels),
            "undecided": list(self.undecided),
            "candidates": candidates,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Architecture:
        """Raises: InvalidInput: another format_version, or labels that are not among the candidates."""
        if data["format_version"] != ARCHITECTURE_FORMAT_VERSION:
            raise InvalidInput(
                f"architecture has format_version {data['format_version']!r}; known: {ARCHITECTURE_FORMAT_VERSION}"
            )
        candidates = tuple(
            Candidate(label=each["label"], block=each["block"], options=dict(each["options"]))
            for each in data["candidates"]
        )
        return cls(tuple(data["slots"]), candidates, tuple(data["undecided"]))


def interleaved(space: SearchSpace) -> Architecture:
    """The parent (attention, ffn)^(L/2): the first candidate of each of the two families, in turn.

    Raises:
        InvalidInput: the space lacks attention or ffn.
    """
    return Architecture(_alternate(space, ("attention", "ffn")), space.candidates)


def _alternate(space: SearchSpace, families: Sequence[str]) -> tuple[str, ...]:
    labels = []
    for family in families:
        found = [candidate.label for candidate in space.candidates if candidate.family == family]
        if not found:
            raise InvalidInput(f"the interleaved parent needs a candidate of family {family!r}; the space has none")
        labels.append(found[0])
    return tuple(labels[slot % len(labels)] for slot in range(space.n_slots))
