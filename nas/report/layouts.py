"""The layouts that a report speaks of, by name: derived ones, baselines and rule layouts, with what training gave.

Results of older versions list no retrainings; then derived and parent stand for them, with what the comparison tells.
S seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas.report import read
from nas.report.data import ReportData
from nas.report.document import Piece, Ref, commas


@dataclass(frozen=True)
class Layout:
    """One distinct layout after its retraining.

    Args:
        name: such as derived, interleaved, random 1.
        slots: label of each slot.
        undecided: slots that are ties.
        origin: where its figures come from.
        seeds: it was trained with; () where they are not listed.
        test: (S,) quality of each seed.
        val_loss: (S,) on validation, in the unit of quality.
        mean: quality over the seeds.
        low, high: 95% interval of the mean; None of one seed.
        cost_ms: predicted, or for older results as timed beside the parent.
    """

    name: str
    slots: tuple[str, ...]
    undecided: tuple[int, ...] = ()
    origin: tuple[Ref, ...] = ()
    seeds: tuple[int, ...] = ()
    lr: float | None = None
    test: tuple[float | None, ...] = ()
    val_loss: tuple[float | None, ...] = ()
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    cost_ms: float | None = None
    parameters: float | None = None
    flops: float | None = None
    cache_bytes: float | None = None


def trained(data: ReportData) -> list[Layout]:
    """Of the result, in its order; [] before there is one."""
    listed = read.mappings(data.found.get("retrained"))
    if listed:
        return [_listed(each, data) for each in listed]
    quality, latency = read.mapping(data.found.get("quality")), read.mapping(data.found.get("latency"))
    found = []
    for side in ("derived", "parent"):
        entry = read.mapping(data.found.get(side))
        if not entry:
            continue
        timed = read.number(latency.get(f"{side}_ms"))
        found.append(
            Layout(
                name=side if side == "derived" else parent_name(data),
                slots=read.texts(entry.get("slots")),
                undecided=read.wholes(entry.get("undecided")),
                origin=_kept(entry, data),
                mean=read.number(quality.get(f"{side}_bits_per_byte")),
                cost_ms=read.number(entry.get("predicted_ms")) if timed is None else timed,
            )
        )
    return found


def parent_name(data: ReportData) -> str:
    """What the derived architecture is held against."""
    role = read.text(read.at(data.found, "parent", "role"))
    return "interleaved" if role in (None, "parent") else str(role)


def search_of(data: ReportData) -> Ref:
    """The search, whose result holds every figure: what is referred to where no nearer id is known."""
    return Ref("search", data.search_id)


def origins(names: Sequence[str], data: ReportData) -> list[Ref]:
    """The architecture of each of these layouts; the search for one that is not known."""
    known = {each.name: each.origin[0] for each in trained(data) if each.origin}
    return list(dict.fromkeys(known.get(name, search_of(data)) for name in names))


def both_sides(data: ReportData) -> list[Piece]:
    """Derived and parent, each with its architecture and the trials that have retrained it; else the search."""
    told: list[Piece] = []
    for each in trained(data):
        if each.name in ("derived", parent_name(data)) and each.origin:
            told += [f"{'; ' if told else ''}{each.name}: ", *commas(each.origin)]
    return told or ["search ", search_of(data)]


def n_seeds_of(data: ReportData) -> int | None:
    """Seeds that derived and parent were retrained with."""
    listed = next((len(each.seeds) for each in trained(data) if each.name == "derived" and each.seeds), None)
    return read.whole(read.at(data.found, "quality", "n_seeds")) if listed is None else listed


def _listed(entry: Mapping[str, Any], data: ReportData) -> Layout:
    seeds = read.wholes(entry.get("seeds"))
    name = read.text(entry.get("name")) or "?"
    undecided = entry.get("undecided")
    if undecided is None and name == "derived":
        undecided = read.at(data.found, "derived", "undecided")
    own = read.text(entry.get("architecture"))
    refs = [Ref("architecture", own)] if own else []
    refs += [Ref("trial", each) for each in read.texts(entry.get("trials"))]
    return Layout(
        name=name,
        slots=read.texts(entry.get("slots")),
        undecided=read.wholes(undecided),
        origin=tuple(refs),
        seeds=seeds,
        lr=read.number(entry.get("lr")),
        test=read.by_seed(entry.get("test"), seeds),
        val_loss=read.by_seed(entry.get("val_loss"), seeds),
        mean=read.number(entry.get("mean")),
        low=read.number(entry.get("low")),
        high=read.number(entry.get("high")),
        cost_ms=read.number(entry.get("predicted_ms")),
        parameters=read.number(entry.get("parameters")),
        flops=read.number(entry.get("flops")),
        cache_bytes=read.number(entry.get("cache_bytes")),
    )


def _kept(entry: Mapping[str, Any], data: ReportData) -> tuple[Ref, ...]:
    """The stored architecture of an entry of the result: by role and letters, of a seed by its trial too."""
    seed = read.whole(entry.get("seed"))
    trials = {each.id: each.seed for each in data.trials}
    for each in data.architectures:
        if (each.role, each.string) == (entry.get("role"), entry.get("string")) and (
            seed is None or each.trial is None or trials.get(each.trial) in (seed, None)
        ):
            return (Ref("architecture", each.id), *retrainings(each.id, data))
    return ()


def retrainings(architecture: str, data: ReportData) -> list[Ref]:
    """Trials that have retrained a stored architecture."""
    return [Ref("trial", each.id) for each in data.trials if each.architecture == architecture]
