"""Architecture probabilities: softmax(alpha) of each seed at the end, and on the way there. L slots, K candidates."""

from __future__ import annotations

from collections.abc import Sequence

from nas.leading import leading
from nas.report import svg, words
from nas.report.axis import Axis
from nas.report.data import Matrix, ReportData, Step
from nas.report.document import Line, Paragraph, Part, Picture, Ref, Section, Table
from nas.report.layouts import search_of
from nas.report.looks import UNKNOWN, Looks
from nas.report.seeds import Seed, labels_of, looks_of, sample_of, seeds_of
from nas.report.steps import with_matrices

_LEVELS = 20  # of lightness, so that a picture of many cells stays small
_FULL = 0.8  # from here on a cell has its own colour, whatever it stands on
_NUMBERS_FIT, _Z_FITS = 24.0, 36.0
_LETTERS_FIT = 12.0
MOST_SEEDS = 12  # that are drawn
_ROW, _ROW_WITH_Z = 18.0, 30.0

Boxes = dict[tuple[str, float], list[tuple[float, float, float, float]]]


def section(data: ReportData) -> Section | None:
    """None before the first report of a search trial."""
    seeds, labels, drawn = seeds_of(data), labels_of(data), looks_of(data)
    if not seeds:
        return None
    parts: list[Part] = [
        Paragraph(
            "softmax(alpha) of each seed, never a sample: what the gradients of held-out data ask for. Seeds are shown "
            "one by one and never averaged, since equal solutions can sit in different slots. A slot is undecided by "
            "alpha where its leader is no further ahead than random signs of the same gradients would bring it."
        )
    ]
    if len(seeds) > MOST_SEEDS:
        parts.append(Paragraph(f"The first {MOST_SEEDS} of {len(seeds)} seeds are drawn."))
    for seed in seeds[:MOST_SEEDS]:
        parts.append(_at_the_end(data, seed, labels, drawn))
        steps = _steps(data, seed)
        if len(steps) > 1:
            parts.append(_over_time(data, seed, steps, labels, drawn))
    path = f"/api/v1/searches/{data.search_id}/probabilities"
    return Section("probabilities", "Architecture probabilities", tuple(parts), (path,))


def origin(seed: Seed, data: ReportData) -> list[str | Ref]:
    """` (trial ID)` of a caption; of the search where the trial is not known."""
    return [" (trial ", seed.trial, ")"] if seed.trial else [" (search ", search_of(data), ")"]


def _at_the_end(data: ReportData, seed: Seed, labels: Sequence[str], drawn: Looks) -> Picture:
    rows, axis = seed.evidence.probabilities, Axis(len(seed.evidence.probabilities))
    numbered, z = axis.column >= _NUMBERS_FIT, seed.evidence.z if axis.column >= _Z_FITS else ()
    height = _ROW_WITH_Z if z else _ROW
    boxes: Boxes = {}
    over: list[str] = []
    for column, label in enumerate(labels):
        y = 4 + column * height
        look = drawn.get(label, UNKNOWN)
        over.append(axis.name(y + 13, f"{look.letter} {label}"))
        for slot, row in enumerate(rows):
            value = row[column] if column < len(row) else None
            if value is None:
                continue
            share = _shade(value)
            if share:
                boxes.setdefault((look.colour, share), []).append((axis.x(slot), y, axis.column - 1, height - 1))
            if numbered:
                ink = look.ink if value >= _FULL else None
                kind = "b" if ink else "t q"
                over.append(svg.words(axis.x(slot + 0.5), y + 13, f"{value * 100:.0f}", kind, "middle", ink))
                if z:
                    told = words.signed(z[slot][column], 1)
                    over.append(svg.words(axis.x(slot + 0.5), y + 25, told, "t" if ink else "t q", "middle", ink))
    bottom = 4 + len(labels) * height
    for slot in seed.by_chance:
        over.append(svg.words(axis.x(slot + 0.5), bottom + 11, "?", "t b", "middle"))
    title = f"Seed {seed.seed} after {words.count(seed.evidence.step, 'update')}"
    below = ", z of its alpha's gradient below it" if z else ""
    meaning = (
        "Candidates from top to bottom, slots from left to right; a cell is the fuller of its colour the more probable "
        f"it is{f', its number is the probability in per cent{below}' if numbered else ''}. "
        "? under a slot: undecided by alpha."
    )
    ground = [axis.ground(4 + column * height, height - 1) for column in range(len(labels))]
    drawing = svg.drawing(
        f"end-{seed.seed}", axis.width, bottom + 30, title, meaning,
        [*ground, *svg.cells(boxes), *over, *axis.numbers(bottom + 25)],
    )  # fmt: skip
    return Picture(title, meaning, drawing, (_end_table(data, seed, labels, drawn),))


def _end_table(data: ReportData, seed: Seed, labels: Sequence[str], drawn: Looks) -> Table:
    evidence = seed.evidence
    rows: list[tuple[Line, ...]] = []
    for slot, row in enumerate(evidence.probabilities):
        gap = evidence.null_gaps[slot] if evidence.null_gaps else None
        cells = [words.fixed(value) for value in row]
        if evidence.z:
            cells = [f"{cell} (z {words.signed(z, 1)})" for cell, z in zip(cells, evidence.z[slot], strict=True)]
        mark = "undecided" if slot in seed.by_chance else ""
        rows.append((str(slot + 1), *cells, words.fixed(gap), mark))
    names = [f"{drawn.get(label, UNKNOWN).letter} {label}" for label in labels]
    about = "probability" + (
        " and, behind it, z of its alpha's gradient: mean over standard error" if evidence.z else ""
    )
    caption = [
        f"seed {seed.seed}, {about}; by chance: lead in log-probability that chance alone reaches",
        *origin(seed, data),
    ]
    figures = frozenset(range(len(names) + 2))
    return Table(caption, ("slot", *names, "by chance", "by alpha"), tuple(rows), figures, folded=True)


def _steps(data: ReportData, seed: Seed) -> tuple[Step, ...]:
    """Reports that are drawn: as many as their cells allow."""
    own = [
        each for each in data.trials
        if each.kind == "search" and each.sample == sample_of(data) and each.seed == seed.seed
    ]  # fmt: skip
    shape = [len(row) for row in seed.evidence.probabilities]
    found = [step for each in own for step in each.steps if [len(row) for row in step.probabilities] == shape]
    return with_matrices(found, len(shape))


def _over_time(data: ReportData, seed: Seed, steps: Sequence[Step], labels: Sequence[str], drawn: Looks) -> Picture:
    axis = Axis(len(seed.evidence.probabilities))
    height = 14.0
    boxes: Boxes = {}
    over: list[str] = []
    for number, step in enumerate(steps):
        y = 4 + number * height
        over.append(axis.name(y + 11, str(step.step)))
        for slot, (label, value) in enumerate(_leaders(step.probabilities, labels)):
            share = _shade(value)
            if label is None or not share:
                continue
            look = drawn.get(label, UNKNOWN)
            boxes.setdefault((look.colour, share), []).append((axis.x(slot), y, axis.column - 1, height - 1))
            if axis.column >= _LETTERS_FIT:
                ink = look.ink if share >= _FULL else None
                kind = "b" if ink else "t"
                over.append(svg.words(axis.x(slot + 0.5), y + 10.5, look.letter, kind, "middle", ink))
    bottom = 4 + len(steps) * height
    ground = [axis.ground(4 + number * height, height - 1) for number in range(len(steps))]
    title = f"Seed {seed.seed}: who led, from the first to the last report"
    meaning = (
        "One row for a report, the number of weight updates at its left; each slot has the colour and the letter of "
        "its most probable candidate, the fuller the more probable, and none where several are equally probable."
    )
    drawing = svg.drawing(
        f"time-{seed.seed}", axis.width, bottom + 20, title, meaning,
        [*ground, *svg.cells(boxes), *over, *axis.numbers(bottom + 14)],
    )  # fmt: skip
    return Picture(title, meaning, drawing, (_time_table(data, seed, steps, labels, drawn),))


def _time_table(data: ReportData, seed: Seed, steps: Sequence[Step], labels: Sequence[str], drawn: Looks) -> Table:
    leaders = [_leaders(step.probabilities, labels) for step in steps]
    rows: list[tuple[Line, ...]] = []
    for slot in range(len(seed.evidence.probabilities)):
        cells = []
        for step, (label, value) in zip(steps, (each[slot] for each in leaders), strict=True):
            z = step.z[slot][labels.index(label)] if label is not None and step.z else None
            behind = "" if z is None else f" (z {words.signed(z, 1)})"
            cells.append(
                f"{'tie' if label is None else drawn.get(label, UNKNOWN).letter} {words.fixed(value, 2)}{behind}"
            )
        rows.append((str(slot + 1), *cells))
    about = "its probability and z" if any(step.z for step in steps) else "its probability"
    caption = [f"seed {seed.seed}, most probable candidate, {about}, by weight updates", *origin(seed, data)]
    head = ("slot", *(str(step.step) for step in steps))
    return Table(caption, head, tuple(rows), frozenset(range(len(head))), folded=True)


def _leaders(probabilities: Matrix, labels: Sequence[str]) -> list[tuple[str | None, float | None]]:
    """(L,) of (label, probability) of the most probable candidate; label None where several are equally probable."""
    leaders, ties = leading(probabilities, None)
    return [
        (None if slot in ties or leaders[slot] >= len(labels) else labels[leaders[slot]], row[leaders[slot]])
        for slot, row in enumerate(probabilities)
    ]


def _shade(value: float | None) -> float:
    """Opacity of a probability, in levels."""
    return 0.0 if value is None else max(0.0, min(1.0, round(value * _LEVELS) / _LEVELS))
