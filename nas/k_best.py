"""The runners-up of a search: the next best networks by the same scores, within the same bounds. No torch here."""

from __future__ import annotations

from collections.abc import Sequence

from nas.architecture import Architecture
from nas.budgets import BoundedCost
from nas.config.request import SearchRequest
from nas.constrain import frame, of_bound
from nas.cost import LatencyTable
from nas.derive import ranked
from nas.exact.constraint import assemble
from nas.exact.solve import best
from nas.steps import StepRecord


def k_best(
    request: SearchRequest, table: LatencyTable, record: StepRecord, bounds: Sequence[BoundedCost], k: int
) -> list[Architecture]:
    """The k best distinct networks of a search's last record, best first; fewer where there are no more.

    The first is the derived one. Behind a parsimony pass its finalists follow, whole networks that did best by shared
    weights before it (nas.finalists), and then, as where there was no pass, what the exact derivation finds next: by
    the nats that the pass measured, or by log-probability. What was never tried has no nats of its own: it counts as
    good where alpha could not tell it from the path's, else as many as its log-probability lies behind. All this names
    what is worth a training of its own; that training says which is best.

    Args:
        request: of the search.
        table: for ties.
        record: the last one.
        bounds: all of which hold.
        k: how many.

    Raises:
        InvalidInput: k is not positive, or so many networks tie that the k best cannot be told apart.
        SearchFailed: a probability is not a number, or alpha decided nothing and no pass did.
    """
    space, slot_costs = request.space, table.slot_ms(request.space)
    found = ranked(space, slot_costs, record, "probability" if record.path is None else "nats")
    problem = assemble(frame(space, found.scores, slot_costs), [of_bound(bound) for bound in bounds])
    answers = [each.choices for each in best(problem, k)]
    finalists = [tuple(each) for each in record.finalists or () if all(bound.holds(each) for bound in bounds)]
    networks: dict[tuple[str, ...], Architecture] = {}
    for choices in (*answers[:1], *finalists, *answers[1:]):
        labels = tuple(space.labels[choice] for choice in choices)
        architecture = Architecture(labels, space.candidates, found.undecided)
        networks.setdefault(architecture.word, architecture)
    return list(networks.values())[:k]
