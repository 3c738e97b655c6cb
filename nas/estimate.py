"""What a search trial will take, before it is placed: memory and wall time.

Measured, not modelled: searches of the same shapes run some fair rounds of weight and alpha steps, and are thrown away.
Ours. L slots, K candidates.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from nas.allocations import peak_bytes
from nas.config.method import Method
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.data.parts import Parts
from nas.finalists import MOST_WINDOWS
from nas.search import Search

_ENDLESS = 10**7  # steps of a probe, so that it stays in one phase


@dataclass(frozen=True)
class Estimate:
    """Of one trial.

    Args:
        memory_bytes: held at the peak where the supernet lives: weights, moments, and a step's own.
        seconds: of all phases but the parsimony pass.
        prune_seconds: of the parsimony pass with its looks at held-out windows and its records, at most: how many
            comparisons it makes is known only in the end.
        parts: what the two are made of, in bytes and seconds.
    """

    memory_bytes: int
    seconds: float
    prune_seconds: float
    parts: dict[str, float]


def estimate(
    request: SearchRequest,
    parts: Parts,
    table: LatencyTable,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> Estimate:
    """Run a little of a trial and multiply.

    Args:
        request: resolved: one seed, no ranges.
        parts: of its data.
        table: of its space.
        device: where it will run.
        clock: seconds; wall time, unless what else runs here is to be left out.
    """
    method, n_slots, n_candidates = request.method, request.space.n_slots, len(request.space.candidates)

    def seconds_of(run: Callable[[], object]) -> float:
        _wait(device)
        began = clock()
        run()
        _wait(device)
        return clock() - began

    def step_s(probe: Search) -> float:
        return seconds_of(lambda: [probe.advance() for _ in range(n_candidates)]) / n_candidates

    weights_alone = _probe(request, parts, table, device, alpha=False)
    for _ in range(n_candidates):  # one fair round: all weights have moments then
        weights_alone.advance()
    weight_s = step_s(weights_alone)
    del weights_alone  # where a trial just has room, two have none
    both = _probe(request, parts, table, device)
    memory = _memory(both, device, n_candidates)
    alpha_s = max(0.0, step_s(both) - weight_s)
    record_s = seconds_of(lambda: both.record(tokens_per_s=None, last=False))
    paths = [[number] * n_slots for number in range(n_candidates)]
    score_s = seconds_of(lambda: [both.losses(both.path_nats(path)) for path in paths]) / n_candidates
    n_alpha = int((method.settle_start - method.warmup_steps) * method.alpha_share / (1 - method.alpha_share))
    n_rankings = 2 if method.settle_start < method.n_steps else 0
    n_looks = min(method.n_looks, math.prod(map(sum, request.space.allowed)))
    share = min(method.eval_windows, MOST_WINDOWS) / method.eval_windows
    found = {
        "weight_s": method.n_steps * weight_s,
        "alpha_s": n_alpha * alpha_s,
        "report_s": _n_records(method) * record_s,
        "rank_s": (n_rankings * (n_slots * (n_candidates - 1) + 1) + n_looks * share) * score_s,
    }
    pass_ = _of_the_pass(method, n_slots, weight_s, record_s, score_s)
    return Estimate(int(sum(memory.values())), sum(found.values()), sum(pass_.values()), {**memory, **found, **pass_})


def _of_the_pass(method: Method, n_slots: int, weight_s: float, record_s: float, score_s: float) -> dict[str, float]:
    """Seconds of the parsimony pass, at most: of its updates, of the looks at held-out windows behind them, and of its
    records.

    A first glance fine-tunes a path over a quarter of `prune_steps` and looks at it twice. Half of these are of a path
    that an edit has just changed, which is asked again, slot by slot, what each next edit would harm. As many
    comparisons as there are glances are reported.
    """
    n_updates = method.most_steps - method.n_steps
    if not n_updates:
        return {"prune_updates_s": 0.0, "prune_looks_s": 0.0, "prune_reports_s": 0.0}
    n_glances = n_updates / max(1, method.prune_steps // 4)
    look_s = score_s * method.prune_windows / method.eval_windows
    return {
        "prune_updates_s": n_updates * weight_s,
        "prune_looks_s": n_glances * (2 + n_slots / 2) * look_s,
        "prune_reports_s": n_glances * record_s,
    }


def n_probing(request: SearchRequest) -> int:
    """Weight updates that `estimate` makes: five fair rounds, three of them with an alpha update behind each."""
    return 5 * len(request.space.candidates)


def rows_with_room(
    request: SearchRequest, parts: Parts, table: LatencyTable, device: str, room_bytes: int
) -> tuple[int, int]:
    """How many rows of a batch can go through at once, and the bytes that one row at a time would need.

    Args:
        request: resolved.
        parts: of its data.
        table: of its space.
        device: where it will run.
        room_bytes: that are free there.

    Returns:
        Rows, at most the batch; 0 where not even one has room. What a step holds grows evenly with them: it is
        measured at one row and at two.
    """
    peaks = []
    for rows in (1, 2):
        probe = _probe(request, parts, table, device, micro_batch=rows)
        peaks.append(sum(_memory(probe, device, len(request.space.candidates)).values()))
    one, each = peaks[0], max(1.0, peaks[1] - peaks[0])
    rows = 0 if one > room_bytes else 1 + int((room_bytes - one) / each)
    return min(rows, request.method.batch_size), int(one)


def _probe(
    request: SearchRequest, parts: Parts, table: LatencyTable, device: str, *, alpha: bool = True, **method: Any
) -> Search:
    """A search that makes weight steps on fair paths; with alpha, each is followed by an alpha step."""
    phase = {"warmup_share": 0.0, "alpha_share": 0.5} if alpha else {"warmup_share": 0.9}
    endless = {"n_steps": _ENDLESS, "settle_share": 0.0, "uniform_share": 1.0, "stop_when_stable": False}
    changed = request.method.model_copy(update={**endless, **phase, **method})
    return Search(request.model_copy(update={"method": changed}), parts=parts, table=table, device=device)


def _memory(search: Search, device: str, n_steps: int) -> dict[str, float]:
    """Bytes of weights, of all their moments, and of what a step holds beside them, gradients included."""
    for _ in range(n_steps):  # one fair round: all weights have moments then
        search.advance()
    weights = sum(each.nbytes for each in search.weights.values())
    peak, _ = peak_bytes(lambda: [search.advance() for _ in range(n_steps)], device)
    return {"weights": float(weights), "moments": 2.0 * weights, "step": float(peak)}


def _n_records(method: Method) -> int:
    """Step 0, each report and each checkpoint."""
    steps = range(1, method.n_steps + 1)
    return 1 + sum(step % method.report_every == 0 or step % method.checkpoint_every == 0 for step in steps)


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
