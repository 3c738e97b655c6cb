"""What each block of a pruned path buys in held-out nats, with its standard error, and costs in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nas.report import read, svg, words
from nas.report.axis import Axis
from nas.report.data import ReportData
from nas.report.document import Line, Paragraph, Picture, Section, Table
from nas.report.looks import UNKNOWN, Looks
from nas.report.probabilities import MOST_SEEDS, origin
from nas.report.seeds import Seed, labels_of, looks_of, seeds_of

_HIGH = 72.0


@dataclass(frozen=True)
class Bought:
    """One slot of a path, against the cheapest candidate that was tried in its place.

    Args:
        own: label of its block.
        other: label of the other; None where none was tried.
        nats: rise of held-out loss with the other, nats per token.
        se: its standard error.
        ms: what the block takes more than the other; None where it is not known.
        z: of the block's alpha; negative where its gradient asks for the block.
    """

    own: str
    other: str | None
    nats: float | None
    se: float | None
    ms: float | None
    z: float | None
    undecided: bool


def bought(seed: Seed, labels: Sequence[str], slot_ms: Mapping[str, float | None]) -> list[Bought]:
    """(L,) of a seed whose parsimony pass has compared something; [] without."""
    evidence = seed.evidence
    if not evidence.path or not evidence.effect_nats or not evidence.effect_se:
        return []
    found = []
    for slot, own in enumerate(evidence.path):
        nats = evidence.effect_nats[slot]
        tried = [
            index for index, value in enumerate(nats) if index != own and value is not None and index < len(labels)
        ]
        other = min(tried, key=lambda index: slot_ms.get(labels[index]) or 0.0, default=None)
        costs = [slot_ms.get(labels[index]) for index in (own, other) if index is not None and index < len(labels)]
        known = [cost for cost in costs if cost is not None]
        found.append(
            Bought(
                own=labels[own] if own < len(labels) else "?",
                other=None if other is None else labels[other],
                nats=None if other is None else nats[other],
                se=None if other is None else evidence.effect_se[slot][other],
                ms=known[0] - known[1] if len(known) == 2 else None,
                z=evidence.z[slot][own] if evidence.z else None,
                undecided=slot in seed.undecided,
            )
        )
    return found


def section(data: ReportData) -> Section | None:
    """None where no seed has compared anything."""
    labels, drawn = labels_of(data), looks_of(data)
    costs = {label: read.number(ms) for label, ms in read.mapping(read.at(data.found, "search", "slot_ms")).items()}
    shown = [(seed, found) for seed in seeds_of(data) if (found := bought(seed, labels, costs))]
    if not shown:
        return None
    pictures = [_picture(data, seed, found, drawn) for seed, found in shown[:MOST_SEEDS]]
    meaning = (
        "The parsimony pass takes a path apart, slot by slot: path and variant start from the same weights, are "
        "fine-tuned alike, and are scored on the same held-out windows. What the loss rises by without a block is what "
        "it buys. Each comparison was made with the other slots as they stood then, with shared weights and not "
        "retrained ones."
    )
    path = f"/api/v1/searches/{data.search_id}/probabilities?evidence=true"
    return Section("buys", "What each block buys", (Paragraph(meaning), *pictures), (path,))


def _picture(data: ReportData, seed: Seed, found: Sequence[Bought], drawn: Looks) -> Picture:
    axis = Axis(len(found))
    ends = [0.0, *(each.nats + sign * (each.se or 0) for each in found if each.nats is not None for sign in (-1, 1))]
    low, high = min(ends), max(max(ends), 1e-9)
    most = max([abs(each.ms) for each in found if each.ms is not None], default=0.0)

    def y(nats: float) -> float:
        return 6 + (high - nats) / (high - low) * _HIGH

    half = (axis.column - 2) / 2
    parts = [
        svg.tag("path", d=f"M{axis.x(0):g} {svg.place(y(0))}h{svg.place(axis.column * len(found))}", class_="zero")
    ]
    for slot, each in enumerate(found):
        left = axis.x(slot)
        if each.nats is not None:
            colour = drawn.get(each.own, UNKNOWN).colour
            top, bottom = sorted((y(each.nats), y(0)))
            parts.append(svg.tag("rect", x=left + 0.5, y=top, width=half, height=bottom - top, fill=colour))
            if each.se is not None:
                middle, whisker = left + 0.5 + half / 2, min(3.0, half / 2)
                ends_ = (svg.place(y(each.nats - each.se)), svg.place(y(each.nats + each.se)))
                d = f"M{svg.place(middle)} {ends_[0]}V{ends_[1]}" + "".join(
                    f"M{svg.place(middle - whisker)} {end}h{svg.place(2 * whisker)}" for end in ends_
                )
                parts.append(svg.tag("path", d=d, class_="mark"))
        if each.ms is not None and most > 0 and each.ms > 0:
            height = each.ms / most * (y(0) - 6)
            parts.append(svg.tag("rect", x=left + 1 + half, y=y(0) - height, width=half, height=height, class_="ms"))
    bottom = 6 + _HIGH
    title = f"Seed {seed.seed}: what each block buys"
    meaning = (
        f"Left bar of a slot: nats per token that the loss rises by without its block, up to {words.fixed(high, 4)}, "
        f"with one standard error either way. Right bar, grey: milliseconds that it takes, up to {words.fixed(most)}. "
        "Below, the path; ? and a stroke mark a slot where a cheaper block does as well within its error."
    )
    names = [axis.name(y(0) - 8, "nats | ms"), axis.name(bottom + 20, "path")]
    strip = axis.strip(bottom + 6, [each.own for each in found], drawn, [i for i, x in enumerate(found) if x.undecided])
    drawing = svg.drawing(
        f"buys-{seed.seed}",
        axis.width,
        bottom + 48,
        title,
        meaning,
        [*parts, *names, *strip, *axis.numbers(bottom + 42)],
    )
    return Picture(title, meaning, drawing, (_table(data, seed, found, drawn),))


def _table(data: ReportData, seed: Seed, found: Sequence[Bought], drawn: Looks) -> Table:
    rows: list[tuple[Line, ...]] = [
        (
            str(slot + 1),
            f"{drawn.get(each.own, UNKNOWN).letter} {each.own}",
            words.NONE if each.nats is None else f"{words.signed(each.nats)} ± {words.fixed(each.se, 4)}",
            words.signed(each.ms, 3),
            words.signed(each.z, 1),
            each.other or "nothing tried",
            "undecided" if each.undecided else "",
        )
        for slot, each in enumerate(found)
    ]
    caption = [
        f"seed {seed.seed}: nats per token ± one standard error, 1 seed; ms by the latency table; z of the block's "
        "alpha, negative where its gradient asks for the block",
        *origin(seed, data),
    ]
    head = ("slot", "block", "buys, nats", "takes, ms", "z", "against", "")
    return Table(caption, head, tuple(rows), frozenset((0, 2, 3, 4)))
