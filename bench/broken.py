"""Engines that are broken on purpose: what bench/planted.py must not pass. Each is the real search but for one thing.

`frozen`         alpha never moves
`sign-flipped`   alpha climbs the loss
`shuffled`       a slot's evidence goes to the next slot's alpha
`detached`       the budget presses with no gradient
`same-data`      alpha, and all that ranks, reads what the weights learn on
`constant-tau`   temperature stays where it began, and says so: that records are held against the schedule
`no-warm-up`     alpha moves from the first update on
`always-AAA`, `always-SSS`  no search at all

What no judge of stacks and records sees is a temperature that stays while the records tell the schedule: on `offset`
(800 updates, seed 0) such an engine went from `SSA` to `AS.`, as the sound one did. Nothing here shows that a falling
temperature is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from nas.alphas import Alphas
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.data.parts import Parts
from nas.pressure import Pressure
from nas.search import Search

Engine = Callable[[SearchRequest, Parts, LatencyTable], Search | str]
"""To a search that has not begun, or to the answer that it has always had, by letters."""


class _Frozen(Search):
    def _alpha_step(self) -> None:
        """Nothing."""


class _Gradients(Alphas):
    """Alphas that are told other gradients than there were."""

    def __init__(self, search: Search, change: Callable[[Tensor], Tensor]) -> None:
        begins = search.alphas.values.detach()
        super().__init__(begins, search.allowed, search.method, search.generators["signs"])
        self.change = change

    def update(self, data: Tensor, penalties: Tensor | None = None) -> None:
        super().update(self.change(data), None if penalties is None else self.change(penalties))


class _Detached(Pressure):
    def penalty(self, probabilities: Tensor, step: int) -> Tensor | float:
        return super().penalty(probabilities.detach(), step)


class _ConstantTau(Search):
    def _tau(self) -> float:
        return self.method.tau_start


def _sound(request: SearchRequest, parts: Parts, table: LatencyTable) -> Search:
    return Search(request, parts=parts, table=table)


def _frozen(request: SearchRequest, parts: Parts, table: LatencyTable) -> Search:
    return _Frozen(request, parts=parts, table=table)


def _constant_tau(request: SearchRequest, parts: Parts, table: LatencyTable) -> Search:
    return _ConstantTau(request, parts=parts, table=table)


def _with_gradients(change: Callable[[Tensor], Tensor]) -> Engine:
    def make(request: SearchRequest, parts: Parts, table: LatencyTable) -> Search:
        search = _sound(request, parts, table)
        search.alphas = _Gradients(search, change)
        return search

    return make


def _detached(request: SearchRequest, parts: Parts, table: LatencyTable) -> Search:
    search = _sound(request, parts, table)
    search.pressure = _Detached(search.method, search.pressure.bounds)
    return search


def _same_data(request: SearchRequest, parts: Parts, table: LatencyTable) -> Search:
    return _sound(request, replace(parts, alpha=parts.weights), table)


def _no_warm_up(request: SearchRequest, parts: Parts, table: LatencyTable) -> Search:
    method = request.method.model_copy(update={"warmup_share": 0.0})
    return _sound(request.model_copy(update={"method": method}), parts, table)


def _always(letters: str) -> Engine:
    return lambda request, parts, table: letters


SOUND = "sound"
ENGINES: dict[str, Engine] = {
    SOUND: _sound,
    "frozen": _frozen,
    "sign-flipped": _with_gradients(torch.neg),
    "shuffled": _with_gradients(lambda gradient: gradient.roll(1, dims=0)),
    "detached": _detached,
    "same-data": _same_data,
    "constant-tau": _constant_tau,
    "no-warm-up": _no_warm_up,
    "always-AAA": _always("AAA"),
    "always-SSS": _always("SSS"),
}
