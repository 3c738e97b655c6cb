"""What each seed's search has come to: its evidence, who leads, what is undecided. L slots, K candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas.leading import leading, of_path
from nas.report import read
from nas.report.data import Evidence, ReportData
from nas.report.document import Ref
from nas.report.looks import Looks, looks


@dataclass(frozen=True)
class Seed:
    """One search trial of the sample that the report is about.

    Args:
        trial: its id; None where it is not known.
        leaders: (L,) most probable candidate of each slot.
        by_chance: slots where it leads by no more than chance.
        undecided: slots that are undecided in the end: of the parsimony pass where there was one, else by chance.
    """

    seed: int
    trial: Ref | None
    evidence: Evidence
    leaders: Sequence[int]
    by_chance: Sequence[int]
    undecided: Sequence[int]

    @property
    def chosen(self) -> Sequence[int]:
        """(L,) of the path that the pass holds, else the leaders."""
        return self.evidence.path or self.leaders


def sample_of(data: ReportData) -> int:
    """The sample of hyper-parameters that the result is of; before there is one the first."""
    return read.whole(read.at(data.found, "search", "sample")) or 0


def labels_of(data: ReportData) -> tuple[str, ...]:
    """Labels of the candidates, in the order of every matrix."""
    for each in read.mappings(data.found.get("probabilities")):
        if each.get("labels"):
            return read.texts(each["labels"])
    return tuple(looks_of(data))


def looks_of(data: ReportData) -> Looks:
    return looks(read.at(data.found, "search", "candidates") or read.at(data.request, "space", "candidates"))


def seeds_of(data: ReportData) -> list[Seed]:
    """Of the result; before there is one, of what the trials have reported so far. Seeds in order."""
    sample = sample_of(data)
    trials = {each.seed: each for each in data.trials if each.kind == "search" and each.sample == sample}
    told: dict[int, Evidence] = {}
    for entry in read.mappings(data.found.get("probabilities")):
        seed = read.whole(entry.get("seed"))
        if seed is not None:
            told[seed] = Evidence.of(entry)
    if data.result is None:
        told = {seed: each.evidence for seed, each in trials.items() if each.evidence is not None}
    found = []
    for seed, evidence in sorted(told.items()):
        if not evidence.probabilities or not all(evidence.probabilities):
            continue
        leaders, by_chance = leading(evidence.probabilities, evidence.null_gaps or None)
        undecided = by_chance
        if evidence.path:
            undecided = of_path(evidence.path, by_chance, evidence.effect_nats or None, evidence.effect_se or None)
        trial = Ref("trial", trials[seed].id) if seed in trials else None
        found.append(Seed(seed, trial, evidence, leaders, by_chance, undecided))
    return found


def derived_by_seed(data: ReportData) -> dict[int, Mapping[str, Any]]:
    """Of the result, each seed's architecture within the budget: what rules are read from. Seeds in order."""
    found = {}
    for entry in read.mappings(data.found.get("architectures")):
        seed = read.whole(entry.get("seed"))
        if entry.get("role") == "budget" and seed is not None:
            found[seed] = entry
    return dict(sorted(found.items()))


def n_slots_of(data: ReportData) -> int:
    slots = read.items(read.at(data.found, "derived", "slots"))
    return len(slots) or read.whole(read.at(data.request, "space", "n_slots")) or 0
