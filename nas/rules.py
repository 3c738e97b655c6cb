"""What the architectures of several seeds have in common, said with its evidence.

p : 1 is all blocks : attention blocks (par-search.md, correction 1); a skipped slot holds no block. What is inferred
here is a description of what was found, so the verdict is "suggested" at best: what is tested, and may be supported,
are the statements of nas.statements, and where none of them holds the description is "not supported" either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from nas.architecture import Architecture
from nas.errors import InvalidInput
from nas.statement import Statement


@dataclass(frozen=True)
class RuleStatement:
    """Where attention was placed, in one line and in numbers.

    Args:
        statement: the line for people; slots are counted from 1 there.
        verdict: "suggested": a description; "not supported": one of which no tested statement holds (`held_against`).
        n_searches: searches behind it.
        n_seeds: seeds behind it, over all searches.
        n_slots: slots L of each architecture.
        attention_slots: attention slots of each seed, counted from 0.
        blocks: blocks of each seed, skipped slots not counted.
        ratio: all blocks : attention blocks over all seeds; None where no seed has attention.
        undecided: undecided slots over all seeds; their candidates are ties.
        labels: the chosen label of each slot, seed by seed; () in a rule stored before labels were kept.
        undecided_slots: the undecided slots of each seed, counted from 0; () as above.
        reason: of the verdict, one sentence; empty in a rule stored before it was told.
        found_at: as of a statement; None as above.
    """

    statement: str
    verdict: Literal["not supported", "suggested"]
    n_searches: int
    n_seeds: int
    n_slots: int
    attention_slots: tuple[tuple[int, ...], ...]
    blocks: tuple[int, ...]
    ratio: float | None
    undecided: int
    labels: tuple[tuple[str, ...], ...] = ()
    undecided_slots: tuple[tuple[int, ...], ...] = ()
    reason: str = ""
    found_at: Mapping[str, Any] | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RuleStatement:
        """The statement of a stored body, the JSON of `dataclasses.asdict`; fields of a newer version are left out."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: _tuples(value) for name, value in of_today(body).items() if name in known})


def of_today(body: Mapping[str, Any]) -> dict[str, Any]:
    """A rule's stored body in the words of today: an older version called "not confirmed" what is suggested."""
    if body.get("verdict") != "not confirmed":
        return dict(body)
    line = str(body.get("statement", "")).replace(": not confirmed; ", ": suggested; ", 1)
    return {**body, "verdict": "suggested", "statement": line}


def describe(architectures: Sequence[Architecture], *, n_searches: int = 1) -> RuleStatement:
    """State where the seeds put attention.

    Args:
        architectures: the derived one of each seed, all of the same depth.
        n_searches: searches that the seeds belong to.

    Raises:
        InvalidInput: no architecture, or architectures of different depths.
    """
    if not architectures:
        raise InvalidInput("a rule needs at least one derived architecture; there is none")
    depths = sorted({len(each.labels) for each in architectures})
    if len(depths) > 1:
        raise InvalidInput(f"architectures of {depths[0]} and of {depths[-1]} slots have no rule in common")
    families = [each.families for each in architectures]
    attention = tuple(tuple(i for i, family in enumerate(each) if family == "attention") for each in families)
    blocks = tuple(sum(family != "identity" for family in each) for each in families)
    n_attention = sum(map(len, attention))
    ratio = sum(blocks) / n_attention if n_attention else None
    undecided = sum(len(each.undecided) for each in architectures)
    line = f"{count(n_searches, 'search', 'searches')}, {count(len(architectures), 'seed')}: suggested; "
    if ratio is None:
        line += f"no attention in any of {count(depths[0], 'slot')} ({_others(families)})"
    else:
        line += _placement(attention, blocks, depths[0], ratio)
    if undecided:
        line += f"; {count(undecided, 'slot')} undecided"
    return RuleStatement(
        statement=line,
        verdict="suggested",
        n_searches=n_searches,
        n_seeds=len(architectures),
        n_slots=depths[0],
        attention_slots=attention,
        blocks=blocks,
        ratio=ratio,
        undecided=undecided,
        labels=tuple(each.labels for each in architectures),
        undecided_slots=tuple(each.undecided for each in architectures),
    )


def held_against(
    rule: RuleStatement, statements: Sequence[Statement], found_at: Mapping[str, Any] | None = None
) -> RuleStatement:
    """The description with a verdict that is no better than the best of what was tested.

    Args:
        rule: of `describe`.
        statements: of the same architectures, with verdicts; those about attention count, where there is any.
        found_at: where both were found.
    """
    about = [each for each in statements if rule.ratio is None or "attention" in (each.family, each.other)]
    n_held = sum(each.verdict != "not supported" for each in about)
    subject = "it" if rule.ratio is None else "attention"
    reason = f"{n_held or 'none'} of {count(len(about), 'statement')} about {subject} that are tested can be suggested"
    if not about:
        reason = f"nothing about {subject} could have come out otherwise, so nothing is tested"
    if n_held:
        return replace(rule, reason=reason, found_at=found_at)
    line = rule.statement.replace(": suggested; ", ": not supported; ", 1)
    return replace(rule, statement=line, verdict="not supported", reason=reason, found_at=found_at)


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples they were."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def _placement(attention: Sequence[Sequence[int]], blocks: Sequence[int], n_slots: int, ratio: float) -> str:
    """Where attention is over all seeds, and the ratio with its range where the seeds differ."""
    text = f"attention in {slots_text(sorted({slot for seed in attention for slot in seed}))} of {n_slots}"
    without = sum(not seed for seed in attention)
    ratios = [n / len(seed) for n, seed in zip(blocks, attention, strict=True) if seed]
    numbers = f"{ratio:.1f} : 1"
    if f"{min(ratios):.1f}" != f"{max(ratios):.1f}":
        numbers += f", by seed {min(ratios):.1f} to {max(ratios):.1f}"
    if without:
        numbers += f", {count(without, 'seed')} without any"
    return f"{text} (all blocks : attention blocks {numbers})"


def _others(families: Sequence[Sequence[str]]) -> str:
    """Where the blocks that are not skipped stand, by family, over all seeds."""
    slots: dict[str, set[int]] = {}
    for seed in families:
        for slot, family in enumerate(seed):
            if family != "identity":
                slots.setdefault(family, set()).add(slot)
    return (
        ", ".join(f"{family} in {slots_text(sorted(slots[family]))}" for family in sorted(slots)) or "all are skipped"
    )


def slots_text(slots: Sequence[int]) -> str:
    """Slots counted from 1, runs drawn together: 'slot 3', 'slots 1, 3-5'."""
    runs: list[list[int]] = []
    for slot in slots:
        if runs and slot == runs[-1][-1] + 1:
            runs[-1].append(slot)
        else:
            runs.append([slot])
    parts = [f"{run[0] + 1}-{run[-1] + 1}" if len(run) > 1 else str(run[0] + 1) for run in runs]
    return f"{'slot' if len(slots) == 1 else 'slots'} {', '.join(parts)}"
