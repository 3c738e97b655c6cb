"""Where attention goes in N blocks at a ratio p : 1, at any depth: by the PAR rules, or by the rule of a search.

Mandava et al. 2020 (arXiv:2009.04534), by the reading of par-search.md section 5.3: p : 1 is all blocks : attention
blocks (correction 1 there); attention stands in the first two thirds only. *Uniform* spacing is our canonical reading
of "placed uniformly there"; *stride* is the constant-gap layout of a public implementation. They coincide at the
paper's main case, 32 blocks at 5 : 1. One paper's finding on one model: a suggestion, not a measurement.

The rule of a search is carried to another depth by the same two spacings, inside the part of the depth where the search
put attention; that is ours, and as little measured at the new depth.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.rule_layout import Counts, broken, place
from nas.rules import RuleStatement, count, slots_text
from nas.statement import Statement, Verdict

Spacing = Literal["uniform", "stride"]
Zone = Literal["found", "paper"]
CUT = Fraction(2, 3)  # attention stands before this share of the depth
MAX_SLOTS = 512  # as many as a search may have


@dataclass(frozen=True)
class Layout:
    """A rule at one depth.

    Args:
        labels: the label of each slot.
        string: a letter a slot.
        attention: attention slots, counted from 0.
        ratio: all blocks : attention blocks that was asked for.
        statement: one line for people; slots are counted from 1 there.
        verdict: of the rule; of a layout that was not trained for it, suggested at best.
    """

    labels: tuple[str, ...]
    string: str
    attention: tuple[int, ...]
    ratio: Fraction
    statement: str
    verdict: Verdict


def attention_positions(
    n_blocks: int,
    ratio: Fraction | int,
    *,
    spacing: Spacing = "uniform",
    zone: tuple[Fraction, Fraction] = (Fraction(0), CUT),
) -> tuple[int, ...]:
    """Positions of the attention blocks, counted from 0, increasing; all other blocks are FFN.

    Args:
        n_blocks: N.
        ratio: p, all blocks : attention blocks; floor(N / p) blocks are attention.
        spacing: "uniform": first and last of the zone, gaps differing by at most one; "stride": one gap.
        zone: shares of the depth between which attention stands, the paper's first two thirds by default: from
            floor(N * first) to floor(N * second) - 1, and one block at least.

    Raises:
        InvalidInput: no block, no attention at this ratio, or more than the zone holds.
    """
    if n_blocks < 1:
        raise InvalidInput(f"n_blocks is {n_blocks}; it must be at least 1")
    if ratio <= 0:
        raise InvalidInput(f"ratio is {ratio}; it must be positive, such as 5 for one attention block in five")
    n_attention = int(n_blocks / Fraction(ratio))
    first = int(zone[0] * n_blocks)
    room = max(int(zone[1] * n_blocks) - first, 1)
    if n_attention < 1:
        raise InvalidInput(f"ratio {ratio} leaves no attention in {n_blocks} blocks; at most {n_blocks} is possible")
    if n_attention > room:
        where = "the first two thirds" if zone == (Fraction(0), CUT) else slots_text(range(first, first + room))
        raise InvalidInput(
            f"ratio {ratio} asks for {n_attention} attention blocks; there is room for {room} in {where} of {n_blocks}"
        )
    if spacing == "stride":
        gap = (room + room // n_attention) // n_attention
        return tuple(first + index * gap for index in range(n_attention))
    if n_attention == 1:
        return (first,)
    return tuple(first + index * (room - 1) // (n_attention - 1) for index in range(n_attention))


def apply_rule(
    rule: RuleStatement,
    request: SearchRequest,
    n_slots: int,
    *,
    ratio: Fraction | None = None,
    zone: Zone = "found",
    spacing: Spacing = "uniform",
) -> Layout:
    """The layout of a search's rule at another depth. Slots without attention take the block chosen most often there.

    Args:
        rule: what the search found.
        request: of that search: its labels, and what the rule was found at.
        n_slots: depth of the layout.
        ratio: all blocks : attention blocks; None: the rule's own.
        zone: "found": the part of the depth in which the seeds put attention; "paper": the first two thirds.
        spacing: as in `attention_positions`.

    Raises:
        InvalidInput: a rule that places no attention, labels that the search does not have, a depth out of range, or
            a ratio that does not fit into the zone.
    """
    if not 1 <= n_slots <= MAX_SLOTS:
        raise InvalidInput(f"n_slots is {n_slots}; it must be from 1 to {MAX_SLOTS}")
    _check_placement(rule)
    attention = _chosen(rule, request, "attention")
    other = _chosen(rule, request, None)
    slots = sorted({slot for seed in rule.attention_slots for slot in seed})
    part = (Fraction(0), CUT)
    if zone == "found":
        part = (Fraction(slots[0], rule.n_slots), Fraction(slots[-1] + 1, rule.n_slots))
    p = ratio if ratio is not None else Fraction(sum(rule.blocks), sum(map(len, rule.attention_slots)))
    positions = attention_positions(n_slots, p, spacing=spacing, zone=part)
    labels = tuple(attention if slot in positions else other for slot in range(n_slots))
    asked = [] if ratio is None else [f"ratio {ratio} as asked for"]
    asked += ["in the first two thirds as in the PAR paper"] if zone == "paper" else []
    placed = f"attention in {slots_text(positions)} of {n_slots}, {other} in the others"
    placed += f" ({', '.join(asked)})" if asked else ""
    return Layout(
        labels=labels,
        string="".join(request.space.candidate(label).letter for label in labels),
        attention=positions,
        ratio=p,
        statement=(
            f"{placed}; found by {count(rule.n_searches, 'search', 'searches')} with {count(rule.n_seeds, 'seed')} "
            f"at {_found_at(request)}: {rule.verdict}, and not measured at {count(n_slots, 'slot')}"
        ),
        verdict=rule.verdict,
    )


def apply_statement(
    statement: Statement,
    rule: RuleStatement,
    request: SearchRequest,
    n_slots: int,
    *,
    ratio: Fraction | None = None,
    d_model: int | None = None,
) -> Layout:
    """The layout of one statement: at its own depth and width the one that was retrained for it, where one was;
    elsewhere each family as often as the seeds had it, and where it says.

    Args:
        statement: of a search.
        rule: the description of the same search, which knows the blocks of each seed.
        request: of that search.
        n_slots: depth of the layout.
        ratio: all blocks : blocks of the statement's family; None: as the seeds had it.
        d_model: width it is for; None: the search's.

    Raises:
        InvalidInput: a depth out of range, one at which the family has no block, more blocks than there is room for, a
            layout that breaks the statement, or a description that names no block of the family, as one stored before
            labels were kept.
    """
    if not 1 <= n_slots <= MAX_SLOTS:
        raise InvalidInput(f"n_slots is {n_slots}; it must be from 1 to {MAX_SLOTS}")
    space = request.space
    at_home = n_slots == space.n_slots and d_model in (None, space.d_model)
    trained = _retrained(statement, space) if at_home else None
    if trained is not None and ratio is None:
        labels = trained.labels
    else:
        labels = _lay_out(statement, rule, request, n_slots, ratio)
    is_trained = trained is not None and trained.network == Architecture(labels, space.candidates).network
    verdict: Verdict = "suggested" if statement.verdict == "supported" and not is_trained else statement.verdict
    told = f"{verdict}, and {'this is the layout that was retrained' if is_trained else 'this layout was not trained'}"
    families = {candidate.label: candidate.family for candidate in space.candidates}
    n_own = sum(families[label] == statement.family for label in labels)
    if not n_own:
        raise InvalidInput(f"the rule is about {statement.family}, of which its seeds have no block to place")
    lack = broken(statement, [families[label] for label in labels])
    if lack is not None:
        raise InvalidInput(f"the {statement.kind} cannot be had at {count(n_slots, 'slot')}: {lack}")
    n_blocks = sum(families[label] != "identity" for label in labels)
    return Layout(
        labels=labels,
        string="".join(space.candidate(label).letter for label in labels),
        attention=tuple(slot for slot, label in enumerate(labels) if families[label] == "attention"),
        ratio=Fraction(n_blocks, n_own),
        statement=f"{statement.statement}; found by {count(statement.n_seeds, 'seed')} at {_found_at(request)}: {told}",
        verdict=verdict,
    )


def _retrained(statement: Statement, space: SearchSpace) -> Architecture | None:
    """What was trained for a statement; None: nothing, or a string whose letters could mean several candidates."""
    confirmation = statement.confirmation or {}
    labels = tuple(confirmation.get("slots") or ())
    if not labels:
        letters = {candidate.letter: candidate.label for candidate in space.candidates}
        if len(letters) == len(space.candidates):
            labels = tuple(letters.get(letter, "") for letter in confirmation.get("layout", ""))
    if len(labels) != space.n_slots or not set(labels) <= {*space.labels}:
        return None
    return Architecture(labels, space.candidates)


def _lay_out(
    statement: Statement, rule: RuleStatement, request: SearchRequest, n_slots: int, ratio: Fraction | None
) -> tuple[str, ...]:
    """The label of each slot by one statement alone: what is said of other families was found, but is not asked for."""
    families = {candidate.label: candidate.family for candidate in request.space.candidates}
    seeds = [[families[label] for label in seed] for seed in rule.labels]
    placed = []
    for family in sorted({family for seed in seeds for family in seed} - {"identity", "ffn"}):
        p = Fraction(sum(rule.blocks), sum(seed.count(family) for seed in seeds))
        if family == statement.family and ratio is not None:
            p = ratio
        n_blocks = int(n_slots / p)
        if n_blocks < 1 and family in (statement.family, statement.other):
            raise InvalidInput(
                f"ratio {p} leaves no {family} in {count(n_slots, 'block')}; it needs {-int(-p // 1)} blocks at least"
            )
        placed += [(_chosen(rule, request, family), family)] * n_blocks
    return place([statement], Counts(placed, _chosen(rule, request, "ffn")), n_slots)


def _found_at(request: SearchRequest) -> str:
    """Depth, width, length, data set and budget of a search, on one line: where its findings hold, if they do."""
    space, task, budget = request.space, request.task, request.budget.latency
    if budget is None:
        bound = "no latency budget"
    elif budget.ms is not None:
        bound = f"at most {budget.ms:g} ms"
    else:
        bound = f"at most {budget.ratio_to_parent:g} of the parent's latency"
    return (
        f"{space.n_slots} slots, width {space.d_model}, {task.train_length} tokens, {task.dataset}, "
        f"{request.method.n_steps} updates, {bound}"
    )


def _chosen(rule: RuleStatement, request: SearchRequest, family: str | None) -> str:
    """The label of this family that the seeds chose most often; of None, of all but attention and skipped slots.

    The first candidate of the family (of ffn for None) where the rule names no such label.
    """
    families = {candidate.label: candidate.family for candidate in request.space.candidates}
    unknown = sorted({label for seed in rule.labels for label in seed} - families.keys())
    if unknown:
        raise InvalidInput(f"the rule names label {unknown[0]!r}; its search has {', '.join(families)}")
    counts: Counter[str] = Counter()
    for number, seed in enumerate(rule.labels):
        for slot, label in enumerate(seed):
            is_wanted = families[label] == family if family else families[label] not in ("attention", "identity")
            if is_wanted and slot not in rule.undecided_slots[number]:
                counts[label] += 1
    order = [*families]
    if counts:
        return min(counts, key=lambda label: (-counts[label], order.index(label)))
    fallback = family or "ffn"
    found = [label for label in order if families[label] == fallback]
    if not found:
        raise InvalidInput(f"the layout needs a candidate of family {fallback!r}; the search has {', '.join(order)}")
    return found[0]


def _check_placement(rule: RuleStatement) -> None:
    nothing = "the rule has no placement to apply"
    if not any(rule.attention_slots):
        raise InvalidInput(f"{nothing}: no attention in any of {rule.n_slots} slots")
    if rule.undecided >= rule.n_slots * rule.n_seeds:
        raise InvalidInput(f"{nothing}: every slot of every seed is undecided")
    if rule.undecided_slots and all(
        set(attention) <= set(undecided)
        for attention, undecided in zip(rule.attention_slots, rule.undecided_slots, strict=True)
    ):
        raise InvalidInput(f"{nothing}: attention stands in undecided slots only")
