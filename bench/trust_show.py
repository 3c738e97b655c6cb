"""The table of `bench/trust.py`: how each supernet agrees with trainings apart, and these with each other."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bench.kept import commit
from bench.trust_account import FAMILIES, Account, account
from nas.trust import Agreement, Regret, Trust, agreement, trust, within_bands

GOALS = {"overall": 0.8, "within_bands": 0.5}


@dataclass(frozen=True)
class Compared:
    """Stacks that one supernet has scored and that were trained apart, by their letters.

    Args:
        part: of the bench.
        seed: of the supernet.
        scores: nats by shared weights, at each place that the same network may stand.
        losses: test nats of each seed trained apart, the first seed first.
        costs: milliseconds.
        steps: updates until a planted task was solved, by seed; None: such a part has no end but the last update.
        repeats: losses of the same training with several seeds, each a list; what one seed's loss is worth.
    """

    part: str
    seed: int
    scores: Mapping[str, Sequence[float]]
    losses: Mapping[str, Sequence[float]]
    costs: Mapping[str, float]
    steps: Mapping[str, Sequence[float]] | None
    repeats: Sequence[Sequence[float]]

    def score(self, stack: str) -> float:
        return float(np.mean(self.scores[stack]))

    def loss(self, stack: str) -> float:
        return float(np.mean(self.losses[stack]))

    @property
    def trust(self) -> Trust:
        stacks = list(self.scores)
        spread = pooled([each for each in self.repeats if len(each) > 1])
        return trust(
            [self.score(stack) for stack in stacks],
            [self.loss(stack) for stack in stacks],
            [self.costs[stack] for stack in stacks],
            errors=spread and [spread / math.sqrt(len(self.losses[stack])) for stack in stacks],
        )

    @property
    def repeated(self) -> list[str]:
        """Stacks that were trained with a second seed."""
        return [stack for stack, losses in self.losses.items() if len(losses) > 1]

    @property
    def ceiling(self) -> Trust | None:
        """The same with a second seed's training as the score and the first one's as the truth; None without any.

        Both are noisy, where a score need not be: a perfect one would agree better with one seed than two seeds do.
        """
        both = self.repeated
        if not both:
            return None
        second, first = ([self.losses[stack][seed] for stack in both] for seed in (1, 0))
        return trust(second, first, [self.costs[stack] for stack in both])

    def against_first(self) -> Trust:
        """The scores of the ceiling's stacks against the ceiling's truth."""
        both = self.repeated
        first = [self.losses[stack][0] for stack in both]
        return trust([self.score(stack) for stack in both], first, [self.costs[stack] for stack in both])

    def of_same_blocks(self, scores: Mapping[str, float], losses: Mapping[str, float]) -> Agreement:
        """Agreement over pairs that hold the same blocks in another order: what a rule of placement would rest on."""
        kinds = ["".join(sorted(stack)) for stack in scores]
        number = {kind: 1.0 + place for place, kind in enumerate(dict.fromkeys(kinds))}
        # A band of no width about a number for each kind.
        costs = [number[kind] for kind in kinds]
        return within_bands([*scores.values()], [losses[stack] for stack in scores], costs, band=0)

    @property
    def same_blocks(self) -> Agreement:
        stacks = list(self.scores)
        return self.of_same_blocks(
            {each: self.score(each) for each in stacks}, {each: self.loss(each) for each in stacks}
        )

    @property
    def ceiling_of_same_blocks(self) -> Agreement:
        second, first = ({each: self.losses[each][seed] for each in self.repeated} for seed in (1, 0))
        return self.of_same_blocks(second, first)

    @property
    def by_order(self) -> Agreement | None:
        """Agreement with the table's own order: how soon a task was solved, then the loss. Losses of what solved it
        say little, since each training ended as it did."""
        if self.steps is None:
            return None
        stacks = list(self.scores)
        steps = [float(np.mean(self.steps[stack])) for stack in stacks]
        order = np.lexsort(([self.loss(stack) for stack in stacks], steps))
        return agreement([self.score(stacks[number]) for number in order], np.arange(len(stacks)))

    @property
    def same_network(self) -> float | None:
        """Standard deviation of one network's scores over the places it may stand, over that of all stacks' scores: 0
        where shared weights say the same of the same, 1 where they say nothing."""
        placed = [scores for scores in self.scores.values() if len(scores) > 1]
        between = float(np.std([self.score(stack) for stack in self.scores], ddof=1)) if len(self.scores) > 1 else 0.0
        within = pooled(placed)
        return None if within is None or between == 0 else within / between

    @property
    def behind(self) -> float | None:
        """Median nats by which a score lies above the loss that a stack reaches alone."""
        return float(np.median([self.score(each) - self.loss(each) for each in self.scores])) if self.scores else None

    @property
    def accounts(self) -> dict[str, Account | None]:
        """Of scores, and of losses alone."""
        return {
            "scores": account({each: self.score(each) for each in self.scores}),
            "trainings": account({each: self.loss(each) for each in self.scores}),
        }


def pooled(groups: Sequence[Sequence[float]]) -> float | None:
    """Standard deviation within groups of two or more; None of none."""
    if not groups:
        return None
    squares = sum(float(np.var(each)) * len(each) for each in groups)
    return math.sqrt(squares / sum(len(each) - 1 for each in groups))


def show(found: Sequence[Compared], missing: Sequence[str]) -> None:
    """Print all that is there; the last line is one JSON object."""
    print(
        "tau by shared weights against trainings apart (95% over stacks); goals: 0.8 overall, 0.5 within bands of 5%\n"
    )
    print(
        "| part | score | stacks | tau | within 5% of cost | same blocks, other order | best fifth "
        "| regret of the best 5, nats | tau with the table's order | same network | score less loss |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    for each in found:
        first = each is next(other for other in found if other.part == each.part)
        told, by_order, ceiling = each.trust, each.by_order, each.ceiling
        cells = [each.part, f"supernet {each.seed}", str(len(each.scores)), *_cells(told, each.same_blocks)]
        cells += ["" if by_order is None else _tau(by_order), _number(each.same_network, "{:.2f}")]
        print(f"| {' | '.join([*cells, _number(each.behind, '{:+.3f}')])} |")
        same = None if ceiling is None else each.against_first()
        if first and ceiling is not None and same is not None:
            cells = [each.part, "another seed alone", str(ceiling.overall.n)]
            print(f"| {' | '.join([*cells, *_cells(ceiling, each.ceiling_of_same_blocks), '', '', ''])} |")
            cells = [each.part, f"supernet {each.seed}, these", str(same.overall.n)]
            print(f"| {' | '.join([*cells, *_cells(same, None), '', '', ''])} |")
        rows.append(
            {
                "part": each.part,
                "seed": each.seed,
                **asdict(told),
                "met": {name: _met(getattr(told, name), goal) for name, goal in GOALS.items()},
                "same_blocks": asdict(each.same_blocks),
                "by_order": by_order and asdict(by_order),
                "ceiling": ceiling and asdict(ceiling),
                "ceiling_of_same_blocks": ceiling and asdict(each.ceiling_of_same_blocks),
                "on_ceilings_stacks": same and asdict(same),
                "same_network": each.same_network,
                "score_less_loss": each.behind,
                "account": {side: told and asdict(told) for side, told in each.accounts.items()},
            }
        )
    for row in rows:
        for name in ("overall", "within_bands", "top", "regret"):
            if reason := row[name]["reason"]:
                print(f"{row['part']}, supernet {row['seed']}, {name}: {reason}")
    _show_accounts(found)
    print("\nmissing: " + ("; ".join(missing) or "nothing"))
    print(json.dumps({"bench": "trust", "commit": commit(), "goals": GOALS, "rows": rows, "missing": list(missing)}))


def _show_accounts(found: Sequence[Compared]) -> None:
    print("\nwhat their blocks explain, by least squares; nats that one more block takes off; tau with what is named\n")
    print(f"| part | of | explained | {' | '.join(FAMILIES)} | more blocks | SGU before attention |")
    print(f"| --- | --- | --- | {'--- | ' * len(FAMILIES)}--- | --- |")
    for each in found:
        for side, told in each.accounts.items():
            if told is not None:
                cells = [f"{told.explained:.0%}", *(f"{nats:.3f}" for nats in told.buys.values())]
                cells += [f"{told.by_count:.2f}", _number(told.by_order, "{:.2f}")]
                print(f"| {each.part} | {side}, supernet {each.seed} | {' | '.join(cells)} |")


def _cells(told: Trust, same_blocks: Agreement | None) -> list[str]:
    overall, within = told.overall, told.within_bands
    return [
        f"{_tau(overall)}{_verdict(overall, GOALS['overall'])}",
        f"{_tau(within)}{_verdict(within, GOALS['within_bands'])}, {within.n_pairs} pairs",
        "" if same_blocks is None else f"{_tau(same_blocks)}, {same_blocks.n_pairs} pairs",
        f"{_tau(told.top)}, {told.top.n} stacks",
        _regret(told.regret),
    ]


def _tau(found: Agreement) -> str:
    if found.tau is None:
        return "-"
    return f"{found.tau:.2f}" + ("" if found.low is None else f" ({found.low:.2f} to {found.high:.2f})")


def _regret(found: Regret) -> str:
    if found.loss is None:
        return "-"
    interval = "" if found.low is None else f" ({found.low:.3f} to {found.high:.3f})"
    in_errors = "" if found.standard_errors is None else f", {found.standard_errors:.1f} standard errors"
    return f"{found.loss:.3f}{interval}{in_errors}; {found.by_chance:.3f} by chance"


def _met(found: Agreement, goal: float) -> bool | None:
    return None if found.tau is None else found.tau >= goal


def _verdict(found: Agreement, goal: float) -> str:
    return "" if found.tau is None else ", met" if found.tau >= goal else ", **missed**"


def _number(value: Any, form: str) -> str:
    return "" if value is None else form.format(value)
