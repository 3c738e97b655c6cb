"""What a search would have derived under other constraints, from what it has stored: no training, and no torch.

Every seed is answered on its own; over seeds there is only how far their answers agree. L slots, K candidates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nas import constrain
from nas.architecture import Architecture, interleaved
from nas.budgets import counted
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.derive import Objective, Ranked, ranked
from nas.errors import InvalidInput
from nas.exact import front as exact_front
from nas.exact.conflict import explain
from nas.exact.constraint import Constraint, assemble
from nas.exact.problem import Floats, Problem
from nas.exact.program import EQUAL
from nas.exact.solve import Answer, best, feasible
from nas.steps import StepRecord

MOST_ANSWERS = 100
UNITS = {"latency": "ms", "parameters": "parameters", "flops": "FLOPs", "cache_bytes": "bytes"}


@dataclass(frozen=True)
class Cost:
    """What architectures of a space cost in one way.

    Args:
        unit: of all numbers.
        slot_costs: what each candidate adds, (K,).
        offset: what everything else costs.
        parent: what the interleaved parent costs; None where the space cannot build it.
    """

    unit: str
    slot_costs: tuple[float, ...]
    offset: float
    parent: float | None

    def of(self, choices: Sequence[int]) -> float:
        return self.offset + sum(self.slot_costs[choice] for choice in choices)


@dataclass(frozen=True)
class Found:
    """One architecture.

    Args:
        architecture: it, with the slots in which the search was undecided.
        score: of what was asked for, nats; the larger the better.
        log_probability: sum over slots of log softmax(alpha), nats; ties are not raised here.
        nats: held-out loss that it costs over the parsimony pass's path; None without a pass.
        guessed: slots whose nats were not measured but read from alpha.
        costs: by name.
    """

    architecture: Architecture
    score: float
    log_probability: float
    nats: float | None
    guessed: tuple[int, ...]
    costs: Mapping[str, float]


@dataclass(frozen=True)
class Answers:
    """Of one seed: the k best, and the front where it was asked for, by rising cost."""

    best: tuple[Found, ...]
    front: tuple[Found, ...] | None
    complete: bool


@dataclass(frozen=True)
class Agreement:
    """How far the best architectures of several seeds agree; no architecture is made of it.

    Args:
        n_seeds: that have an architecture.
        n_networks: different networks among theirs.
        labels: of each slot the label that most seeds have there, (L,); of equally many the first candidate.
        n_agree: how many seeds have it, (L,).
        families: least and most slots of each family over seeds.
    """

    n_seeds: int
    n_networks: int
    labels: tuple[str, ...]
    n_agree: tuple[int, ...]
    families: Mapping[str, tuple[int, int]]


def all_costs(request: SearchRequest, table: LatencyTable | None) -> dict[str, Cost]:
    """What is known of latency, parameters, FLOPs and cache bytes; what no block or table tells is left out."""
    space = request.space
    found: dict[str, Cost] = {}
    for name, unit in UNITS.items():
        if name == "cache_bytes" and (not space.causal or request.task.classifies):
            continue  # nothing is decoded token by token
        try:
            if name == "latency":
                if table is None:
                    continue
                slot_costs, offset = table.slot_ms(space), table.offset_ms
            else:
                slot_costs, offset = counted(name, request), 0.0
        except InvalidInput:  # a block that does not tell it, a table of other candidates
            continue
        parent = None
        if {"attention", "ffn"} <= {candidate.family for candidate in space.candidates}:
            by_label = dict(zip(space.labels, slot_costs, strict=True))
            parent = offset + sum(by_label[label] for label in interleaved(space).labels)
        found[name] = Cost(unit, tuple(slot_costs), offset, parent)
    return found


def answers(
    request: SearchRequest,
    costs: Mapping[str, Cost],
    record: StepRecord,
    constraints: Sequence[Constraint],
    *,
    objective: Objective = "probability",
    k: int = 1,
    front: tuple[str, int] | None = None,
) -> Answers:
    """What one seed's last record says under constraints.

    Behind a parsimony pass its path comes first where it meets them, whatever ties with it.

    Args:
        request: of the search.
        costs: of `all_costs`.
        record: the seed's last one.
        constraints: of `nas.constrain.read`.
        objective: log-probability, or minus the measured nats.
        k: how many architectures, each another network.
        front: a cost and the number of points.

    Raises:
        InvalidInput: k or the number of points is out of range, the cost is unknown, or nats were not measured.
        SearchFailed: a probability is not a number, or alpha decided nothing and it is what is asked for.
        Infeasible: no architecture meets the constraints; with the smallest set of them that is in conflict.
    """
    if not 1 <= k <= MOST_ANSWERS:
        raise InvalidInput(f"k is {k}; it must be from 1 to {MOST_ANSWERS}")
    if front is not None and front[0] not in costs:
        raise InvalidInput(f"front.cost is {front[0]!r}; of this search are known: {', '.join(costs) or 'none'}")
    space = request.space
    second = _tie_breaker(costs, len(space.candidates))
    rank = ranked(space, second, record, objective)
    held = constrain.frame(space, rank.scores, second)
    problem = assemble(held, constraints)
    found = best(problem, k)
    if not found:
        raise explain(held, constraints)
    found = _path_first(problem, found, rank)[:k]
    measured = ranked(space, second, record, "nats") if record.path is not None else None
    logs = np.log(np.maximum(np.asarray(record.probabilities, np.float64), 1e-45))

    def told(answer: Answer) -> Found:
        chosen = (np.arange(len(answer.choices)), np.asarray(answer.choices))
        labels = tuple(space.labels[choice] for choice in answer.choices)
        return Found(
            architecture=Architecture(labels, space.candidates, rank.undecided),
            score=problem.score(answer.choices),
            log_probability=float(logs[chosen].sum()),
            nats=None if measured is None else 0.0 - float(measured.scores[chosen].sum()),
            guessed=() if measured is None else tuple(int(slot) for slot in np.flatnonzero(measured.guessed[chosen])),
            costs={name: cost.of(answer.choices) for name, cost in costs.items()},
        )

    points = None
    if front is not None:
        points = exact_front.front(problem, costs[front[0]].slot_costs, front[1])
    return Answers(
        tuple(told(each) for each in found),
        None if points is None else tuple(told(each) for each in points.points),
        points is not None and points.complete,
    )


def check(request: SearchRequest, constraints: Sequence[Constraint]) -> None:
    """Whether any architecture meets the constraints, whatever a search has found.

    Raises:
        Infeasible: none does; with the smallest set of them that is in conflict.
    """
    n = len(request.space.candidates)
    held = constrain.frame(request.space, np.zeros((request.space.n_slots, n)), np.zeros(n))
    if feasible(assemble(held, constraints)) is None:
        raise explain(held, constraints)


def agreement(request: SearchRequest, architectures: Sequence[Architecture]) -> Agreement:
    """Of the best architecture of each seed; there is at least one."""
    space = request.space
    n = len(space.candidates)
    codes = constrain.frame(space, np.zeros((space.n_slots, n)), np.zeros(n)).codes
    of_label = dict(zip(space.labels, codes, strict=True))
    words = {tuple(of_label[label] for label in each.labels if of_label[label]) for each in architectures}
    labels, n_agree = [], []
    for slot in range(space.n_slots):
        counts = Counter(each.labels[slot] for each in architectures)
        top = max(space.labels, key=lambda label: counts[label])
        labels.append(top)
        n_agree.append(counts[top])
    families = {}
    for family in dict.fromkeys(candidate.family for candidate in space.candidates):
        counts_of = [each.families.count(family) for each in architectures]
        families[family] = (min(counts_of), max(counts_of))
    return Agreement(len(architectures), len(words), tuple(labels), tuple(n_agree), families)


def _tie_breaker(costs: Mapping[str, Cost], n_candidates: int) -> Floats:
    """Latency where it is known, else FLOPs; the criterion between equally good architectures, (K,)."""
    for name in ("latency", "flops"):
        if name in costs:
            return np.asarray(costs[name].slot_costs, np.float64)
    return np.zeros(n_candidates)


def _path_first(problem: Problem, found: list[Answer], rank: Ranked) -> list[Answer]:
    path = rank.path
    if path is None or not problem.holds(path) or problem.score(path) < found[0].score - EQUAL:
        return found
    word = problem.word(path)
    others = [each for each in found if problem.word(each.choices) != word]
    return [Answer(path, problem.score(path), problem.cost(path)), *others]
