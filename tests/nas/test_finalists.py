"""Whole networks by shared weights: which are looked at, and where a pass within a budget begins."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import pytest
import torch
from torch import Generator, Tensor

from nas import finalists
from nas.finalists import Choices, distinct, look_at
from nas.search import Search
from nas.steps import StepRecord
from tests import tiny

N_SLOTS, N_CANDIDATES = 8, 5
ALLOWED = [[True] * N_CANDIDATES] * (N_SLOTS - 1) + [[True] + [False] * (N_CANDIDATES - 1)]


def source(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def harm(path: Choices) -> Tensor:
    """(2,) losses: of each choice in its slot, 0 of the first candidate, and of each neighbours that differ."""
    found = sum((choice * (slot + 1)) % 7 for slot, choice in enumerate(path))
    return torch.tensor([found, found + 1.0]) + sum(a != b for a, b in pairwise(path))


def fits(path: Choices) -> bool:
    return sum(path) >= 6


def test_where_few_fit_all_of_them_are_scored() -> None:
    allowed = [[True, True, False], [True, True, True], [False, False, True]]
    found = look_at(harm, [(1, 0, 2)], allowed, lambda path: sum(path) <= 3, 6, source())
    assert set(found) == {(0, 0, 2), (0, 1, 2), (1, 0, 2)}
    assert all(torch.equal(losses, harm(path)) for path, losses in found.items())


def test_among_many_what_is_looked_at_fits_is_allowed_and_is_no_more_than_was_asked_for() -> None:
    start = (4, 4) + (0,) * 6
    found = look_at(harm, [start], ALLOWED, fits, 100, source())
    assert len(found) == 100
    assert next(iter(found)) == start
    assert all(fits(path) for path in found)
    assert all(ALLOWED[slot][choice] for path in found for slot, choice in enumerate(path))
    assert look_at(harm, [start], ALLOWED, fits, 100, source()).keys() == found.keys()


@pytest.mark.parametrize("seed", range(5))
def test_what_evolves_is_better_than_as_many_draws(seed: int) -> None:
    start = (4, 4) + (0,) * 6
    found = look_at(harm, [start], ALLOWED, fits, 200, source(seed))
    drawn = torch.randint(N_CANDIDATES, (2000, N_SLOTS), generator=source(seed)).tolist()
    others = [(*path[:-1], 0) for path in drawn if fits((*path[:-1], 0))][:200]
    assert len(others) == 200
    evolved = sorted(float(each[0]) for each in found.values())
    assert sum(evolved[:10]) < sum(sorted(float(harm(path)[0]) for path in others)[:10])


def test_where_nothing_else_fits_the_start_is_all() -> None:
    start = (0,) * N_SLOTS
    assert list(look_at(harm, [start], ALLOWED, lambda path: not any(path), 100, source())) == [start]


def test_of_one_network_in_other_slots_the_best_place_is_told() -> None:
    losses = {(0, 2, 1): 3.0, (2, 0, 1): 1.0, (0, 1, 2): 2.0, (1, 0, 2): 4.0, (2, 2, 2): 5.0}
    found = distinct({path: torch.tensor([nats]) for path, nats in losses.items()}, [False, False, True])
    assert found == [((2, 0, 1), 1.0), ((1, 0, 2), 4.0), ((2, 2, 2), 5.0)]


# -- in a search ------------------------------------------------------------------------------------------------------

METHOD = {"n_steps": 416, "prune_steps": 2, "prune_windows": 8, "report_every": 100, "checkpoint_every": 1000}


def begun(budget: dict[str, Any], lead: Choices = (0, 0)) -> Search:
    """A search whose parsimony pass has not compared anything, alpha led by the given path."""
    request = tiny.request(method=METHOD, budget=budget)
    search = Search(request, parts=tiny.parts(request), table=tiny.table(request.space))
    search.step = search.end - 1
    search.alphas.n_updates = 1
    search.alphas.values.data[:] = torch.nn.functional.one_hot(torch.tensor(lead), 5) * 3.0
    search.advance()
    assert search.pruning is not None
    return search


def scored(search: Search, path: Choices) -> Tensor:
    search.supernet.eval()
    found = search.losses(search.path_nats(path), search.ranked_on)
    search.supernet.train()
    return found


def test_what_alpha_takes_is_too_dear_so_the_pass_begins_at_the_best_that_fits() -> None:
    search = begun({"latency": {"ms": 5.5}})  # 7 with attention twice, as alpha has it
    fitting = [path for path in product(range(5), repeat=2) if search.affordable(path)]
    assert 1 < len(fitting) < 25
    means = {path: float(scored(search, path).double().mean()) for path in fitting}
    best = min(means, key=means.__getitem__)
    assert search.finalists[0] == (best, means[best])
    assert [nats for _, nats in search.finalists] == sorted(nats for _, nats in search.finalists)
    own = tuple(search._affordable_path())
    assert search.pruning is not None
    if means[own] - means[best] > 0.02:  # far beyond the error of windows this alike
        assert tuple(search.pruning.path) == best
    else:
        assert tuple(search.pruning.path) in (own, best)


@pytest.mark.parametrize("budget", [{}, {"latency": {"ratio_to_parent": 2.0}}], ids=["free", "with room"])
def test_what_alpha_takes_is_where_the_pass_begins_where_it_fits(budget: dict[str, Any]) -> None:
    search = begun(budget, lead=(4, 1))
    assert search.pruning is not None
    assert search.pruning.path == [4, 1]
    assert len(search.finalists) == finalists._KEPT


def test_looks_train_and_draw_nothing() -> None:
    request = tiny.request(method=METHOD)
    search = Search(request, parts=tiny.parts(request), table=tiny.table(request.space))
    weights = {name: value.detach().clone() for name, value in search.weights.items()}
    states = {name: each.get_state() for name, each in search.generators.items()}
    _, found = finalists.finalists(search, (0, 0))
    assert len(found) == finalists._KEPT
    assert all(torch.equal(value, weights[name]) for name, value in search.weights.items())
    assert all(torch.equal(each.get_state(), states[name]) for name, each in search.generators.items())
    assert search.supernet.training


def test_records_of_the_pass_name_them() -> None:
    request = tiny.request(method={**METHOD, "n_steps": 32, "report_every": 8})
    search = Search(request, parts=tiny.parts(request), table=tiny.table(request.space))
    records: list[StepRecord] = list(search.run())
    assert records[0].finalists is None
    assert records[-1].finalists == [list(path) for path, _ in search.finalists]
    assert records[-1].finalist_nats == [nats for _, nats in search.finalists]
