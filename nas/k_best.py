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

    By the nats that the parsimony pass measured, or where there was none by log-probability. What was never tried has
    no nats of its own: it counts as good where alpha could not tell it from the path's, else as many as its
    log-probability lies behind. So where a budget leaves room, the runners-up spend it on undecided slots: that such a
    block pays shows only in a longer training than the pass gives it, and so is for the retrainings to say.

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
    return [
        Architecture(tuple(space.labels[choice] for choice in each.choices), space.candidates, found.undecided)
        for each in best(problem, k)
    ]
