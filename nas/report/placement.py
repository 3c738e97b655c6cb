"""Where families stand over the seeds' derived stacks, and what that amounts to as rules, each with its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nas.report import read, svg, words
from nas.report.axis import Axis
from nas.report.data import ReportData
from nas.report.document import Bullets, Line, Paragraph, Part, Picture, Ref, Section, Strong, Table, commas
from nas.report.layouts import search_of
from nas.report.looks import UNKNOWN, Look, Looks
from nas.report.ratio_range import ratio_range
from nas.report.seeds import derived_by_seed, looks_of

_ROW = 18.0
# Verdicts of versions that knew one alone.
_OLDER = {"not confirmed": "suggested"}


def statements(data: ReportData) -> list[Mapping[str, Any]]:
    """Of the result; of an older one its rule line in the same shape."""
    found = read.mappings(data.found.get("rules"))
    if found:
        return found
    line = read.mapping(data.found.get("rule"))
    if not line:
        return []
    n_seeds = read.whole(line.get("n_seeds"))
    return [{**line, "kind": "placement", "family": "attention", "n_seeds": n_seeds, "reason": _reason(n_seeds)}]


def _reason(n_seeds: int | None) -> str:
    seeds = "the seeds" if n_seeds is None else words.count(n_seeds, "seed")
    return f"it describes what {seeds} derived; nothing was retrained to confirm it"


def verdict(statement: Mapping[str, Any]) -> str:
    told = read.text(statement.get("verdict")) or "not supported"
    return _OLDER.get(told, told)


def in_words(statement: Mapping[str, Any]) -> str:
    """Its own words, without the verdict that the rule line has within it."""
    line = str(statement.get("statement") or "")
    return line.replace("not confirmed; ", "").replace(": suggested; ", ": ", 1)


def section(data: ReportData) -> Section | None:
    """None before anything was derived."""
    found = statements(data)
    parts: list[Part] = [*_picture(data)]
    if found:
        parts += [_statements(found, data), *_not_corrected(found)]
        parts += [_by_seed(found, data)] if any(read.items(each.get("by_seed")) for each in found) else []
        parts += _confirmed(found)
    if not parts:
        return None
    return Section("rules", "Rules", tuple(parts), (f"/api/v1/searches/{data.search_id}/rules",))


def kept(statement: Mapping[str, Any], data: ReportData) -> Ref | None:
    """The stored rule that a statement of the result is: by its id, else by its words."""
    own = read.text(statement.get("id"))
    for each in data.rules:
        if each.id == own or (own is None and each.statement == statement.get("statement")):
            return Ref("rule", each.id)
    return Ref("rule", own) if own else None


def _picture(data: ReportData) -> list[Picture]:
    stacks = {seed: read.texts(entry.get("slots")) for seed, entry in derived_by_seed(data).items()}
    stacks = {seed: slots for seed, slots in stacks.items() if slots}
    if not stacks:
        return []
    drawn = looks_of(data)
    n_slots = max(map(len, stacks.values()))
    families: dict[str, Look] = {}
    for slots in stacks.values():
        for label in slots:
            look = drawn.get(label, UNKNOWN)
            families.setdefault(look.family, look)
    counts = {family: _counts(stacks, family, n_slots, drawn) for family in families}
    axis = Axis(n_slots)
    boxes: dict[tuple[str, float], list[tuple[float, float, float, float]]] = {}
    over = []
    for number, (family, look) in enumerate(families.items()):
        y = 4 + number * _ROW
        over += [axis.ground(y, _ROW - 1), axis.name(y + 13, f"{look.letter} {family}")]
        for slot, count in enumerate(counts[family]):
            if count:
                share = round(count / len(stacks), 2)
                boxes.setdefault((look.colour, share), []).append((axis.x(slot), y, axis.column - 1, _ROW - 1))
    numbers = [
        svg.words(
            axis.x(slot + 0.5), 4 + number * _ROW + 13, str(count), "b" if count == len(stacks) else "t", "middle",
            families[family].ink if count == len(stacks) else None,
        )
        for number, family in enumerate(families)
        for slot, count in enumerate(counts[family])
        if count and axis.has_letters
    ]  # fmt: skip
    bottom = 4 + len(families) * _ROW
    title = f"Where each family stands over {words.count(len(stacks), 'seed')}"
    meaning = "The number in a cell says how many seeds have the family in that slot of the stack that they derived."
    drawing = svg.drawing(
        "placement", axis.width, bottom + 20, title, meaning,
        [*over, *svg.cells(boxes), *numbers, *axis.numbers(bottom + 14)],
    )  # fmt: skip
    rows: list[tuple[Line, ...]] = [
        (str(slot + 1), *(f"{counts[family][slot]} of {len(stacks)}" for family in families)) for slot in range(n_slots)
    ]
    trials = _trials(data, stacks)
    caption: Line = ["seeds with a family in a slot; of ", *commas(trials or [search_of(data)])]
    table = Table(caption, ("slot", *families), tuple(rows), frozenset(range(len(families) + 1)), folded=True)
    return [Picture(title, meaning, drawing, (table,))]


def _counts(stacks: Mapping[int, Sequence[str]], family: str, n_slots: int, drawn: Looks) -> list[int]:
    return [
        sum(slot < len(slots) and drawn.get(slots[slot], UNKNOWN).family == family for slots in stacks.values())
        for slot in range(n_slots)
    ]


def _trials(data: ReportData, seeds: Mapping[int, object]) -> list[Ref]:
    sample = read.whole(read.at(data.found, "search", "sample")) or 0
    return [
        Ref("trial", each.id)
        for each in data.trials
        if each.kind == "search" and each.sample == sample and each.seed in seeds
    ]


def _statements(found: Sequence[Mapping[str, Any]], data: ReportData) -> Table:
    rows: list[tuple[Line, ...]] = []
    for each in found:
        low, high = read.number(each.get("low")), read.number(each.get("high"))  # a ratio may have no upper end
        own = kept(each, data)
        behind = [own] if own else _trials(data, derived_by_seed(data)) or [search_of(data)]
        seeds = read.whole(each.get("n_seeds"))
        rows.append(
            (
                f"{each.get('kind', '?')}, {each.get('family', '?')}",
                in_words(each),
                [Strong(verdict(each))],
                str(each.get("reason") or "no reason was kept"),
                words.short(_value(each)),
                words.NONE if low is None else f"{low:.5g} to {'none' if high is None else format(high, '.5g')}",
                ratio_range(each) or words.NONE,
                words.short(read.number(each.get("p"))),
                words.short(read.number(each.get("p_corrected"))),
                words.NONE if seeds is None else str(seeds),
                commas(behind),
            )
        )
    head = ("of", "statement", "verdict", "reason", "value", "interval", "range", "p", "p corrected", "seeds", "from")
    caption = (
        "statements over the seeds' derived stacks; p: how often slots permuted within each seed do as well, corrected "
        "for all tests of the report; range: of a ratio from its least to its most seed"
    )
    return Table(caption, head, tuple(rows), frozenset(range(4, 10)))


def _not_corrected(found: Sequence[Mapping[str, Any]]) -> list[Paragraph]:
    """That ratios, which are intervals and no tests, are left out of the correction."""
    n = sum(each.get("kind") == "ratio" and read.number(each.get("low")) is not None for each in found)
    if not n:
        return []
    left_out = (
        "the ratio has an interval of 95% and is left out of it"
        if n == 1
        else f"the {n} ratios are left out of it, each with a 95% interval of its own, and of so many one may miss its "
        "ratio by chance"
    )
    return [Paragraph(f"The correction is of the tests alone: {left_out}.")]


def _value(statement: Mapping[str, Any]) -> float | None:
    """What a statement is of, over the seeds; where it is not told apart, the statistic that was tested."""
    own = read.number(statement.get("at"))
    return read.number(statement.get("statistic")) if own is None else own


def _by_seed(found: Sequence[Mapping[str, Any]], data: ReportData) -> Table:
    seeds = list(derived_by_seed(data))
    most = max(len(read.items(each.get("by_seed"))) for each in found)
    names = seeds if len(seeds) == most else range(most)
    rows: list[tuple[Line, ...]] = []
    for each in found:
        values = read.items(each.get("by_seed"))
        cells = [words.short(read.number(values[at])) if at < len(values) else words.NONE for at in range(most)]
        rows.append((f"{each.get('kind', '?')}, {each.get('family', '?')}", *cells))
    head = ("of", *(f"seed {seed}" for seed in names))
    caption: Line = ["the value of each seed; of ", *commas(_trials(data, derived_by_seed(data)) or [search_of(data)])]
    return Table(caption, head, tuple(rows), frozenset(range(1, most + 1)), folded=True)


def _confirmed(found: Sequence[Mapping[str, Any]]) -> list[Part]:
    """What the rules' own retrainings said, and where they were found."""
    lines: list[Line] = []
    for each in found:
        confirmation = read.mapping(each.get("confirmation"))
        if confirmation:
            told = ", ".join(f"{name.replace('_', ' ')} {_told(value)}" for name, value in confirmation.items())
            lines.append(f"{each.get('kind', '?')}, {each.get('family', '?')} was retrained: {told}")
    at = next((read.mapping(each.get("found_at")) for each in found if each.get("found_at")), {})
    parts: list[Part] = [Bullets(tuple(lines))] if lines else []
    if at:
        told = ", ".join(f"{name.replace('_', ' ')} {_told(value)}" for name, value in at.items())
        parts.append(Paragraph(f"Found at {told}. Elsewhere each of them is a suggestion."))
    return parts


def _told(value: object) -> str:
    found = read.number(value)
    if found is not None:
        return words.short(found)
    if isinstance(value, Mapping):
        return (
            ", ".join(f"{name.replace('_', ' ')} {_told(each)}" for name, each in value.items() if each is not None)
            or "none"
        )
    if isinstance(value, list | tuple):
        return " ".join(_told(each) for each in value) or "none"
    return "none" if value is None else str(value)
