"""A layout at a depth and width of one's own: what it costs there, and the request that trains it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from nas.architecture import Architecture
from nas.budgets import counted
from nas.config.request import SearchRequest, read_request
from nas.cost import LatencyTable
from nas.errors import InvalidInput

# Options that count heads as wide as the space's; an SGU's n_heads are groups of channels, of any width.
_HEADS = {"attention": ("n_heads", "n_kv_heads"), "mgk": ("n_heads",)}


@dataclass(frozen=True)
class Costs:
    """What the slots of a layout cost, by formula and by a stored table.

    Args:
        parameters: of the blocks and their norms.
        flops: of one sequence at the first serve mode.
        cache_bytes: that decoding keeps of one; None where a block does not tell it.
        predicted_ms: per call at the first serve mode; None where `no_latency` says why.
        latency_table: id of the table that it is predicted by.
        no_latency: why nothing is predicted.
    """

    parameters: int
    flops: int
    cache_bytes: int | None
    predicted_ms: float | None
    latency_table: str | None
    no_latency: str | None


def fixed(searched: SearchRequest, labels: Sequence[str], d_model: int | None = None) -> SearchRequest:
    """The request that trains this layout and its interleaved parent: every slot is fixed, nothing is left to search.

    Everything else is as in the search, save the width where one is given (heads keep their own where it divides, so
    that there are more or fewer of them, also where a candidate has its own number of them), the budget, which a fixed
    layout cannot be changed to meet, the updates of the search, which is of a single step and so leaves no weights to
    start from, and what was known of the data.

    Raises:
        InvalidInput: the space cannot be built at this width, or the labels are none of it.
    """
    body = searched.model_dump(mode="json")
    space, width = body["space"], d_model or searched.space.d_model
    head = searched.space.d_model // searched.space.n_heads
    n_heads = width // head if width % head == 0 else searched.space.n_heads
    for candidate in space["candidates"]:
        candidate["options"] |= _heads(candidate, Fraction(n_heads, searched.space.n_heads))
    space |= {
        "n_slots": len(labels),
        "d_model": width,
        "n_heads": n_heads,
        "layout": [{"present": label, "fixed": True} for label in labels],
    }
    families = {candidate.family for candidate in searched.space.candidates}
    body["task"] |= {"dataset_fingerprint": None, "sizes": None}
    body["trials"] |= {"n_seeds": 1, "n_samples": 1}
    body["method"] |= {"n_steps": 1, "prune_steps": 0}
    baselines = ["interleaved"] if {"attention", "ffn"} <= families else []
    body["retrain"] |= {"baselines": baselines, "confirm_seeds": 0, "start": "scratch", "k_best": 1}
    if not baselines:
        body["retrain"]["distil"] = None
    name = f"{searched.name[:80]}, its rule at {len(labels)} slots"
    return read_request({**body, "name": name, "budget": {}, "ranges": [], "latency_table": None, "preset": None})


def _heads(candidate: Mapping[str, Any], times: Fraction) -> dict[str, int]:
    """Heads of a candidate's own, as many times as many as the space has; none where that is no whole number."""
    given = {name: candidate["options"].get(name) for name in _HEADS.get(candidate["block"], ())}
    scaled = {name: number * times for name, number in given.items() if number is not None}
    if any(number.denominator > 1 for number in scaled.values()):
        return {}
    return {name: int(number) for name, number in scaled.items()}


def costs(request: SearchRequest, labels: Sequence[str], tables: Iterable[LatencyTable]) -> Costs:
    """What a layout costs at the space of a request.

    Args:
        request: as from `fixed`.
        labels: of the slots.
        tables: that may hold for this shape, best first.
    """
    space = request.space

    def total(name: str) -> int:
        by_label = dict(zip(space.labels, counted(name, request), strict=True))
        return round(sum(by_label[label] for label in labels))

    try:
        cache = total("cache_bytes") if space.causal and not request.task.classifies else None
    except InvalidInput:
        cache = None
    table = next((each for each in tables if _holds(each, request)), None)
    told = None if table is None else table.predict_ms(Architecture(tuple(labels), space.candidates), space)
    return Costs(
        parameters=total("parameters"),
        flops=total("flops"),
        cache_bytes=cache,
        predicted_ms=told,
        latency_table=None if table is None else table.id,
        no_latency=None if table is not None else "no stored latency table is of this width, length and serve mode",
    )


def _holds(table: LatencyTable, request: SearchRequest) -> bool:
    try:
        table.check(request.space, request.task.serve[0])
    except InvalidInput:
        return False
    return True
